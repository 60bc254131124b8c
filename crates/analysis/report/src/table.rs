//! Tables: columns as wide as their widest cell, with two blanks between.
//!
//! If lines have a limit ([`Style::line_limit`]), cells that do not fit are folded: between words
//! if that is enough, else within long names, after `/`, `-` and similar characters. A table with
//! folded rows has an empty line between rows.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::BTreeMap;

use crate::fold::fold;
pub use crate::fold::length;
use crate::style::{Paint, Style, in_a_line};

/// Blanks between two columns.
const GAP: usize = 2;
/// The least width to which names are cut, even if the table is then too wide.
const MIN: usize = 8;

/// Columns of at most this width are folded only where nothing else helps.
const SHORT: usize = 18;
/// Longer names are cut where whole ones would leave other columns little room.
const LONG: usize = 44;

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
    let rows: Vec<(usize, String)> =
        rows.iter().map(|row| folded_row(row, &widths, style)).collect();
    let is_folded = rows.iter().skip(1).any(|(height, _)| *height > 1);
    let mut text = String::new();
    for (at, (_, row)) in rows.iter().enumerate() {
        if is_folded && at > 1 {
            text.push('\n');
        }
        text.push_str(row);
    }
    text
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
    if natural.iter().sum::<usize>() <= limit {
        return natural;
    }
    let words: Vec<usize> = columns.map(|column| most(column, &longest_word)).collect();
    let short = |(word, natural): (&usize, &usize)| match *natural {
        short if short <= SHORT => short,
        _ => (*word).min(LONG),
    };
    let whole: Vec<usize> = words.iter().zip(&natural).map(short).collect();
    let cut: Vec<usize> = words.iter().map(|word| (*word).min(MIN)).collect();
    let fits = |widths: &Vec<usize>| widths.iter().sum::<usize>() <= limit;
    let least = [whole, words].into_iter().find(fits).unwrap_or(cut);
    let widths = widened(rows, least.clone(), &natural, limit);
    exchanged(rows, widths, &least, &natural)
}

/// The number of rows by which widths are chosen.
const MEASURED: usize = 200;

/// Widens columns as far as the limit allows, each time the one that makes rows tallest; of several,
/// the one that is almost wide enough.
fn widened(
    rows: &[Vec<Cell>],
    mut widths: Vec<usize>,
    natural: &[usize],
    limit: usize,
) -> Vec<usize> {
    let measured = rows.iter().take(MEASURED);
    let lengths: Vec<Vec<usize>> =
        measured.map(|row| row.iter().map(|cell| length(&cell.text)).collect()).collect();
    let mut left = limit.saturating_sub(widths.iter().sum());
    while left > 0 {
        let mut weights = vec![0_usize; widths.len()];
        for row in &lengths {
            let heights =
                row.iter().zip(&widths).map(|(length, width)| length.div_ceil(1.max(*width)));
            let heights: Vec<usize> = heights.collect();
            let tallest = heights.iter().copied().max().unwrap_or(0);
            let tall = heights.iter().zip(&mut weights).filter(|(own, _)| **own == tallest);
            tall.filter(|(own, _)| **own > 1).for_each(|(own, weight)| *weight += own);
        }
        let can_grow = |column: &usize| widths[*column] < natural[*column];
        let columns = (0..widths.len()).filter(can_grow);
        let missing = |at: &usize| Reverse(natural[*at] - widths[*at]);
        let Some(chosen) = columns.max_by_key(|at| (weights[*at], missing(at))) else { break };
        widths[chosen] += 1;
        left -= 1;
    }
    widths
}

/// The number of rows by which widths are exchanged.
const COMPARED: usize = 40;
/// The number of characters that a column gives to another at a time.
const STEPS: [usize; 5] = [1, 2, 4, 8, 16];

/// Lets columns give width to others as long as that saves lines.
fn exchanged(
    rows: &[Vec<Cell>],
    mut widths: Vec<usize>,
    least: &[usize],
    natural: &[usize],
) -> Vec<usize> {
    let rows = &rows[..rows.len().min(COMPARED)];
    let mut known: BTreeMap<(usize, usize), Vec<usize>> = BTreeMap::new();
    let mut lines = |widths: &[usize]| -> usize {
        let mut heights = vec![0; rows.len()];
        for (column, width) in widths.iter().enumerate() {
            let of = |row: &Vec<Cell>| {
                row.get(column).map_or(0, |cell| fold(&cell.text, 1.max(*width)).len())
            };
            let column = known
                .entry((column, *width))
                .or_insert_with(|| rows.iter().map(of).collect::<Vec<usize>>());
            heights.iter_mut().zip(column).for_each(|(most, own)| *most = (*most).max(*own));
        }
        heights.iter().sum()
    };
    let columns = widths.len();
    let mut fewest = lines(&widths);
    loop {
        let mut best = None;
        for (from, to) in (0..columns).flat_map(|from| (0..columns).map(move |to| (from, to))) {
            for step in STEPS {
                if from == to
                    || widths[from] < least[from] + step
                    || widths[to] + step > natural[to]
                {
                    continue;
                }
                let mut other = widths.clone();
                other[from] -= step;
                other[to] += step;
                let count = lines(&other);
                if count < fewest {
                    fewest = count;
                    best = Some(other);
                }
            }
        }
        let Some(better) = best else { return widths };
        widths = better;
    }
}

/// Formats one row, with as many lines as its tallest cell. Returns their number, too.
fn folded_row(row: &[Cell], widths: &[usize], style: Style) -> (usize, String) {
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
    (height, text)
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
