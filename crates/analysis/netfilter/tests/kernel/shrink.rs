//! Shrinks a failing case: removes lines as long as it still fails.

use crate::case::Case;

/// The case that remains when no more lines can be removed.
pub(crate) fn shrink(case: &Case, fails: impl Fn(&Case) -> bool) -> Case {
    let mut smallest = case.clone();
    let mut portion = smallest.0.len().div_ceil(2);
    loop {
        let before = smallest.0.len();
        let mut from = 0;
        while from < smallest.0.len() {
            let to = smallest.0.len().min(from + portion);
            let mut fewer = smallest.clone();
            fewer.0.drain(from..to);
            if fails(&fewer) {
                smallest = fewer;
            } else {
                from = to;
            }
        }
        // Removing one line may make another one removable.
        if portion > 1 {
            portion /= 2;
        } else if smallest.0.len() == before {
            return smallest;
        }
    }
}

#[test]
fn only_what_is_needed_stays() {
    let case = Case((0..100).map(|line| line.to_string()).collect());
    let has = |case: &Case, line: &str| case.0.iter().any(|kept| kept == line);
    let small = shrink(&case, |case| has(case, "3") && (has(case, "77") || has(case, "5")));
    assert_eq!(small.0, ["3", "5"]);
}
