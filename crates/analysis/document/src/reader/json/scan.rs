//! Byte-level helpers of both passes for blanks and quoted texts.

use std::borrow::Cow;

const ONES: u64 = u64::MAX / 0xff;
const HIGHS: u64 = ONES * 0x80;

/// Marks the bytes that are zero. Above the lowest of them, other bytes may be marked too.
const fn zeros(word: u64) -> u64 {
    word.wrapping_sub(ONES) & !word & HIGHS
}

/// Returns the number of bytes before the next quote, backslash or control character, and whether
/// there may be bytes that are not ASCII among them.
#[inline]
pub(super) fn plain(bytes: &[u8]) -> (usize, bool) {
    let (mut length, mut all) = (0, 0);
    let mut rest = bytes;
    while let Some((eight, after)) = rest.split_first_chunk() {
        let word = u64::from_le_bytes(*eight);
        all |= word;
        let controls = word.wrapping_sub(ONES * 0x20) & !word & HIGHS;
        let quotes = zeros(word ^ (ONES * b'"' as u64)) | zeros(word ^ (ONES * b'\\' as u64));
        let ends = controls | quotes;
        if ends != 0 {
            return (length + (ends.trailing_zeros() / 8) as usize, all & HIGHS != 0);
        }
        length += 8;
        rest = after;
    }
    let ends = |byte: &u8| matches!(byte, b'"' | b'\\') || *byte < 0x20;
    length += rest.iter().position(ends).unwrap_or(rest.len());
    (length, all & HIGHS != 0 || !rest.is_ascii())
}

/// Returns the number of spaces at the beginning.
#[inline]
pub(super) fn spaces(bytes: &[u8]) -> usize {
    let (mut length, mut rest) = (0, bytes);
    while let Some((eight, after)) = rest.split_first_chunk() {
        let others = u64::from_le_bytes(*eight) ^ (ONES * b' ' as u64);
        if others != 0 {
            return length + (others.trailing_zeros() / 8) as usize;
        }
        length += 8;
        rest = after;
    }
    length + rest.iter().take_while(|byte| **byte == b' ').count()
}

/// Returns the number of bytes that do not begin a character.
pub(super) fn wide(bytes: &[u8]) -> usize {
    bytes.iter().filter(|byte| **byte & 0xc0 == 0x80).count()
}

/// Decodes a quoted text, whose escapes have been checked.
pub(super) fn unescaped(text: &str) -> Cow<'_, str> {
    let Some(mut at) = text.find('\\') else { return Cow::Borrowed(text) };
    let (mut built, mut from) = (String::with_capacity(text.len()), 0);
    loop {
        built.push_str(&text[from..at]);
        let (escaped, length) = escape(&text[at..]);
        built.push(escaped);
        from = at + length;
        match text[from..].find('\\') {
            Some(next) => at = from + next,
            None => break,
        }
    }
    built.push_str(&text[from..]);
    Cow::Owned(built)
}

/// Returns the character that the escape at the beginning means, and the length of the escape.
fn escape(text: &str) -> (char, usize) {
    let escaped = match text.as_bytes().get(1) {
        Some(b'b') => '\u{8}',
        Some(b'f') => '\u{c}',
        Some(b'n') => '\n',
        Some(b'r') => '\r',
        Some(b't') => '\t',
        Some(b'u') => return unicode(text),
        Some(byte) => char::from(*byte),
        None => return (char::REPLACEMENT_CHARACTER, 1),
    };
    (escaped, 2)
}

/// Decodes `\u` and four digits, or twice that for a surrogate pair. Half a pair is replaced.
fn unicode(text: &str) -> (char, usize) {
    let number = |text: &str| u32::from_str_radix(text.get(2..6)?, 16).ok();
    let first = number(text).unwrap_or(0xd800);
    if (0xd800..0xdc00).contains(&first)
        && let Some(after) = text.get(6..).filter(|after| after.starts_with("\\u"))
        && let Some(second @ 0xdc00..0xe000) = number(after)
    {
        let joined = 0x1_0000 + ((first - 0xd800) << 10) + (second - 0xdc00);
        return (char::from_u32(joined).unwrap_or(char::REPLACEMENT_CHARACTER), 12);
    }
    (char::from_u32(first).unwrap_or(char::REPLACEMENT_CHARACTER), 6)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn eight_at_once_is_one_at_a_time(bytes in prop::collection::vec(
            prop_oneof![Just(b' '), Just(b'"'), Just(b'\\'), 0x1e..0x24u8, any::<u8>(), Just(b'a')], 0..40,
        )) {
            let ends = |byte: &u8| matches!(byte, b'"' | b'\\') || *byte < 0x20;
            let length = bytes.iter().position(ends).unwrap_or(bytes.len());
            let (found, others) = plain(&bytes);
            prop_assert_eq!(found, length);
            prop_assert!(others || bytes[..length].is_ascii());
            let blank = bytes.iter().take_while(|byte| **byte == b' ').count();
            prop_assert_eq!(spaces(&bytes), blank);
        }

        #[test]
        fn characters(text in any::<String>()) {
            prop_assert_eq!(text.len() - wide(text.as_bytes()), text.chars().count());
        }
    }
}
