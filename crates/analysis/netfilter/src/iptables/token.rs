//! Splits a line into words as `iptables-restore` does.

use std::borrow::Cow;

use super::word_end;

/// A word of a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Token<'a> {
    pub(super) text: Cow<'a, str>,
    /// Whether any part of it was quoted: a quoted word is never an option.
    pub(super) quoted: bool,
    /// From 1.
    pub(super) column: u32,
}

impl<'a> Token<'a> {
    /// The word as a slice of the text, unless escapes change it.
    pub(super) fn as_written(&self) -> Option<&'a str> {
        match self.text {
            Cow::Borrowed(text) => Some(text),
            Cow::Owned(_) => None,
        }
    }

    /// The word if it can be an option or `!`; empty if it was quoted.
    pub(super) fn bare(&self) -> &str {
        if self.quoted && self.text != "!" { "" } else { &self.text }
    }

    /// Whether an option of the rule itself, or another match, starts here.
    pub(super) fn is_border(&self) -> bool {
        is_border(self.bare())
    }
}

/// Options of the rule itself, which end the options of an unmodelled match.
pub(super) fn is_border(word: &str) -> bool {
    word.starts_with('-')
        && matches!(
            word,
            "-m" | "--match"
                | "-j"
                | "--jump"
                | "-g"
                | "--goto"
                | "-s"
                | "--source"
                | "--src"
                | "-d"
                | "--destination"
                | "--dst"
                | "-i"
                | "--in-interface"
                | "-o"
                | "--out-interface"
                | "-p"
                | "--protocol"
                | "--proto"
                | "-f"
                | "--fragment"
                | "-c"
                | "--set-counters"
        )
}

/// The length of the first line of `text`, without its line break.
pub(super) fn line(text: &str) -> usize {
    text.find('\n').unwrap_or(text.len())
}

/// The words of a line without quotes. Byte by byte, since words are short.
pub(super) fn words(line: &str) -> impl Iterator<Item = &str> {
    let is_blank = |byte: u8| matches!(byte, b' ' | b'\t' | b'\r');
    let mut rest = line;
    std::iter::from_fn(move || {
        let start = rest.bytes().position(|byte| !is_blank(byte))?;
        let word = &rest[start..];
        let end = word.bytes().position(is_blank).unwrap_or(word.len());
        rest = &word[end..];
        Some(&word[..end])
    })
}

/// Splits the first line of `text` into `words`, and returns the line's length; `Err` is the
/// column of an unclosed quote. `column` is the column of the first byte.
#[inline]
pub(super) fn cut<'a>(
    text: &'a str,
    column: u32,
    words: &mut Vec<Token<'a>>,
) -> Result<usize, u32> {
    words.clear();
    let bytes = text.as_bytes();
    let mut at = 0;
    loop {
        while matches!(bytes.get(at), Some(b' ' | b'\t' | b'\r')) {
            at += 1;
        }
        if matches!(bytes.get(at), None | Some(b'\n')) {
            return Ok(at);
        }
        let start = at;
        at = word_end::end_of_word(bytes, start);
        let here = column + start as u32;
        if bytes.get(at) == Some(&b'"') {
            let (text, end) = quoted(text, start, at).map_err(|quote| column + quote as u32)?;
            words.push(Token { text, quoted: true, column: here });
            at = end;
        } else {
            words.push(Token { text: text[start..at].into(), quoted: false, column: here });
        }
    }
}

/// A word that starts at `start` and has its quote at `at`: the word and its end, or the place of
/// the unclosed quote. A quote that closes ends the word, even if no blank follows.
#[inline]
fn quoted(text: &str, start: usize, at: usize) -> Result<(Cow<'_, str>, usize), usize> {
    let bytes = text.as_bytes();
    let end = word_end::end_of_quote(bytes, at + 1);
    if start == at && bytes.get(end) == Some(&b'"') {
        return Ok((text[at + 1..end].into(), end + 1));
    }
    unescaped(text, start, at)
}

/// Such a word where it has escapes or begins before the quote: these are rare.
#[cold]
fn unescaped(text: &str, start: usize, at: usize) -> Result<(Cow<'_, str>, usize), usize> {
    let mut word = text[start..at].to_owned();
    let mut chars = text[at + 1..].char_indices().map(|(i, c)| (at + 1 + i, c));
    while let Some((i, c)) = chars.next() {
        match c {
            '\n' => return Err(at),
            '"' => return Ok((word.into(), i + 1)),
            '\\' => match chars.next() {
                None | Some((_, '\n')) => return Err(at),
                Some((_, c)) => word.push(c),
            },
            c => word.push(c),
        }
    }
    Err(at)
}

/// Whether a chain can have this name: it parses as one word everywhere.
pub(super) fn is_plain(name: &str) -> bool {
    // Almost every name consists of these bytes only.
    let usual = name.bytes().fold(true, |all, byte| all & USUAL[usize::from(byte)]);
    let odd = |c: char| c.is_whitespace() || c.is_control() || matches!(c, '"' | '\'' | '\\');
    !name.is_empty() && (usual || !name.contains(odd))
}

const USUAL: [bool; 256] = {
    let (mut table, mut byte) = ([false; 256], 0u8);
    while byte < 128 {
        table[byte as usize] = byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
        byte += 1;
    }
    table
};

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Result<Vec<(String, bool, u32)>, u32> {
        let mut words = Vec::new();
        assert_eq!(cut(line, 1, &mut words)?, line.len());
        let more = format!("{line}\n\"more");
        let mut same = Vec::new();
        assert_eq!(cut(&more, 1, &mut same)?, line.len());
        assert_eq!(same, words);
        Ok(words.into_iter().map(|word| (word.text.into(), word.quoted, word.column)).collect())
    }

    #[test]
    fn quotes_are_taken_off() {
        assert_eq!(
            words(r#"-m  x "a b" "" c"d \" "e "-j" "#).unwrap(),
            [
                ("-m".into(), false, 1),
                ("x".into(), false, 5),
                ("a b".into(), true, 7),
                (String::new(), true, 13),
                ("cd \" ".into(), true, 16),
                ("e".into(), false, 24),
                ("-j".into(), true, 26),
            ]
        );
    }

    #[test]
    fn a_quote_without_end_is_named() {
        assert_eq!(words(r#"a "b c"#), Err(3));
        assert_eq!(words(r#"a "b\"#), Err(3));
        let mut all = Vec::new();
        assert_eq!(cut("a \"b\nc\"", 1, &mut all), Err(3));
        assert_eq!(cut("a \"b\\\nc\"", 1, &mut all), Err(3));
        assert_eq!(cut("a x\"b\nc\"", 1, &mut all), Err(4));
    }
}
