//! The hashes in names of chains, which identify Service ports and endpoints.

use sha2::{Digest, Sha256};

const ALPHABET: &[u8; 32] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";

/// Sixteen letters: 80 bits of a SHA-256 in base 32.
pub(crate) type Letters = [u8; 16];

/// The hash of a Service port, from which the hashes of its endpoints are derived.
pub(crate) struct PortHash(Sha256);

impl PortHash {
    /// Hashes `namespace/service:port` (without `:port` if the port has no name) and `tcp`, `udp`
    /// or `sctp`.
    pub(crate) fn new(port: &str, protocol: &str) -> Self {
        let mut hasher = Sha256::new();
        hasher.update(port.as_bytes());
        hasher.update(protocol.as_bytes());
        Self(hasher)
    }

    /// Returns the letters of the Service port itself.
    pub(crate) fn letters(&self) -> Letters {
        base32(&self.0.clone().finalize())
    }

    /// Returns the letters of one of the port's endpoints, `address:port`.
    pub(crate) fn endpoint(&self, endpoint: &str) -> Letters {
        let mut hasher = self.0.clone();
        hasher.update(endpoint.as_bytes());
        base32(&hasher.finalize())
    }
}

fn base32(digest: &[u8]) -> Letters {
    let mut letters = [0; 16];
    for (eight, five) in letters.chunks_exact_mut(8).zip(digest.chunks_exact(5)) {
        let bits = five.iter().fold(0u64, |bits, byte| bits << 8 | u64::from(*byte));
        for (place, letter) in eight.iter_mut().enumerate() {
            *letter = ALPHABET[(bits >> (35 - 5 * place) & 31) as usize];
        }
    }
    letters
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_answers() {
        let port = PortHash::new("ns1/svc1:p80", "tcp");
        assert_eq!(&port.letters(), b"XPGD46QRK7WJZT7O");
        assert_eq!(&port.endpoint("10.180.0.1:80"), b"SXIVWICOYRO3J4NJ");
    }

    #[test]
    fn bits_become_letters_in_order() {
        assert_eq!(&base32(b"foobarfoob"), b"MZXW6YTBOJTG633C");
        assert_eq!(&base32(&[0; 32]), b"AAAAAAAAAAAAAAAA");
        assert_eq!(&base32(&[255; 32]), b"7777777777777777");
    }
}
