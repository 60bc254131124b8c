//! Escapes text from outside, so that it may be shown on a terminal.
//!
//! Names, paths, comments and file names can contain characters that control a terminal (ESC, the
//! controls of C1) and invisible characters that change what a reader sees (marks of writing
//! direction, characters of no width). Each of them is shown as an escape: `\x1b`, `\u{202e}`.

use std::borrow::Cow;
use std::fmt::Write as _;

/// The hidden characters other than controls: format characters (Unicode's category Cf), line and
/// paragraph separators, fillers, and variation selectors.
const HIDDEN: [(u32, u32); 23] = [
    (0x00ad, 0x00ad),
    (0x034f, 0x034f),
    (0x061c, 0x061c),
    (0x070f, 0x070f),
    (0x115f, 0x1160),
    (0x17b4, 0x17b5),
    (0x180b, 0x180f),
    (0x200b, 0x200f),
    (0x2028, 0x202e),
    (0x2060, 0x206f),
    (0x2800, 0x2800),
    (0x3164, 0x3164),
    (0xfdd0, 0xfdef),
    (0xfe00, 0xfe0f),
    (0xfeff, 0xfeff),
    (0xffa0, 0xffa0),
    (0xfff0, 0xfffb),
    (0xfffe, 0xffff),
    (0x1_3430, 0x1_343f),
    (0x1_bca0, 0x1_bca3),
    (0x1_d173, 0x1_d17a),
    (0xe_0000, 0xe_0fff),
    (0xf_fffe, 0x10_ffff),
];

/// Returns whether a character controls a terminal, or a reader cannot see it. Line breaks and tabs
/// count.
pub fn is_hidden(c: char) -> bool {
    let number = u32::from(c);
    if number < 0xad {
        return c.is_control();
    }
    let at = HIDDEN.partition_point(|(_, last)| *last < number);
    HIDDEN.get(at).is_some_and(|(first, _)| *first <= number)
}

/// Escapes the hidden characters of a text of several lines, except for line breaks.
pub fn lines(text: &str) -> Cow<'_, str> {
    replaced(text, |c| c != '\n' && is_hidden(c), escape)
}

/// Escapes the same characters except for tabs, for text that programs read.
pub fn lines_and_tabs(text: &str) -> Cow<'_, str> {
    replaced(text, |c| !matches!(c, '\n' | '\t') && is_hidden(c), escape)
}

/// Escapes the hidden characters of a text on one line, line breaks and tabs too.
pub fn line(text: &str) -> Cow<'_, str> {
    replaced(text, is_hidden, escape)
}

/// Escapes the hidden characters of a JSON document, whose value stays the same. Such characters
/// only occur in the strings of a document, and JSON has an escape for each.
pub fn json(document: &str) -> Cow<'_, str> {
    replaced(
        document,
        |c| !matches!(c, '\n' | '\t' | '\r') && is_hidden(c),
        |out, c| {
            for unit in c.encode_utf16(&mut [0; 2]) {
                let _ = write!(out, "\\u{unit:04x}");
            }
        },
    )
}

fn escape(out: &mut String, c: char) {
    let _ = match c {
        '\n' => out.write_str("\\n"),
        '\r' => out.write_str("\\r"),
        '\t' => out.write_str("\\t"),
        c if c.is_ascii() => write!(out, "\\x{:02x}", u32::from(c)),
        c => write!(out, "\\u{{{:x}}}", u32::from(c)),
    };
}

fn replaced(
    text: &str,
    is_replaced: impl Fn(char) -> bool,
    replace: impl Fn(&mut String, char),
) -> Cow<'_, str> {
    let Some(first) = text.find(&is_replaced) else { return Cow::Borrowed(text) };
    let mut out = String::with_capacity(text.len() + 16);
    out.push_str(&text[..first]);
    for c in text[first..].chars() {
        if is_replaced(c) { replace(&mut out, c) } else { out.push(c) }
    }
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_hidden_is_escaped() {
        for (text, shown) in [
            (
                "plain / häuser 商店 e\u{301} 1\u{202f}000",
                "plain / häuser 商店 e\u{301} 1\u{202f}000",
            ),
            ("\u{1b}]52;c;eA==\u{7}", "\\x1b]52;c;eA==\\x07"),
            ("\u{9b}31m\u{7f}\0", "\\u{9b}31m\\x7f\\x00"),
            ("a\u{202e}b\u{2066}c\u{200f}\u{61c}", "a\\u{202e}b\\u{2066}c\\u{200f}\\u{61c}"),
            ("\u{feff}a\u{200b}\u{ad}\u{2028}", "\\u{feff}a\\u{200b}\\u{ad}\\u{2028}"),
            ("\u{3164}\u{e0041}\u{fe0f}", "\\u{3164}\\u{e0041}\\u{fe0f}"),
            ("one\r\ntwo\tthree", "one\\r\\ntwo\\tthree"),
        ] {
            assert_eq!(line(text), shown);
        }
        assert_eq!(lines("one\r\ntwo\t"), "one\\r\ntwo\\t");
        assert_eq!(lines_and_tabs("one\r\ntwo\t"), "one\\r\ntwo\t");
    }

    #[test]
    fn json_keeps_its_value() {
        let document = "{\n\t\"a\": \"\u{7f}\u{9b}\u{202e}\u{e0041}\"}\n";
        assert_eq!(json(document), "{\n\t\"a\": \"\\u007f\\u009b\\u202e\\udb40\\udc41\"}\n");
    }

    #[test]
    fn the_list_is_in_order() {
        assert!(HIDDEN.windows(2).all(|pair| pair[0].1 < pair[1].0));
        assert!(HIDDEN.iter().all(|(first, last)| first <= last));
    }
}
