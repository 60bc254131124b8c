//! Mutants of seeds, the same on every machine.

use uturn_dice::Dice;

/// Tokens that break parsers more often than random bytes.
const TOKENS: [&[u8]; 22] = [
    b"\n",
    b"\r\n",
    b"\t",
    b" ",
    b"\0",
    b"\"",
    b"'",
    b"\\",
    b"-",
    b"--",
    b"/",
    b":",
    b": ",
    b"!",
    b"[",
    b"}",
    b"---\n",
    b"0",
    b"65536",
    b"4294967296",
    b"-1",
    "\u{fffd}é".as_bytes(),
];

/// The maximum length of a mutant.
const LONGEST: usize = 1 << 16;

/// An endless, reproducible sequence of mutants of some seeds.
#[derive(Clone, Debug)]
pub struct Mutants<'a> {
    seeds: &'a [Vec<u8>],
    dice: Dice,
}

impl<'a> Mutants<'a> {
    /// Creates the sequence with this number. Without seeds, mutates an empty input.
    pub fn new(seeds: &'a [Vec<u8>], number: u64) -> Self {
        Self { seeds, dice: Dice::new(number) }
    }

    fn seed(&mut self) -> &'a [u8] {
        match self.seeds.len() {
            0 => &[],
            count => &self.seeds[self.below(count)],
        }
    }

    fn change(&mut self, data: &mut Vec<u8>) {
        let (from, to) = self.range(data.len());
        match self.below(8) {
            0 if !data.is_empty() => {
                let at = self.below(data.len());
                data[at] ^= 1 << self.below(8);
            }
            1 => data.truncate(from),
            2 => drop(data.drain(from..to)),
            3 => {
                let piece = data[from..to].to_vec();
                data.splice(to..to, piece);
            }
            4 => {
                let token = TOKENS[self.below(TOKENS.len())];
                data.splice(from..from, token.iter().copied());
            }
            5 => {
                let other = self.seed();
                let (start, end) = self.range(other.len());
                data.splice(from..to, other[start..end].iter().copied());
            }
            6 => self.move_line(data),
            _ => self.change_number(data),
        }
        data.truncate(LONGEST);
    }

    /// Moves a line to another place.
    fn move_line(&mut self, data: &mut Vec<u8>) {
        let mut lines: Vec<Vec<u8>> =
            data.split_inclusive(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect();
        if lines.len() > 1 {
            let line = lines.remove(self.below(lines.len()));
            lines.insert(self.below(lines.len() + 1), line);
            *data = lines.concat();
        }
    }

    /// Replaces one digit.
    fn change_number(&mut self, data: &mut [u8]) {
        let digits: Vec<usize> = (0..data.len()).filter(|i| data[*i].is_ascii_digit()).collect();
        if !digits.is_empty() {
            data[digits[self.below(digits.len())]] = b'0' + self.below(10) as u8;
        }
    }

    /// Returns a range within `length`: mostly short, sometimes all of it.
    fn range(&mut self, length: usize) -> (usize, usize) {
        let from = self.below(length + 1);
        let rest = length - from;
        let longest = if self.below(4) == 0 { rest } else { rest.min(24) };
        (from, from + self.below(longest + 1))
    }

    fn below(&mut self, bound: usize) -> usize {
        self.dice.below(bound)
    }
}

impl Iterator for Mutants<'_> {
    type Item = Vec<u8>;

    fn next(&mut self) -> Option<Vec<u8>> {
        let mut data = self.seed().to_vec();
        for _ in 0..=self.below(4) {
            self.change(&mut data);
        }
        Some(data)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn the_same_number_gives_the_same_mutants() {
        let seeds = [b"pod/shop/web-0".to_vec(), b"outside/1.2.3.4\nnode/n1\n".to_vec()];
        let some = |number| Mutants::new(&seeds, number).take(500).collect::<Vec<_>>();
        assert_eq!(some(1), some(1));
        assert_ne!(some(1), some(2));
    }

    #[test]
    fn mutants_differ_from_each_other_and_stay_short() {
        let seeds = [vec![b'7'; LONGEST - 3]];
        let mutants: Vec<_> = Mutants::new(&seeds, 3).take(200).collect();
        assert!(mutants.iter().all(|mutant| mutant.len() <= LONGEST));
        assert!(mutants.iter().collect::<BTreeSet<_>>().len() > 150);
    }

    #[test]
    fn nothing_to_start_from_is_no_trouble() {
        assert!(Mutants::new(&[], 4).take(200).any(|mutant| !mutant.is_empty()));
        assert!(Mutants::new(&[Vec::new()], 5).take(200).any(|mutant| mutant.is_empty()));
    }
}
