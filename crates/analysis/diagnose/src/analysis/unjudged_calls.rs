//! Finds the reasons for unjudged calls that are not due to an unjudged object.

use std::collections::{BTreeMap, BTreeSet};

use uturn_model::route::{Step, StepKind};
use uturn_model::{Evidence, ObjectRef, Text, Unjudged, Unknown, Verdict};
use uturn_path::WalkError;
use uturn_scan::{ScanResult, Scanner, open_rule};

/// The maximum number of calls that are walked again to find their reason.
const MAX_EXPLAINED: usize = 50;

pub(super) fn of(
    scanner: &Scanner<'_, '_>,
    scanned: &[ScanResult],
) -> Result<Vec<Unjudged>, WalkError> {
    let cluster = scanner.engine().cluster();
    let known: BTreeSet<&ObjectRef> =
        cluster.unjudged.iter().flat_map(|unjudged| &unjudged.objects).collect();
    let is_open = |result: &&ScanResult| result.verdicts.iter().any(Verdict::is_open);
    let mut reasons: BTreeMap<(Text, Text), BTreeSet<ObjectRef>> = BTreeMap::new();
    let mut explained = 0;
    for result in scanned.iter().filter(is_open) {
        let object = &result.target.object;
        let reason = match result.verdicts.iter().find_map(open_rule) {
            Some(rule) => Some((rule.because.clone(), rule.settle.clone())),
            None if known.contains(object) || explained >= MAX_EXPLAINED => None,
            None => {
                explained += 1;
                let explained = scanner.explain(result)?;
                let step = unknown_step(&explained).filter(|step| match &step.by {
                    Evidence::Object { object, .. } => !known.contains(&**object),
                    _ => true,
                });
                step.map(|step| (step.why.clone(), Text::default()))
            }
        };
        if let Some(reason) = reason {
            reasons.entry(reason).or_default().insert(object.clone());
        }
    }
    let unjudged = reasons.into_iter().map(|((because, settle), objects)| Unjudged {
        subject: Unknown::Calls,
        objects: objects.into_iter().collect(),
        because,
        settle,
    });
    Ok(unjudged.collect())
}

/// Returns the last unknown step of the first route with an unknown outcome.
fn unknown_step(verdicts: &[Verdict]) -> Option<&Step> {
    let mut routes = verdicts.iter().flat_map(|verdict| &verdict.routes);
    let route = routes.find(|route| route.outcome.is_unknown())?;
    let mut steps = route.hops.iter().rev().flat_map(|hop| hop.steps.iter().rev());
    steps.find(|step| step.kind == StepKind::Unknown)
}
