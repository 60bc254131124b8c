//! Pseudo-random numbers from a seed, the same on every machine.

/// A generator of such numbers (SplitMix64).
#[derive(Clone, Debug)]
pub(super) struct Dice(u64);

impl Dice {
    /// The generator of the scenario of this number. Each scenario has its own, so that it can be
    /// generated without the ones before it.
    pub(super) fn new(seed: u64, number: u64) -> Self {
        let mut of_seed = Self(seed);
        Self(of_seed.next() ^ Self(number).next())
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// From 0 to one less than `sides`, which must not be 0.
    pub(super) fn below(&mut self, sides: usize) -> usize {
        usize::try_from(self.next() % sides as u64).expect("it is below a usize")
    }

    /// From the first to the last.
    pub(super) fn between(&mut self, first: usize, last: usize) -> usize {
        first + self.below(last - first + 1)
    }

    /// Once in `times`.
    pub(super) fn once_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }

    /// One of them; there must be one.
    pub(super) fn pick<'i, T: ?Sized>(&mut self, items: &[&'i T]) -> &'i T {
        items[self.below(items.len())]
    }
}
