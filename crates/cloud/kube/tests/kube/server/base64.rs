//! Values as Secrets have them.

pub(crate) fn base64(text: &str) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut encoded = String::new();
    for bytes in text.as_bytes().chunks(3) {
        let mut bits = 0_u32;
        for position in 0..3 {
            bits = bits << 8 | u32::from(bytes.get(position).copied().unwrap_or_default());
        }
        for position in 0..4 {
            let letter = LETTERS[(bits >> (18 - 6 * position) & 63) as usize] as char;
            encoded.push(if position <= bytes.len() { letter } else { '=' });
        }
    }
    encoded
}
