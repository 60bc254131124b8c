//! Ids of new resources and of requests.

use std::fmt;
use std::sync::Mutex;

use uuid::Uuid;

/// A source of ids: random or, for tests, counting.
pub struct IdSource {
    bits: Mutex<Box<dyn FnMut() -> u128 + Send>>,
}

impl IdSource {
    /// Returns a source of random ids, which do not repeat.
    pub fn random() -> Self {
        Self { bits: Mutex::new(Box::new(|| Uuid::new_v4().as_u128())) }
    }

    /// Returns a source that gives the same sequence of ids each time.
    pub fn counting() -> Self {
        let mut next = 0;
        let bits = move || {
            next += 1;
            next
        };
        Self { bits: Mutex::new(Box::new(bits)) }
    }

    /// Returns the id of a resource: this prefix, a hyphen, and eight letters and digits.
    pub fn resource(&self, prefix: &str) -> String {
        format!("{prefix}-{}", self.letters_and_digits())
    }

    /// Returns eight letters and digits.
    pub fn letters_and_digits(&self) -> String {
        base_36(self.bits(), 8)
    }

    /// Returns the id of a request.
    pub fn request(&self) -> String {
        uuid::Builder::from_random_bytes(self.bits().to_be_bytes()).into_uuid().to_string()
    }

    fn bits(&self) -> u128 {
        let mut bits = self.bits.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        bits()
    }
}

impl fmt::Debug for IdSource {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("IdSource")
    }
}

/// Returns the last digits of a number in base 36.
pub(crate) fn base_36(mut number: u128, digits: usize) -> String {
    let mut text = vec!['0'; digits];
    for place in text.iter_mut().rev() {
        let digit = u32::try_from(number % 36).unwrap_or_default();
        *place = char::from_digit(digit, 36).unwrap_or('0');
        number /= 36;
    }
    text.into_iter().collect()
}
