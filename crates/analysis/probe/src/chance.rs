//! Exact probabilities of counts.

/// Returns the probability of `count` or fewer hits in `of` tries with this share, and that of
/// `count` or more.
pub(crate) fn tails(count: u64, of: u64, share: f64) -> (f64, f64) {
    let sum = |range: std::ops::RangeInclusive<u64>| -> f64 {
        range.map(|hits| binomial(hits, of, share)).sum::<f64>().min(1.0)
    };
    (sum(0..=count), sum(count..=of))
}

fn binomial(hits: u64, of: u64, share: f64) -> f64 {
    if share <= 0.0 || share >= 1.0 {
        let certain = if share <= 0.0 { 0 } else { of };
        return if hits == certain { 1.0 } else { 0.0 };
    }
    let ways: f64 = (1..=hits).map(|at| ((of - hits + at) as f64 / at as f64).ln()).sum();
    (ways + hits as f64 * share.ln() + (of - hits) as f64 * (1.0 - share).ln()).exp()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn known_values() {
        let near = |a: f64, b: f64| (a - b).abs() < 1e-12;
        let (low, high) = tails(0, 12, 0.5);
        assert!(near(low, 0.5f64.powi(12)) && near(high, 1.0));
        let (low, high) = tails(12, 12, 1.0);
        assert!(near(low, 1.0) && near(high, 1.0));
        assert!(near(tails(11, 12, 1.0).0, 0.0) && near(tails(1, 12, 0.0).1, 0.0));
    }

    proptest! {
        #[test]
        fn both_tails_have_the_count_in_common(n in 1u64..300, p in 0.0f64..=1.0, k in 0u64..300) {
            let k = k.min(n);
            let (low, high) = tails(k, n, p);
            prop_assert!((low + high - 1.0 - binomial(k, n, p)).abs() < 1e-6);
        }
    }
}
