//! A share of a whole: of calls, of packets, of picks.

use std::cmp::Ordering;
use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign, Mul, MulAssign};

/// A number from 0 to 1: how much of a whole something is.
///
/// `*` is the share of a share, `+` adds shares that exclude each other.
///
/// Shares are products and sums of fractions such as thirds, so two equal shares may differ in
/// their last digits: [`Share::is_about`] and similar methods allow for [`Share::EPSILON`], while
/// `==` and `<` compare all digits.
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd)]
#[repr(transparent)]
pub struct Share(f64);

impl Share {
    /// The largest difference of two shares that count as equal. One in a million is less than
    /// anything that is reported, and more than rounding and leaving out rare ways add up to.
    pub const EPSILON: f64 = 1e-6;
    /// The largest difference of two equal shares that are computed in the same way: rules print
    /// probabilities with few digits. One in a thousand and one in a thousand and one differ by
    /// less than [`Share::EPSILON`], and by more than this.
    pub const ROUNDING: f64 = 1e-9;
    /// The share below which ways are left out. It is much less than [`Share::EPSILON`] because
    /// millions of ways can be left out.
    pub const NEGLIGIBLE: f64 = 1e-14;
    /// Nothing.
    pub const NONE: Self = Self(0.0);
    /// A half.
    pub const HALF: Self = Self(0.5);
    /// The whole.
    pub const ALL: Self = Self(1.0);

    /// Makes a share of a number. A number that rounding put outside of 0 to 1 is moved to the
    /// nearer end.
    #[inline]
    pub fn new(number: f64) -> Self {
        Self(number.clamp(0.0, 1.0))
    }

    /// Returns the share of `part` in `whole`; 0 if both are 0.
    pub fn of(part: usize, whole: usize) -> Self {
        Self::ratio(part as f64, whole.max(1) as f64)
    }

    /// Returns a weight's share of the sum of all weights.
    #[inline]
    pub fn ratio(weight: f64, all: f64) -> Self {
        Self::new(weight / all)
    }

    /// Returns the number.
    #[inline]
    pub fn get(self) -> f64 {
        self.0
    }

    /// Returns the share of the rest.
    #[must_use]
    pub fn complement(self) -> Self {
        Self::new(1.0 - self.0)
    }

    /// Returns the part of each if `count` get equal parts of the share.
    #[inline]
    #[must_use]
    pub fn split(self, count: usize) -> Self {
        Self(self.0 / count.max(1) as f64)
    }

    /// Returns the share times a factor.
    #[inline]
    #[must_use]
    pub fn scaled(self, factor: f64) -> Self {
        Self::new(self.0 * factor)
    }

    /// Returns the share multiplied by itself, `times` factors in all.
    #[inline]
    #[must_use]
    pub fn power(self, times: u64) -> Self {
        Self(self.0.powf(times as f64))
    }

    /// Returns how many of a number the share is. A share of a few need not be a whole number.
    #[inline]
    pub fn count(self, of: u64) -> f64 {
        self.0 * of as f64
    }

    /// Returns whether the share of a number is a whole number, except for rounding.
    pub fn is_whole_number_of(self, of: u64) -> bool {
        let count = self.count(of);
        (count - count.round()).abs() < Self::EPSILON
    }

    /// Scales shares so that they add up to 1. Leaves them alone if they add up to 0.
    pub fn normalise<'s>(shares: impl IntoIterator<Item = &'s mut Self>) {
        let shares: Vec<&mut Self> = shares.into_iter().collect();
        let total: f64 = shares.iter().map(|share| share.0).sum();
        if total > 0.0 {
            shares.into_iter().for_each(|share| *share = Self::new(share.0 / total));
        }
    }

    /// Returns whether shares that exclude each other add up to 1, except for rounding: whether
    /// none is missing or occurs twice.
    pub fn add_up_to_all(shares: impl IntoIterator<Item = Self>) -> bool {
        let total: f64 = shares.into_iter().map(Self::get).sum();
        (total - 1.0).abs() < Self::EPSILON
    }

    /// Returns the larger of two shares.
    #[must_use]
    pub fn larger(self, other: Self) -> Self {
        if other.0 > self.0 { other } else { self }
    }

    /// Returns whether the share is too small to follow.
    #[inline]
    pub fn is_negligible(self) -> bool {
        self.0 < Self::NEGLIGIBLE
    }

    /// Returns whether the share is too small a part of another to follow.
    #[inline]
    pub fn is_negligible_in(self, whole: Self) -> bool {
        self.0 < whole.0 * Self::NEGLIGIBLE
    }

    /// Returns whether the share is 0, except for rounding.
    #[inline]
    pub fn is_none(self) -> bool {
        self.is_about(Self::NONE)
    }

    /// Returns whether the share is 1, except for rounding.
    #[inline]
    pub fn is_all(self) -> bool {
        self.is_about(Self::ALL)
    }

    /// Returns whether two shares are equal, except for rounding.
    #[inline]
    pub fn is_about(self, other: Self) -> bool {
        (self.0 - other.0).abs() < Self::EPSILON
    }

    /// Returns whether two shares are equal, except for rounding of rules' probabilities.
    #[inline]
    pub fn is_rounded_from(self, other: Self) -> bool {
        (self.0 - other.0).abs() < Self::ROUNDING
    }

    /// Returns whether the share is neither 0 nor 1, even after rounding: whether chance decides.
    pub fn is_partial(self) -> bool {
        !self.is_none() && !self.is_all()
    }

    /// Returns whether the share is more than another, even after rounding.
    pub fn is_more_than(self, other: Self) -> bool {
        self.0 - other.0 >= Self::EPSILON
    }

    /// Compares the numbers with all their digits.
    pub fn exact_cmp(&self, other: &Self) -> Ordering {
        self.0.total_cmp(&other.0)
    }

    /// Returns the share in units of [`Share::EPSILON`], rounded: equal for equal shares, except
    /// for those on an edge.
    pub fn rounded(self) -> u64 {
        (self.0 / Self::EPSILON).round() as u64
    }

    /// Compares the rounded numbers, for sorting: unlike [`Share::is_about`], this is transitive.
    pub fn rounded_cmp(&self, other: &Self) -> Ordering {
        self.rounded().cmp(&other.rounded())
    }
}

impl Mul for Share {
    type Output = Self;

    #[inline]
    fn mul(self, other: Self) -> Self {
        Self(self.0 * other.0)
    }
}

impl MulAssign for Share {
    #[inline]
    fn mul_assign(&mut self, other: Self) {
        self.0 *= other.0;
    }
}

impl Add for Share {
    type Output = Self;

    #[inline]
    fn add(self, other: Self) -> Self {
        Self((self.0 + other.0).min(1.0))
    }
}

impl AddAssign for Share {
    #[inline]
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

/// Adds shares that exclude each other.
impl Sum for Share {
    fn sum<I: Iterator<Item = Self>>(shares: I) -> Self {
        Self::new(shares.fold(0.0, |sum, share| sum + share.0))
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
        let all: Share = [third; 3].into_iter().sum();
        assert!(all.is_all() && all.complement().is_none() && !all.is_partial());
        assert!((Share::new(0.1) + Share::new(0.2)).is_about(Share::new(0.3)));
        assert!(Share::new(1e-5).is_partial());
        assert_eq!(Share::new(1.0 + 1e-12).get(), 1.0);
        assert!(Share::of(0, 0).is_none());
    }

    #[test]
    fn parts_of_parts() {
        let (quarter, half) = (Share::of(1, 4), Share::HALF);
        let mut share = quarter * half;
        assert_eq!(share.get(), 0.125);
        share *= half;
        assert_eq!(share, Share::ratio(3.0, 48.0));
        assert_eq!(Share::ALL.split(3).get(), 1.0 / 3.0);
        assert_eq!(half.power(3).get(), 0.125);
        assert_eq!(half.power(0), Share::ALL);
        assert_eq!(quarter.scaled(2.0), half);
        assert_eq!(quarter.count(12), 3.0);
        assert!(quarter.is_whole_number_of(12) && !quarter.is_whole_number_of(6));
        assert!(Share::of(1, 3).is_whole_number_of(99_999));
    }

    #[test]
    fn what_adds_up_to_all_lacks_nothing_and_has_nothing_twice() {
        let third = Share::of(1, 3);
        assert!(Share::add_up_to_all([third; 3]));
        assert!(!Share::add_up_to_all([third; 2]) && !Share::add_up_to_all([third; 4]));
    }

    #[test]
    fn sums_stay_within_a_whole() {
        let mut sum = Share::new(0.7);
        sum += Share::new(0.3000001);
        assert_eq!(sum, Share::ALL);
        assert_eq!(Share::HALF + Share::HALF, Share::ALL);
        let none: Share = std::iter::empty().sum();
        assert_eq!(none.get().to_bits(), 0f64.to_bits(), "not minus zero");
    }

    #[test]
    fn rounded_and_negligible() {
        let (thousandth, next) = (Share::of(1, 1000), Share::of(1, 1001));
        assert!(thousandth.is_about(next) && !thousandth.is_rounded_from(next));
        // As rules print one third.
        assert!(Share::of(1, 3).is_rounded_from(Share::new(0.333_333_333_49)));
        let rare = Share::new(1e-13);
        assert!(!rare.is_negligible() && (rare * thousandth).is_negligible());
        assert!(rare.is_negligible_in(Share::ALL) == rare.is_negligible());
        assert!(!rare.is_negligible_in(thousandth));
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
