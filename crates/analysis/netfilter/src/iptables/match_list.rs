//! A list of matches that stores up to two inline: most rules have one or two, and dumps have
//! hundreds of thousands of rules.

use std::fmt;
use std::ops::{Deref, DerefMut};

use super::{MarkMatch, Match};

/// The matches of a rule, in order. Dereferences to a slice.
#[derive(Clone)]
pub struct Matches(Storage);

#[derive(Clone)]
enum Storage {
    /// The number of matches in use.
    Few(u8, [Match; FEW]),
    More(Vec<Match>),
}

const FEW: usize = 2;
/// Fills unused places; dropping it is free.
const NOTHING: Match = Match::Mark(MarkMatch { not: false, value: 0, mask: 0 });

impl Matches {
    /// Appends a match.
    pub fn push(&mut self, new: Match) {
        match &mut self.0 {
            Storage::More(all) => all.push(new),
            Storage::Few(count, few) => match few.get_mut(usize::from(*count)) {
                Some(free) => {
                    *free = new;
                    *count += 1;
                }
                None => {
                    let few = std::mem::replace(few, [NOTHING; FEW]);
                    let mut all = Vec::with_capacity(FEW + 1);
                    all.extend(few);
                    all.push(new);
                    self.0 = Storage::More(all);
                }
            },
        }
    }

    /// Keeps only the matches for which `keep` returns true.
    pub fn retain(&mut self, keep: impl FnMut(&Match) -> bool) {
        let mut all = Vec::from(std::mem::take(self));
        all.retain(keep);
        *self = all.into();
    }
}

impl From<Vec<Match>> for Matches {
    fn from(mut all: Vec<Match>) -> Self {
        if all.len() > FEW {
            all.shrink_to_fit();
            return Self(Storage::More(all));
        }
        let mut few = Self::default();
        all.into_iter().for_each(|item| few.push(item));
        few
    }
}

impl From<Matches> for Vec<Match> {
    fn from(matches: Matches) -> Self {
        match matches.0 {
            Storage::Few(count, few) => few.into_iter().take(usize::from(count)).collect(),
            Storage::More(all) => all,
        }
    }
}

impl Default for Matches {
    fn default() -> Self {
        Self(Storage::Few(0, [NOTHING; FEW]))
    }
}

impl Extend<Match> for Matches {
    fn extend<I: IntoIterator<Item = Match>>(&mut self, more: I) {
        more.into_iter().for_each(|item| self.push(item));
    }
}

impl Deref for Matches {
    type Target = [Match];

    fn deref(&self) -> &[Match] {
        match &self.0 {
            Storage::Few(count, few) => &few[..usize::from(*count)],
            Storage::More(all) => all,
        }
    }
}

impl DerefMut for Matches {
    fn deref_mut(&mut self) -> &mut [Match] {
        match &mut self.0 {
            Storage::Few(count, few) => &mut few[..usize::from(*count)],
            Storage::More(all) => all,
        }
    }
}

impl<'a> IntoIterator for &'a Matches {
    type Item = &'a Match;
    type IntoIter = std::slice::Iter<'a, Match>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl PartialEq for Matches {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl Eq for Matches {}

impl fmt::Debug for Matches {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_and_many_are_the_same_to_a_reader() {
        let (mut plain, mut ours) = (Vec::new(), Matches::default());
        for number in 0..5 {
            let comment = Match::Comment(number.to_string().into());
            plain.push(comment.clone());
            ours.push(comment);
            assert_eq!(*ours, *plain);
            assert_eq!(Matches::from(plain.clone()), ours);
            assert_eq!(Vec::from(ours.clone()), plain);
        }
        let odd = |item: &Match| matches!(item, Match::Comment(text) if &**text > "2");
        ours.retain(odd);
        plain.retain(odd);
        assert_eq!(*ours, *plain);
    }
}
