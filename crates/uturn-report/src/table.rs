//! Tables: columns as wide as their widest cell, two blanks between.

use crate::style::Style;

/// Rows under a heading; the last column takes what is left and is not padded.
pub fn render(heading: &[&str], rows: &[Vec<String>], style: Style) -> String {
    let widths: Vec<usize> = (0..heading.len())
        .map(|column| {
            let cells = rows.iter().filter_map(|row| row.get(column)).map(|cell| length(cell));
            cells.chain([length(heading[column])]).max().unwrap_or(0)
        })
        .collect();
    let mut text = String::new();
    let heading: Vec<String> = heading.iter().map(|cell| (*cell).to_owned()).collect();
    push_row(&mut text, &heading, &widths, |cell| style.bold(cell));
    for row in rows {
        push_row(&mut text, row, &widths, str::to_owned);
    }
    text
}

fn push_row(text: &mut String, row: &[String], widths: &[usize], paint: impl Fn(&str) -> String) {
    let mut line = String::new();
    for (i, cell) in row.iter().enumerate() {
        line.push_str(&paint(cell));
        if i + 1 < row.len() {
            line.push_str(&" ".repeat(widths[i] - length(cell) + 2));
        }
    }
    text.push_str(line.trim_end());
    text.push('\n');
}

/// Characters that a text takes on the screen; its colours take none.
pub fn length(text: &str) -> usize {
    let mut escaped = false;
    text.chars()
        .filter(|c| {
            match c {
                '\x1b' => escaped = true,
                'm' if escaped => {
                    escaped = false;
                    return false;
                }
                _ => {}
            }
            !escaped
        })
        .count()
}
