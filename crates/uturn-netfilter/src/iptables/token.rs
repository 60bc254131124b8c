//! Cuts a line into words the way `iptables-restore` does.

use std::borrow::Cow;

/// A word of a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Token<'a> {
    pub(super) text: Cow<'a, str>,
    /// Whether any of it stood in quotes: such a word is never an option.
    pub(super) quoted: bool,
    /// From 1.
    pub(super) column: u32,
}

impl Token<'_> {
    /// The word as an option or `!`: what stands in quotes is no option.
    pub(super) fn bare(&self) -> &str {
        if self.quoted && self.text != "!" { "" } else { &self.text }
    }

    /// Whether an option that belongs to the rule itself, or another match, begins here.
    pub(super) fn is_border(&self) -> bool {
        is_border(self.bare())
    }
}

/// Options of the rule itself: they end the options of a match that nobody models.
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

const ENDS_WORD: [bool; 256] = table(b" \t\r\"");
const ENDS_QUOTE: [bool; 256] = table(b"\"\\");

const fn table(bytes: &[u8]) -> [bool; 256] {
    let (mut table, mut at) = ([false; 256], 0);
    while at < bytes.len() {
        table[bytes[at] as usize] = true;
        at += 1;
    }
    table
}

/// Puts the words of `line` into `words`; `Err` has the column of a quote without an end.
/// `column` is that of the line's first byte.
pub(super) fn cut<'a>(line: &'a str, column: u32, words: &mut Vec<Token<'a>>) -> Result<(), u32> {
    words.clear();
    let bytes = line.as_bytes();
    let mut at = 0;
    loop {
        while matches!(bytes.get(at), Some(b' ' | b'\t' | b'\r')) {
            at += 1;
        }
        if at >= bytes.len() {
            return Ok(());
        }
        let start = at;
        let length = bytes[at..].iter().position(|byte| ENDS_WORD[usize::from(*byte)]);
        at = length.map_or(bytes.len(), |length| at + length);
        let here = column + start as u32;
        if bytes.get(at) == Some(&b'"') {
            let (text, end) = quoted(line, start, at).map_err(|quote| column + quote as u32)?;
            words.push(Token { text, quoted: true, column: here });
            at = end;
        } else {
            words.push(Token { text: line[start..at].into(), quoted: false, column: here });
        }
    }
}

/// A word that starts at `start` and has its first quote at `at`: the word and where it
/// ends, or where the quote without an end is.
fn quoted(line: &str, start: usize, at: usize) -> Result<(Cow<'_, str>, usize), usize> {
    let bytes = line.as_bytes();
    let length = bytes[at + 1..].iter().position(|byte| ENDS_QUOTE[usize::from(*byte)]);
    if let Some(length) = length {
        let end = at + 1 + length;
        let ends = matches!(bytes.get(end + 1), None | Some(b' ' | b'\t' | b'\r'));
        if start == at && bytes[end] == b'"' && ends {
            return Ok((line[at + 1..end].into(), end + 1));
        }
    }
    let mut text = line[start..at].to_owned();
    let mut open: Option<usize> = None;
    let mut chars = line[at..].char_indices().map(|(i, c)| (at + i, c));
    while let Some((i, c)) = chars.next() {
        match (c, open) {
            ('"', None) => open = Some(i),
            ('"', Some(_)) => open = None,
            ('\\', Some(quote)) => text.push(chars.next().ok_or(quote)?.1),
            (' ' | '\t' | '\r', None) => return Ok((text.into(), i)),
            (c, _) => text.push(c),
        }
    }
    match open {
        Some(quote) => Err(quote),
        None => Ok((text.into(), line.len())),
    }
}

/// Whether it can be a name: it is read back as one word wherever it stands.
pub(super) fn is_plain(name: &str) -> bool {
    let odd = |c: char| c.is_whitespace() || c.is_control() || matches!(c, '"' | '\'' | '\\');
    !name.is_empty() && !name.contains(odd)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Result<Vec<(String, bool, u32)>, u32> {
        let mut words = Vec::new();
        cut(line, 1, &mut words)?;
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
                ("cd \" e".into(), true, 16),
                ("-j".into(), true, 26),
            ]
        );
    }

    #[test]
    fn a_quote_without_end_is_named() {
        assert_eq!(words(r#"a "b c"#), Err(3));
        assert_eq!(words(r#"a "b\"#), Err(3));
    }
}
