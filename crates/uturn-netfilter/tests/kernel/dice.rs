//! Numbers that a seed decides, the same on every machine.

/// A source of such numbers (SplitMix64).
#[derive(Clone, Debug)]
pub(crate) struct Dice(u64);

impl Dice {
    /// What decides case `number` of a seed.
    pub(crate) fn new(seed: u64, number: u64) -> Self {
        let mut dice = Self(seed);
        let first = dice.next();
        Self(first ^ number.wrapping_mul(0xd134_2543_de82_ef95))
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// From 0 to one less than `sides`.
    pub(crate) fn below(&mut self, sides: usize) -> usize {
        (self.next() % sides as u64) as usize
    }

    /// Once in `times`.
    pub(crate) fn once_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }

    /// One of them.
    pub(crate) fn pick<'i, T>(&mut self, items: &'i [T]) -> &'i T {
        &items[self.below(items.len())]
    }

    /// One of them, by its name.
    pub(crate) fn word(&mut self, words: &[&str]) -> String {
        (*self.pick(words)).to_owned()
    }

    /// So many of them, at least one, each once, in their order.
    pub(crate) fn some(&mut self, words: &[&str]) -> Vec<String> {
        let mut chosen: Vec<String> =
            words.iter().filter(|_| self.once_in(2)).map(|word| (*word).to_owned()).collect();
        if chosen.is_empty() {
            chosen.push(self.word(words));
        }
        chosen
    }

    /// `! ` once in four times.
    pub(crate) fn not(&mut self) -> &'static str {
        if self.once_in(4) { "! " } else { "" }
    }
}
