//! Shares of requests by the reasons of their failures and the number of timeouts.
//!
//! The numbers only become [`Share`]s in [`Spread::iter`]: sums of shares times weights are more
//! than 1 before they are scaled, and a sum that is subtracted is less than 0.

use uturn_model::Share;
use uturn_path::ReasonSet;

/// The number below which shares count as zero.
pub(crate) const NOTHING: f64 = 1e-18;

/// Shares by reasons and by the number of targets that timed out.
#[derive(Clone, Debug, Default)]
pub(crate) struct Spread(pub(crate) Vec<(ReasonSet, Row)>);

/// Shares by the number of timeouts, which begins at `from`.
#[derive(Clone, Debug, Default)]
pub(crate) struct Row {
    pub(crate) from: usize,
    pub(crate) shares: Vec<f64>,
}

impl Row {
    fn end(&self) -> usize {
        self.from + self.shares.len()
    }

    fn cover(&mut self, from: usize, end: usize) {
        if self.shares.is_empty() {
            self.from = from;
        }
        if from < self.from {
            let more = self.from - from;
            self.shares.splice(0..0, std::iter::repeat_n(0.0, more));
            self.from = from;
        }
        if end > self.end() {
            self.shares.resize(end - self.from, 0.0);
        }
    }

    pub(crate) fn add(&mut self, from: usize, shares: &[f64], scale: f64) {
        if shares.is_empty() {
            return;
        }
        self.cover(from, from + shares.len());
        let at = from - self.from;
        for (sum, share) in self.shares[at..].iter_mut().zip(shares) {
            *sum += share * scale;
        }
    }
}

impl Spread {
    pub(crate) fn unit() -> Self {
        Self(vec![(ReasonSet::default(), Row { from: 0, shares: vec![1.0] })])
    }

    pub(crate) fn row(&mut self, why: ReasonSet) -> &mut Row {
        let at = match self.0.iter().position(|(known, _)| *known == why) {
            Some(at) => at,
            None => {
                self.0.push((why, Row::default()));
                self.0.len() - 1
            }
        };
        &mut self.0[at].1
    }

    pub(crate) fn add(&mut self, other: &Self, why: ReasonSet, timeouts: usize, scale: f64) {
        for (known, row) in &other.0 {
            self.row(known.and(why)).add(row.from + timeouts, &row.shares, scale);
        }
    }

    pub(crate) fn times(&self, other: &Self) -> Self {
        let mut product = Self::default();
        for (why, row) in &other.0 {
            for (timeouts, share) in
                row.shares.iter().enumerate().filter(|(_, share)| **share != 0.0)
            {
                product.add(self, *why, row.from + timeouts, *share);
            }
        }
        product.trim();
        product
    }

    pub(crate) fn power(&self, mut times: u64) -> Self {
        let (mut product, mut square) = (Self::unit(), self.clone());
        while times > 0 {
            if times & 1 == 1 {
                product = product.times(&square);
            }
            times >>= 1;
            if times > 0 {
                square = square.times(&square);
            }
        }
        product
    }

    pub(crate) fn scale(&mut self, scale: f64) {
        let shares = self.0.iter_mut().flat_map(|(_, row)| &mut row.shares);
        shares.for_each(|share| *share *= scale);
    }

    /// Removes zeros at both ends of each row.
    pub(crate) fn trim(&mut self) {
        for (_, row) in &mut self.0 {
            let is_something = |share: &f64| share.abs() >= NOTHING;
            let end = row.shares.iter().rposition(is_something).map_or(0, |last| last + 1);
            row.shares.truncate(end);
            let start = row.shares.iter().position(is_something).unwrap_or(0);
            if start > 0 {
                row.shares.drain(..start);
                row.from += start;
            }
        }
        self.0.retain(|(_, row)| !row.shares.is_empty());
    }

    /// Returns each share that counts, with the reasons and the number of timeouts.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (ReasonSet, u32, Share)> + '_ {
        self.0
            .iter()
            .flat_map(|(why, row)| {
                let shares = row.shares.iter().enumerate();
                shares.map(move |(at, share)| (*why, (row.from + at) as u32, Share::new(*share)))
            })
            .filter(|(_, _, share)| !share.is_negligible())
    }
}
