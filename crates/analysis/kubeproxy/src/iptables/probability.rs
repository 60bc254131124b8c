//! The probabilities with which rules choose endpoints.

/// The matches for one chance in `count`, by count.
pub(super) struct Probabilities(Vec<String>);

impl Probabilities {
    /// Computes the matches for up to one chance in `most`.
    pub(super) fn up_to(most: usize) -> Self {
        Self((0..=most).map(words_for).collect())
    }

    /// Returns the match for one chance in `count`. Returns `None` for the last endpoint, which
    /// needs no match.
    pub(super) fn one_in(&self, count: usize) -> Option<&str> {
        (count > 1).then(|| self.0[count].as_str())
    }
}

/// Returns the match as `iptables-save` prints it: kube-proxy writes ten decimals, the kernel keeps
/// 31 bits, and `iptables-save` prints eleven decimals.
fn words_for(count: usize) -> String {
    let printed = (1e10 / count.max(1) as f64).round() / 1e10;
    let whole = f64::from(1u32 << 31);
    let kept = (printed * whole).round() / whole;
    format!("-m statistic --mode random --probability {kept:.11}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn probabilities_are_rounded_as_by_the_kernel() {
        let probabilities = Probabilities::up_to(4);
        let printed = |count| probabilities.one_in(count).unwrap().rsplit(' ').next().unwrap();
        assert_eq!(probabilities.one_in(1), None);
        assert_eq!(printed(2), "0.50000000000");
        assert_eq!(printed(3), "0.33333333349");
        assert_eq!(printed(4), "0.25000000000");
    }
}
