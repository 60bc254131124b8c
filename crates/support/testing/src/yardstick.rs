//! Work that never changes, beside which benchmarks print their figures: the speed of a machine
//! varies, and the ratio of two works in one run varies far less.
//!
//! Do not make this work faster: figures of two commits can be compared only as long as it stays
//! as it is.

use std::hint::black_box;

/// Splits a text into words: the yardstick for everything that reads text. Returns how many words
/// there are and how long the longest is.
pub fn split_into_words(text: &str) -> (usize, usize) {
    let words = text.split_ascii_whitespace().map(str::len);
    words.fold((0, 0), |(count, longest), length| (count + 1, longest.max(length)))
}

/// Puts keys of 16 bytes into a hash table and finds each of them again: the yardstick for walks
/// and scans. Returns how many it found.
pub fn hash_keys(count: usize) -> usize {
    let keys: Vec<[u64; 2]> = (0..count as u64).map(key).collect();
    let size = (2 * count).next_power_of_two().max(2);
    let mut table: Vec<Option<[u64; 2]>> = vec![None; size];
    for key in &keys {
        let slot = slot_of(&table, key);
        table[slot] = Some(*key);
    }
    keys.iter().rev().filter(|key| table[slot_of(&table, key)].as_ref() == Some(key)).count()
}

/// Returns the slot that has a key, or the empty slot in which the key belongs.
fn slot_of(table: &[Option<[u64; 2]>], key: &[u64; 2]) -> usize {
    let [high, low] = key;
    let mut slot = mixed(high ^ mixed(*low)) as usize % table.len();
    while table[slot].is_some_and(|known| known != *key) {
        slot = (slot + 1) % table.len();
    }
    slot
}

/// Returns a key that differs for each number.
fn key(number: u64) -> [u64; 2] {
    [number, mixed(number)]
}

/// Mixes the bits of a number by the finisher of SplitMix64.
fn mixed(number: u64) -> u64 {
    let number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}

/// The time of work, and that of a yardstick in the same run.
#[derive(Clone, Copy, Debug)]
pub struct Beside {
    /// The shortest time of the work, in seconds.
    pub work: f64,
    /// The shortest time of the yardstick, in seconds.
    pub yardstick: f64,
}

impl Beside {
    /// Measures a yardstick and then work once, by a clock that counts seconds. Also returns the
    /// result of the work.
    pub fn once<A, B>(
        clock: impl Fn() -> f64,
        work: impl FnOnce() -> A,
        yardstick: impl FnOnce() -> B,
    ) -> (Self, A) {
        let begin = clock();
        let measure = black_box(yardstick());
        let between = clock();
        let made = black_box(work());
        let end = clock();
        drop(measure);
        (Self { work: end - between, yardstick: between - begin }, made)
    }

    /// Measures work and a yardstick in turns, and keeps the shortest time of each.
    pub fn shortest_of<A, B>(
        rounds: usize,
        clock: impl Fn() -> f64,
        work: impl Fn() -> A,
        yardstick: impl Fn() -> B,
    ) -> Self {
        let measure = |_| Self::once(&clock, &work, &yardstick).0;
        let (first, others) = (measure(0), (1..rounds).map(measure));
        others.fold(first, Self::shortest)
    }

    /// Returns the shorter time of each.
    #[must_use]
    pub fn shortest(self, other: Self) -> Self {
        Self { work: self.work.min(other.work), yardstick: self.yardstick.min(other.yardstick) }
    }

    /// Returns how many times as long as the yardstick the work takes.
    pub fn ratio(self) -> f64 {
        self.work / self.yardstick
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_counted() {
        assert_eq!(split_into_words(" a node\n\tand its  rules "), (5, 5));
        assert_eq!(split_into_words(" \n"), (0, 0));
    }

    #[test]
    fn every_key_is_found_again() {
        for count in [0, 1, 1000] {
            assert_eq!(hash_keys(count), count);
        }
    }

    #[test]
    fn the_shortest_times_count() {
        // Each reading of the clock is further on: a yardstick of 4, 2 and 3 seconds, and work of
        // 8, 9 and 6.
        let readings = std::cell::RefCell::new(vec![0, 4, 12, 20, 22, 31, 40, 43, 49]);
        let clock = || f64::from(readings.borrow_mut().remove(0));
        let shortest = Beside::shortest_of(3, clock, || (), || ());
        assert_eq!((shortest.work, shortest.yardstick), (6.0, 2.0));
        assert_eq!(shortest.ratio(), 3.0);
    }
}
