//! Tables: columns as wide as their widest cell, with two blanks between.
//!
//! If lines have a limit ([`Style::line_limit`]), cells that do not fit are folded: between words
//! if that is enough, else within long names, after `/`, `-` and similar characters.

use std::borrow::Cow;

use crate::fold::fold;
pub use crate::fold::length;
use crate::style::{Paint, Style, in_a_line};

/// Blanks between two columns.
const GAP: usize = 2;
/// The least width to which names are cut, even if the table is then too wide.
const MIN: usize = 8;

/// One cell: its text, and its colour.
#[derive(Clone, Debug)]
pub struct Cell {
    text: String,
    paint: Paint,
}

impl Cell {
    /// Makes a cell that is painted, on each of its lines, if colours are wanted. A line break
    /// within a text does not begin a new line of the cell: it is escaped.
    pub fn painted(text: impl Into<String>, paint: Paint) -> Self {
        let text: String = text.into();
        let text = match in_a_line(&text) {
            Cow::Owned(safe) => safe,
            Cow::Borrowed(_) => text,
        };
        Self { text, paint }
    }
}

impl From<String> for Cell {
    fn from(text: String) -> Self {
        Self::painted(text, Paint::new())
    }
}

/// Formats rows under a heading. The last column is not padded.
pub fn render<C: Clone + Into<Cell>>(heading: &[&str], rows: &[Vec<C>], style: Style) -> String {
    let heading: Vec<Cell> = heading.iter().map(|text| Cell::painted(*text, Style::BOLD)).collect();
    let rows = rows.iter().map(|row| row.iter().cloned().map(Into::into).collect());
    let rows: Vec<Vec<Cell>> = [heading].into_iter().chain(rows).collect();
    let widths = widths(&rows, style.line_limit);
    rows.iter().map(|row| folded_row(row, &widths, style)).collect()
}

/// Returns the width of each column.
fn widths(rows: &[Vec<Cell>], limit: Option<usize>) -> Vec<usize> {
    let most = |column: usize, of: &dyn Fn(&str) -> usize| {
        let cells = rows.iter().filter_map(|row| row.get(column));
        cells.map(|cell| of(&cell.text)).max().unwrap_or(0)
    };
    let longest_word = |text: &str| text.split(' ').map(length).max().unwrap_or(0);
    let columns = 0..rows[0].len();
    let natural: Vec<usize> = columns.clone().map(|column| most(column, &length)).collect();
    let gaps = GAP * natural.len().saturating_sub(1);
    let Some(limit) = limit.map(|limit| limit.saturating_sub(gaps)) else { return natural };
    let words: Vec<usize> = columns.map(|column| most(column, &longest_word)).collect();
    let cut: Vec<usize> = words.iter().map(|word| (*word).min(MIN)).collect();
    let whole_words = fit(&natural, &words, limit);
    if whole_words.iter().sum::<usize>() <= limit {
        whole_words
    } else {
        fit(&natural, &cut, limit)
    }
}

/// Narrows the widest columns, each no further than its least width, until all fit.
fn fit(natural: &[usize], least: &[usize], limit: usize) -> Vec<usize> {
    let at = |level: usize| -> Vec<usize> {
        natural.iter().zip(least).map(|(most, least)| level.clamp(*least, *most)).collect()
    };
    let widest = natural.iter().copied().max().unwrap_or(0);
    let fits = |level: &usize| at(*level).iter().sum::<usize>() <= limit;
    let mut widths = at((0..=widest).rev().find(fits).unwrap_or(0));
    // Distribute the remaining characters, one to each column.
    let mut left = limit.saturating_sub(widths.iter().sum());
    for (width, most) in widths.iter_mut().zip(natural) {
        if left > 0 && width < &mut most.clone() {
            *width += 1;
            left -= 1;
        }
    }
    widths
}

/// Formats one row, with as many lines as its tallest cell.
fn folded_row(row: &[Cell], widths: &[usize], style: Style) -> String {
    let cells: Vec<Vec<&str>> =
        row.iter().zip(widths).map(|(cell, width)| fold(&cell.text, *width)).collect();
    let height = cells.iter().map(Vec::len).max().unwrap_or(0);
    let mut text = String::new();
    for line in 0..height {
        let mut padding = 0;
        for ((cell, lines), width) in row.iter().zip(&cells).zip(widths) {
            let part = lines.get(line).copied().unwrap_or_default();
            if !part.is_empty() {
                text.push_str(&" ".repeat(padding));
                text.push_str(&style.paint(cell.paint, part));
                padding = 0;
            }
            padding += width.saturating_sub(length(part)) + GAP;
        }
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn table(rows: &[&[&str]], limit: Option<usize>) -> String {
        let rows: Vec<Vec<String>> =
            rows.iter().map(|row| row.iter().map(ToString::to_string).collect()).collect();
        render(&["WHO", "CANNOT REACH", "CODE"], &rows, Style { line_limit: limit, ..Style::PLAIN })
    }

    const ROWS: &[&[&str]] = &[
        &["9 pods on 3 nodes", "ingress/shop/front :80 shop.example.com/ + 1 more", "UT101"],
        &["all other clients", "ingress/shop/front", "UT206"],
    ];

    #[test]
    fn without_a_limit_a_row_is_a_line() {
        assert_eq!(
            table(ROWS, None),
            "\
WHO                CANNOT REACH                                       CODE
9 pods on 3 nodes  ingress/shop/front :80 shop.example.com/ + 1 more  UT101
all other clients  ingress/shop/front                                 UT206
"
        );
        assert_eq!(table(ROWS, Some(75)), table(ROWS, None));
    }

    #[test]
    fn what_does_not_fit_is_folded_between_words() {
        assert_eq!(
            table(ROWS, Some(50)),
            "\
WHO                CANNOT REACH              CODE
9 pods on 3 nodes  ingress/shop/front :80    UT101
                   shop.example.com/ + 1
                   more
all other clients  ingress/shop/front        UT206
"
        );
    }

    #[test]
    fn names_are_cut_where_words_are_too_long() {
        assert_eq!(
            table(&[&["1 pod", "ingress/a-long-namespace/front", "UT101"]], Some(32)),
            "\
WHO    CANNOT REACH        CODE
1 pod  ingress/a-long-     UT101
       namespace/front
"
        );
    }

    #[test]
    fn wide_characters_take_two_columns_and_colours_none() {
        assert_eq!(length("商店"), 4);
        assert_eq!(length("\x1b[31mred\x1b[0m"), 3);
        let painted = Cell::painted("always 502 after 4 s", Style::RED);
        let style = Style { line_limit: Some(12), color: true, ..Style::PLAIN };
        let text = render(&["FAILING"], &[vec![painted]], style);
        let red = |text: &str| style.red(text);
        assert!(
            text.ends_with(&format!("{}\n{}\n", red("always 502"), red("after 4 s"))),
            "{text:?}"
        );
    }

    proptest! {
        #[test]
        fn every_line_holds_and_nothing_is_lost(
            rows in prop::collection::vec(prop::collection::vec("[a-z商/ -]{0,40}", 3), 1..6),
            limit in 30..120_usize,
        ) {
            let rows: Vec<Vec<&str>> =
                rows.iter().map(|row| row.iter().map(|cell| cell.trim()).collect()).collect();
            let rows: Vec<&[&str]> = rows.iter().map(|row| &**row).collect();
            let folded = table(&rows, Some(limit));
            for line in folded.lines() {
                prop_assert!(length(line) <= limit, "{} > {limit}: {line:?}", length(line));
            }
            let letters = |text: &str| {
                let mut all: Vec<char> = text.chars().filter(|c| !c.is_whitespace()).collect();
                all.sort_unstable();
                all
            };
            prop_assert_eq!(letters(&folded), letters(&table(&rows, None)));
        }
    }
}
