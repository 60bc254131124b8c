//! Hashes that are the same in every process and on every system.

use std::net::IpAddr;

/// Returns the 64-bit FNV-1a hash of bytes.
pub fn fnv1a(bytes: &[u8]) -> u64 {
    let fold = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, fold)
}

/// The seed of [`place_of`]: the same everywhere, so that a standby picks the same targets as the
/// active load balancer.
pub const SEED: u32 = 0x7574_6e6c;

/// Returns the place of a client among `length` places, by a hash of its address. Returns `None` if
/// there is no place.
///
/// nf_tables computes the same for `jhash ip saddr mod LENGTH seed SEED`, so that a prediction and
/// a kernel agree.
pub fn place_of(client: IpAddr, length: usize) -> Option<usize> {
    let hash = match client {
        IpAddr::V4(ip) => jhash(&ip.octets(), SEED),
        IpAddr::V6(ip) => jhash(&ip.octets(), SEED),
    };
    // The kernel's `reciprocal_scale`, which saves a division.
    let scaled = (u128::from(hash) * length as u128) >> 32;
    (length > 0).then_some(scaled as usize)
}

/// Returns the kernel's `jhash` of bytes: lookup3 of Bob Jenkins.
fn jhash(bytes: &[u8], seed: u32) -> u32 {
    let word = |bytes: &[u8]| {
        bytes.iter().rev().fold(0, |word: u32, byte: &u8| (word << 8) | u32::from(*byte))
    };
    let words = |bytes: &[u8]| {
        let part = |at: usize| word(bytes.get(at..bytes.len().min(at + 4)).unwrap_or_default());
        [part(0), part(4), part(8)]
    };
    let plus =
        |state: [u32; 3], more: [u32; 3]| [0, 1, 2].map(|at| state[at].wrapping_add(more[at]));
    let start = 0xdead_beef_u32.wrapping_add(bytes.len() as u32).wrapping_add(seed);
    let [mut a, mut b, mut c] = [start; 3];
    let mut rest = bytes;
    while rest.len() > 12 {
        [a, b, c] = plus([a, b, c], words(&rest[..12]));
        rest = &rest[12..];
        for (turn_a, turn_b, turn_c) in [(4, 6, 8), (16, 19, 4)] {
            a = a.wrapping_sub(c) ^ c.rotate_left(turn_a);
            c = c.wrapping_add(b);
            b = b.wrapping_sub(a) ^ a.rotate_left(turn_b);
            a = a.wrapping_add(c);
            c = c.wrapping_sub(b) ^ b.rotate_left(turn_c);
            b = b.wrapping_add(a);
        }
    }
    if rest.is_empty() {
        return c;
    }
    [a, b, c] = plus([a, b, c], words(rest));
    c = (c ^ b).wrapping_sub(b.rotate_left(14));
    a = (a ^ c).wrapping_sub(c.rotate_left(11));
    b = (b ^ a).wrapping_sub(a.rotate_left(25));
    c = (c ^ b).wrapping_sub(b.rotate_left(16));
    a = (a ^ c).wrapping_sub(c.rotate_left(4));
    b = (b ^ a).wrapping_sub(a.rotate_left(14));
    (c ^ b).wrapping_sub(b.rotate_left(24))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The expected values were computed with the kernel's own source.
    #[test]
    fn the_hash_is_the_kernels() {
        for (bytes, seed, hash) in [
            (&[10, 1, 1, 10][..], SEED, 0x8ead_c18a),
            (&[0xfd, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2], SEED, 0x00cb_cb01),
            (b"hello world!", 0, 0x4b89_46db),
            (b"", 0, 0xdead_beef),
        ] {
            assert_eq!(jhash(bytes, seed), hash, "{bytes:?}");
        }
    }

    #[test]
    fn places_are_within_the_length() {
        let client = |number: u8| IpAddr::from([10, 1, 1, number]);
        assert_eq!(place_of(client(1), 0), None);
        let places: Vec<usize> = (0..100).filter_map(|n| place_of(client(n), 3)).collect();
        for place in 0..3 {
            let times = places.iter().filter(|other| **other == place).count();
            assert!((20..50).contains(&times), "{place}: {times}");
        }
    }
}
