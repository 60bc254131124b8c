//! Random words of rules.

use uturn_dice::Dice;

/// The sequence of case `number` of a seed.
pub(crate) fn of_case(seed: u64, number: u64) -> Dice {
    let first = Dice::new(seed).next_number();
    Dice::new(first ^ number.wrapping_mul(0xd134_2543_de82_ef95))
}

/// Random words of rules.
pub(crate) trait Words {
    /// One of the words.
    fn word(&mut self, words: &[&str]) -> String;

    /// Some of the words, at least one, in their order.
    fn some(&mut self, words: &[&str]) -> Vec<String>;

    /// `! ` with a probability of 1 in 4.
    fn not(&mut self) -> &'static str;
}

impl Words for Dice {
    fn word(&mut self, words: &[&str]) -> String {
        (*self.pick(words)).to_owned()
    }

    fn some(&mut self, words: &[&str]) -> Vec<String> {
        let mut chosen: Vec<String> =
            words.iter().filter(|_| self.once_in(2)).map(|word| (*word).to_owned()).collect();
        if chosen.is_empty() {
            chosen.push(self.word(words));
        }
        chosen
    }

    fn not(&mut self) -> &'static str {
        if self.once_in(4) { "! " } else { "" }
    }
}
