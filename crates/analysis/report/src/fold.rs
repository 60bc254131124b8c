//! Folds text into lines of a limited width.

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use crate::style::in_a_line;

/// Folds a text into lines no wider than `width`. Returns at least one line.
pub fn fold(text: &str, width: usize) -> Vec<&str> {
    let mut lines = Vec::new();
    let mut rest = text;
    while length(rest) > width {
        let at = break_at(rest, width);
        lines.push(rest[..at].trim_end());
        rest = rest[at..].trim_start();
    }
    if lines.is_empty() || !rest.is_empty() {
        lines.push(rest);
    }
    lines
}

/// Returns the end of the first line: before the last blank that fits, else within a word.
fn break_at(text: &str, width: usize) -> usize {
    let mut used = 0;
    let fits = |(_, c): &(usize, char)| {
        used += c.width().unwrap_or(0);
        used <= width
    };
    let end = text.char_indices().take_while(fits).map(|(at, c)| at + c.len_utf8()).last();
    // At least one character, however narrow the column.
    let first = text.chars().next().map_or(0, char::len_utf8);
    let end = end.unwrap_or(first);
    let blank = if text[end..].starts_with(' ') {
        Some(end)
    } else {
        text[..end].rfind(' ').filter(|at| *at > 0)
    };
    let in_name = || text[..end].rfind(['/', '-', ':', '.', ',']).map(|at| at + 1);
    blank.or_else(in_name).unwrap_or(end)
}

/// Returns the number of columns that a text takes on the screen; colours take none.
pub fn length(text: &str) -> usize {
    if text.contains('\x1b') {
        anstream::adapter::strip_str(text).map(UnicodeWidthStr::width).sum()
    } else {
        text.width()
    }
}

/// Formats a label with its text beside it; further lines start below the text.
pub fn beside(label: &str, text: &str, width: usize) -> String {
    let (indent, text) = (length(label), in_a_line(text));
    let lines = fold(&text, width.saturating_sub(indent).max(1));
    let blank = " ".repeat(indent);
    let of = |(at, line): (usize, &&str)| {
        let start = if at == 0 { label } else { &blank };
        format!("{}\n", format!("{start}{line}").trim_end())
    };
    lines.iter().enumerate().map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_end_between_words_where_they_can() {
        assert_eq!(fold("one two three", 7), ["one two", "three"]);
        assert_eq!(fold("", 7), [""]);
        assert_eq!(fold("one", 3), ["one"]);
        assert_eq!(fold("shop/front-end", 8), ["shop/", "front-", "end"]);
        assert_eq!(fold("商店商店", 5), ["商店", "商店"]);
        assert_eq!(fold("商", 1), ["商"]);
    }

    #[test]
    fn text_stands_beside_its_label() {
        assert_eq!(
            beside("  cure  ", "call svc/shop/front:80 by its name", 22),
            "  cure  call\n        svc/shop/\n        front:80 by\n        its name\n"
        );
    }
}
