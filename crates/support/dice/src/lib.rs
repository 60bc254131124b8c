//! Reproducible random numbers.
//!
//! **Owns** [`Dice`], the generator of all deliberate randomness: scenarios that `uturn lab fuzz`
//! draws, random clusters of tests and of the conformance run, mutants of fuzz seeds.
//!
//! **Out of scope:** entropy. A caller that needs an unpredictable seed provides it.
//!
//! **Start reading** at [`Dice`].
//!
//! The generator is written by hand and not taken from a crate: a seed that a report names has to
//! give the same case years later, and generators of random-number crates change between releases.

/// A pseudo-random number generator (SplitMix64): a seed gives the same numbers on every machine
/// and in every release.
#[derive(Clone, Debug)]
pub struct Dice(u64);

impl Dice {
    /// Creates the sequence of a seed.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Creates the sequence of the case with this number. Each case has its own sequence, so that
    /// it can be generated without the cases before it.
    pub fn of_case(seed: u64, number: u64) -> Self {
        Self(Self(seed).next_number() ^ Self(number).next_number())
    }

    /// Returns the next number.
    pub fn next_number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Returns a number from 0 to `sides - 1`.
    ///
    /// # Panics
    /// If `sides` is 0.
    pub fn below(&mut self, sides: usize) -> usize {
        usize::try_from(self.next_number() % sides as u64).expect("it is below a usize")
    }

    /// Returns a number from `first` to `last`.
    pub fn between(&mut self, first: usize, last: usize) -> usize {
        first + self.below(last - first + 1)
    }

    /// Returns `true` with a probability of 1 in `times`.
    pub fn once_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }

    /// Returns a reference to one of the items.
    ///
    /// # Panics
    /// If there are no items.
    pub fn pick<'i, T>(&mut self, items: &'i [T]) -> &'i T {
        &items[self.below(items.len())]
    }

    /// Returns a copy of one of the items.
    ///
    /// # Panics
    /// If there are no items.
    pub fn choose<T: Copy>(&mut self, items: &[T]) -> T {
        *self.pick(items)
    }

    /// Puts the items in a random order.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.below(last + 1));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_those_of_splitmix64() {
        // The first outputs of the reference implementation for seed 1234567.
        let mut dice = Dice::new(1_234_567);
        let numbers = [(); 3].map(|()| dice.next_number());
        assert_eq!(
            numbers,
            [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423]
        );
    }

    #[test]
    fn each_seed_and_each_case_has_its_own_sequence() {
        let rolls = |mut dice: Dice| [(); 8].map(|()| dice.below(1000));
        assert_eq!(rolls(Dice::new(7)), rolls(Dice::new(7)));
        assert_ne!(rolls(Dice::new(7)), rolls(Dice::new(8)));
        assert_ne!(rolls(Dice::of_case(7, 1)), rolls(Dice::of_case(7, 2)));
        assert_ne!(rolls(Dice::of_case(7, 1)), rolls(Dice::of_case(8, 1)));
    }

    #[test]
    fn shuffling_loses_nothing() {
        let mut items: Vec<u32> = (0..50).collect();
        Dice::new(1).shuffle(&mut items);
        assert_ne!(items, (0..50).collect::<Vec<_>>());
        items.sort_unstable();
        assert_eq!(items, (0..50).collect::<Vec<_>>());
    }
}
