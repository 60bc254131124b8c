//! Encodes names of interfaces as numbers.

/// Encodes a name of up to 16 bytes as a number, so that all names with a common prefix form a
/// range. A trailing `*` matches any suffix.
pub(super) fn interface(name: &str) -> (u128, u128) {
    let (start, rest) = match name.strip_suffix('*') {
        Some(start) => (start, true),
        None => (name, false),
    };
    let mut first = [0u8; 16];
    let length = start.len().min(16);
    first[..length].copy_from_slice(&start.as_bytes()[..length]);
    let first = u128::from_be_bytes(first);
    if !rest || length == 16 {
        return (first, first);
    }
    (first, first | (u128::MAX >> (8 * length)))
}
