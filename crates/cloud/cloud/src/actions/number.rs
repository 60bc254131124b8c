//! Numbers that are derived from a text, such as the `NumericalVpcId` of a network.

use sha2::{Digest as _, Sha256};

/// Returns a number less than `below` that is derived from the text.
pub(super) fn number_of(text: &str, below: u64) -> u64 {
    let hash = Sha256::digest(text.as_bytes());
    let number = hash.iter().take(8).fold(0, |number, byte| number << 8 | u64::from(*byte));
    number % below
}
