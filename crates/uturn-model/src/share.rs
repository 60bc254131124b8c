//! A share of a whole: of calls, of packets, of picks.

use std::cmp::Ordering;
use std::fmt;

/// A number from 0 to 1: how much of a whole something is.
///
/// Shares are products and sums of fractions such as thirds, so two that mean the same differ
/// in their last digits: [`Share::is_about`] and its like allow for [`Share::EPSILON`], while
/// `==` and `<` compare all digits.
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd)]
pub struct Share(f64);

impl Share {
    /// What two shares that mean the same differ by at most. One in a million is less than
    /// anything that is reported, and more than what rounding and leaving out rare ways add up
    /// to.
    pub const EPSILON: f64 = 1e-6;
    /// None of it.
    pub const NONE: Self = Self(0.0);
    /// All of it.
    pub const ALL: Self = Self(1.0);

    /// A share from a number. What rounding put outside of 0 to 1 is moved to the nearer end.
    pub fn new(number: f64) -> Self {
        Self(number.clamp(0.0, 1.0))
    }

    /// So many of so many; none of nothing.
    pub fn of(part: usize, whole: usize) -> Self {
        Self::new(part as f64 / whole.max(1) as f64)
    }

    /// The number.
    pub fn get(self) -> f64 {
        self.0
    }

    /// The share of all the rest.
    #[must_use]
    pub fn complement(self) -> Self {
        Self::new(1.0 - self.0)
    }

    /// This share of a share.
    #[must_use]
    pub fn times(self, other: Self) -> Self {
        Self(self.0 * other.0)
    }

    /// This and another that excludes it.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self::new(self.0 + other.0)
    }

    /// Shares that exclude each other, added up.
    pub fn sum(shares: impl IntoIterator<Item = Self>) -> Self {
        Self::new(shares.into_iter().map(Self::get).sum())
    }

    /// Scales shares so that they add up to 1. Leaves them alone if they add up to 0.
    pub fn normalise<'s>(shares: impl IntoIterator<Item = &'s mut Self>) {
        let shares: Vec<&mut Self> = shares.into_iter().collect();
        let total: f64 = shares.iter().map(|share| share.0).sum();
        if total > 0.0 {
            shares.into_iter().for_each(|share| *share = Self::new(share.0 / total));
        }
    }

    /// The larger of two.
    #[must_use]
    pub fn larger(self, other: Self) -> Self {
        if other.0 > self.0 { other } else { self }
    }

    /// Whether it is 0, but for rounding.
    pub fn is_none(self) -> bool {
        self.is_about(Self::NONE)
    }

    /// Whether it is 1, but for rounding.
    pub fn is_all(self) -> bool {
        self.is_about(Self::ALL)
    }

    /// Whether it is the same as another, but for rounding.
    pub fn is_about(self, other: Self) -> bool {
        (self.0 - other.0).abs() < Self::EPSILON
    }

    /// Whether it is more than another, and not by rounding.
    pub fn is_more_than(self, other: Self) -> bool {
        self.0 - other.0 >= Self::EPSILON
    }

    /// Compares the numbers as they are, with all their digits.
    pub fn exact_cmp(&self, other: &Self) -> Ordering {
        self.0.total_cmp(&other.0)
    }

    /// In units of [`Share::EPSILON`], rounded: equal for shares that are the same, but for
    /// those on an edge.
    pub fn rounded(self) -> u64 {
        (self.0 / Self::EPSILON).round() as u64
    }

    /// Compares what is left of the numbers after rounding, as a sort needs it: unlike
    /// [`Share::is_about`], this is transitive.
    pub fn rounded_cmp(&self, other: &Self) -> Ordering {
        self.rounded().cmp(&other.rounded())
    }
}

impl From<Share> for f64 {
    fn from(share: Share) -> Self {
        share.0
    }
}

impl fmt::Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_rounding_leaves_is_nothing() {
        let third = Share::new(1.0 / 3.0);
        let all = Share::sum([third; 3]);
        assert!(all.is_all() && all.complement().is_none());
        assert!(Share::new(0.1).plus(Share::new(0.2)).is_about(Share::new(0.3)));
        assert!(!Share::new(1e-5).is_none());
        assert_eq!(Share::new(1.0 + 1e-12).get(), 1.0);
        assert_eq!(Share::of(1, 4).times(Share::of(1, 2)).get(), 0.125);
        assert!(Share::of(0, 0).is_none());
    }

    #[test]
    fn comparing() {
        let (half, more) = (Share::new(0.5), Share::new(0.5 + 1e-9));
        assert!(half.is_about(more) && !more.is_more_than(half));
        assert_eq!(half.rounded_cmp(&more), Ordering::Equal);
        assert_eq!(half.exact_cmp(&more), Ordering::Less);
        assert!(Share::ALL.is_more_than(half));
    }

    #[test]
    fn normalised_shares_add_up_to_one() {
        let mut shares = [Share::new(0.1), Share::new(0.3)];
        Share::normalise(&mut shares);
        assert!(shares[0].is_about(Share::of(1, 4)) && shares[1].is_about(Share::of(3, 4)));
        let mut none = [Share::NONE; 2];
        Share::normalise(&mut none);
        assert!(none.iter().all(|share| share.is_none()));
    }
}
