//! Describes the outcomes of a flow in a line.

use uturn_model::{Mechanism, Outcome, Share};

/// Describes outcomes: `hangs (security-group)`, `33 % hangs, 67 % answered at once
/// (asymmetric-return)`.
pub(crate) fn outcomes_and_reasons(
    outcomes: &[(Outcome, Share)],
    mechanisms: &[Mechanism],
) -> String {
    let outcomes = outcomes.iter().map(|(outcome, share)| {
        if share.is_all() {
            outcome.to_string()
        } else {
            format!("{:.0} % {outcome}", share.get() * 100.0)
        }
    });
    let outcomes = outcomes.collect::<Vec<_>>().join(", ");
    let reasons: Vec<&str> = mechanisms.iter().map(|mechanism| mechanism.as_str()).collect();
    match reasons.as_slice() {
        [] => outcomes,
        some => format!("{outcomes} ({})", some.join(", ")),
    }
}
