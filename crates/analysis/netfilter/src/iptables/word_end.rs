//! Finds the end of a word, eight bytes at a time: words are short, so one step usually suffices.

/// The first blank, line break or quote at or after `at`, or the end.
pub(super) fn end_of_word(bytes: &[u8], at: usize) -> usize {
    let ends = |byte| matches!(byte, b' ' | b'\t' | b'\r' | b'\n' | b'"');
    find(bytes, at, |eight| at_most(eight, b' ') | equal(eight, b'"'), ends)
}

/// The first quote, backslash or line break at or after `at`, or the end.
pub(super) fn end_of_quote(bytes: &[u8], at: usize) -> usize {
    let ends = |byte| matches!(byte, b'"' | b'\\' | b'\n');
    let some = |eight| equal(eight, b'"') | equal(eight, b'\\') | equal(eight, b'\n');
    find(bytes, at, some, ends)
}

/// The first byte that `ends` accepts. For eight bytes at once, `some` returns the highest bit of
/// the first byte that may be such a byte (and arbitrary bits after it), or 0.
fn find(
    bytes: &[u8],
    mut at: usize,
    some: impl Fn(u64) -> u64,
    ends: impl Fn(u8) -> bool,
) -> usize {
    while let Some(eight) = bytes.get(at..).and_then(|rest| rest.first_chunk()) {
        let found = some(u64::from_le_bytes(*eight));
        at += (found.trailing_zeros() / 8) as usize;
        if found != 0 {
            if ends(bytes[at]) {
                return at;
            }
            at += 1;
        }
    }
    while bytes.get(at).is_some_and(|byte| !ends(*byte)) {
        at += 1;
    }
    at
}

const ONES: u64 = 0x0101_0101_0101_0101;

fn at_most(eight: u64, byte: u8) -> u64 {
    eight.wrapping_sub(ONES * (u64::from(byte) + 1)) & !eight & (ONES << 7)
}

fn equal(eight: u64, byte: u8) -> u64 {
    at_most(eight ^ (ONES * u64::from(byte)), 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_what_a_look_at_each_byte_finds() {
        // Every byte at every offset, after bytes that differ in one bit.
        for byte in 0..=u8::MAX {
            for before in 0..18 {
                let mut text: Vec<u8> =
                    (0..before).map(|at| [b'a', 0x01, 0x80, b'!', 0xff][at % 5]).collect();
                text.extend([byte, b'x', b' ', b'"', b'\\']);
                for from in 0..text.len() {
                    let by_bytes = |ends: &[u8]| {
                        let found = text[from..].iter().position(|byte| ends.contains(byte));
                        found.map_or(text.len(), |at| from + at)
                    };
                    assert_eq!(end_of_word(&text, from), by_bytes(b" \t\r\n\""));
                    assert_eq!(end_of_quote(&text, from), by_bytes(b"\"\\\n"));
                }
                assert_eq!(end_of_word(&text[..before], 0), before);
            }
        }
    }
}
