//! Findings about single flows that a scan of pods does not cover.

use uturn_model::{Flow, Mechanism, ObjectRef};
use uturn_path::{Engine, WalkError};

use super::cause::{Fault, faults_at};
use super::policies;
use crate::Code;
use crate::clients::{Clients, Example};
use crate::conditions::{conditions, most_severe};
use crate::evidence::worst;
use crate::finding::Finding;

/// A finding, with the faults of other objects than its subject that may be the cause.
pub(super) type Caused = (Finding, Vec<Fault>);

/// Walks a flow towards an object. Returns the finding about its worst end if it can fail.
///
/// # Errors
/// Returns an error if the flow cannot be walked.
pub(super) fn failure(
    engine: &Engine<'_>,
    (subject, label): (&ObjectRef, &str),
    flow: Flow,
    clients: &'static str,
) -> Result<Option<Caused>, WalkError> {
    let verdict = match engine.verdict(&flow) {
        Ok(verdict) => verdict,
        Err(WalkError::Later(_) | WalkError::NoAddress(..)) => return Ok(None),
        Err(why) => return Err(why),
    };
    let Some(way) = worst(&verdict) else { return Ok(None) };
    let Some(mechanism) = way.mechanisms.first().copied() else { return Ok(None) };
    if mechanism == Mechanism::NetworkPolicy && !policies::is_stated(subject.kind, way.outcome) {
        return Ok(None);
    }
    let code = Code::of(mechanism, subject.kind);
    let conditions = conditions(code, mechanism, &verdict);
    let faults = faults_at(&way.failures, mechanism);
    let finding = Finding {
        code,
        severity: code.severity().min(most_severe(code, &conditions)),
        subject: subject.clone(),
        targets: vec![label.to_owned()],
        clients: Clients::other(clients),
        share_failing: verdict.share_failing(),
        outcome: way.outcome,
        mechanism: Some(mechanism),
        example: Example::Flow(flow),
        failure: None,
        other_evidence: Vec::new(),
        cures: Vec::new(),
        untried: None,
        conditions,
    };
    Ok(Some((finding, faults)))
}
