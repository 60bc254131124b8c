//! Passive checks: a layer-7 load balancer that gets no answer from a healthy target, because the
//! calls of one client loop, ejects the target for some time, for all clients.

use std::collections::BTreeSet;

use uturn_model::lb::{Layer, Listener, PassiveCheck};
use uturn_model::{Evidence, Mechanism, ObjectRef, Outcome, Share};
use uturn_path::Engine;
use uturn_scan::ScanResult;

use super::MAX_PAIRS;
use crate::clients::{Clients, Example};
use crate::finding::Finding;
use crate::{Code, Observation};

pub(crate) fn find(engine: &Engine<'_>, met: &[ScanResult]) -> Vec<Finding> {
    let cluster = engine.cluster();
    if cluster.nodes.len() * cluster.services.len() > MAX_PAIRS {
        return Vec::new();
    }
    let loops = |result: &&ScanResult| {
        result
            .verdicts
            .iter()
            .any(|verdict| verdict.mechanisms.contains(&Mechanism::AsymmetricReturn))
    };
    let mut reported: BTreeSet<&ObjectRef> = BTreeSet::new();
    let mut all = Vec::new();
    for result in met.iter().filter(loops) {
        let object = &result.target.object;
        let Some((listener, check)) = listener(engine, object) else { continue };
        // Ejection harms other clients only if the target answers some of them.
        let has_others = listener.rules.iter().any(|rule| rule.targets.len() > 1)
            || met.iter().any(|other| other.target == result.target && !loops(&other));
        if has_others && reported.insert(object) {
            all.push(finding(engine, result, check));
        }
    }
    all
}

/// Returns the first listener of an object that ejects targets by passive checks.
fn listener<'e>(
    engine: &'e Engine<'_>,
    object: &ObjectRef,
) -> Option<(&'e Listener, &'e PassiveCheck)> {
    let listeners = engine.listeners().iter().flat_map(|balancer| &balancer.listeners);
    let mut own =
        listeners.filter(|listener| listener.rules.iter().any(|rule| rule.owner == *object));
    own.find_map(|listener| {
        let check = listener.profile.passive_check.as_ref()?;
        (listener.protocol.layer() == Layer::L7).then_some((listener, check))
    })
}

fn finding(engine: &Engine<'_>, met: &ScanResult, check: &PassiveCheck) -> Finding {
    let object = &met.target.object;
    let written = Observation {
        place: None,
        what: format!(
            "a pod that loops gets no answer from its own node; after {} such calls in a row the \
             load balancer leaves that node out for {} s, for all clients",
            check.failures,
            check.rest.as_secs()
        )
        .into(),
        by: Evidence::object(object.clone(), engine.origin_of(object)),
    };
    Finding {
        code: Code::HealthyTargetEjected,
        severity: Code::HealthyTargetEjected.severity(),
        subject: object.clone(),
        targets: Vec::new(),
        clients: Clients::other(Clients::OTHERS),
        share_failing: Share::NONE,
        outcome: Outcome::AT_ONCE,
        mechanism: None,
        example: Example::Scanned(Box::new(met.clone())),
        failure: None,
        other_evidence: vec![written],
        cures: Vec::new(),
        untried: None,
        conditions: Vec::new(),
    }
}
