//! Decodes texts in UTF-16, which some shells write. As with kubectl, the byte order mark at the
//! beginning identifies them.

/// The byte order mark of little-endian UTF-16.
const LITTLE: [u8; 2] = [0xff, 0xfe];
/// The byte order mark of big-endian UTF-16.
const BIG: [u8; 2] = [0xfe, 0xff];

/// Returns whether a file begins with a byte order mark of UTF-16.
pub(super) fn is_utf16(bytes: &[u8]) -> bool {
    bytes.starts_with(&LITTLE) || bytes.starts_with(&BIG)
}

/// Returns a file in UTF-8: a file in UTF-16 is converted without its byte order mark, any other
/// file is returned as it is. Fails with the offset of the first unit that is not UTF-16.
pub(super) fn to_utf8(bytes: Vec<u8>) -> Result<Vec<u8>, usize> {
    if !is_utf16(&bytes) {
        return Ok(bytes);
    }
    let unit = if bytes.starts_with(&LITTLE) { u16::from_le_bytes } else { u16::from_be_bytes };
    let (pairs, rest) = bytes[LITTLE.len()..].as_chunks::<2>();
    let mut text = String::with_capacity(pairs.len());
    let mut at = LITTLE.len();
    for decoded in char::decode_utf16(pairs.iter().map(|pair| unit(*pair))) {
        let letter = decoded.map_err(|_| at)?;
        at += 2 * letter.len_utf16();
        text.push(letter);
    }
    if rest.is_empty() { Ok(text.into_bytes()) } else { Err(at) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_orders_of_bytes_are_read() {
        let text = "kind: Service # größer 😀\n";
        for (mark, bytes) in
            [(LITTLE, u16::to_le_bytes as fn(u16) -> [u8; 2]), (BIG, u16::to_be_bytes)]
        {
            let mut file = mark.to_vec();
            file.extend(text.encode_utf16().flat_map(bytes));
            assert_eq!(to_utf8(file.clone()), Ok(text.as_bytes().to_vec()));
            file.push(b' ');
            assert_eq!(to_utf8(file.clone()), Err(file.len() - 1), "half a character");
        }
        assert_eq!(to_utf8(vec![0xff, 0xfe, b'a', 0, 0, 0xd8, b'b', 0]), Err(4), "half a pair");
        assert_eq!(to_utf8(b"kind: Pod".to_vec()), Ok(b"kind: Pod".to_vec()));
    }
}
