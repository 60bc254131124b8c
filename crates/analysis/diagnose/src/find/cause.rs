//! Finds the object that causes several findings, such as a wrong security group or a node. It is
//! reported once, however many targets do not answer because of it.

use std::cmp::Reverse;
use std::collections::HashMap;

use uturn_kubeproxy::chain_names;
use uturn_model::{
    Evidence, FailurePoint, Mechanism, ObjectKind, ObjectRef, Place, Share, Text, Verdict,
};
use uturn_path::WalkError;
use uturn_scan::{ScanResult, Scanner, ToExplain};

use crate::evidence::worst;
use crate::finding::harm;

/// The reason why clients do not reach a target, as their routes show it.
struct Cause {
    /// The conditions under which they do not reach it.
    conditions: Vec<Text>,
    faults: Vec<Fault>,
}

impl Cause {
    fn of(verdict: &Verdict) -> Option<Self> {
        let route = worst(verdict)?;
        let faults = faults_at(&route.failures, *route.mechanisms.first()?);
        Some(Self { conditions: verdict.conditions.clone(), faults })
    }
}

/// An object that keeps clients from a target.
#[derive(Clone, Debug)]
pub(super) struct Fault {
    /// The object at fault, if it is not the target.
    pub(super) object: Option<ObjectRef>,
    /// Whether the target's Service itself requests the rule that stops its clients.
    pub(super) is_asked_for: bool,
    /// The place where calls fail because of the object.
    pub(super) point: FailurePoint,
}

impl Fault {
    fn of(point: &FailurePoint) -> Self {
        let is_asked_for = is_asked_for(point);
        let object = if is_asked_for { None } else { object_at_fault(point) };
        Self { object, is_asked_for, point: point.clone() }
    }
}

/// The maximum number of results that are walked to find the cause. Further findings are about
/// their targets. In the largest clusters a walk takes some 20 ms.
const MAX_WALKS: usize = 1_000;

/// The causes of failures that may have another object than the target as their cause.
pub(super) struct Causes {
    /// The causes by the index of the result.
    by_result: HashMap<usize, Vec<Cause>>,
}

impl Causes {
    /// Walks such results again, hop by hop: only the worst of them if there are very many. The
    /// selection does not depend on the order of the scan.
    pub(super) fn of(scanner: &Scanner<'_, '_>, scanned: &[ScanResult]) -> Result<Self, WalkError> {
        let may_be_shared = |result: &ScanResult| {
            let failing = result.verdicts.iter().filter(|verdict| verdict.can_fail());
            let mut mechanisms = failing.filter_map(|verdict| worst(verdict)?.mechanisms.first());
            mechanisms.any(|mechanism| is_shared(*mechanism))
        };
        let results = scanned.iter().enumerate().filter(|(_, result)| may_be_shared(result));
        let mut results: Vec<(usize, &ScanResult)> = results.collect();
        if results.len() > MAX_WALKS {
            results.sort_by_cached_key(|(_, result)| {
                let target = (result.target.object.clone(), result.target.label.clone());
                let shares = result.verdicts.iter().map(Verdict::share_failing);
                let share = shares.max_by(Share::exact_cmp).unwrap_or(Share::NONE);
                let harm = harm(share, result.clients.pods.len());
                (Reverse(harm), target, result.clients.first.clone())
            });
            results.truncate(MAX_WALKS);
        }
        let results = results.into_iter().map(|(index, result)| (index, ToExplain::from(result)));
        let (indices, results): (Vec<usize>, Vec<ToExplain<'_>>) = results.unzip();
        let of = |verdicts: &[Verdict]| verdicts.iter().filter_map(Cause::of).collect();
        let causes: Vec<Result<Vec<Cause>, WalkError>> = if scanner.is_large() {
            scanner.explain_each_worst(&results, |_, verdicts| of(verdicts))
        } else {
            results.into_iter().map(|one| Ok(of(&scanner.explain(one)?))).collect()
        };
        let by_index = |(index, causes): (usize, Result<_, _>)| Ok((index, causes?));
        let by_result = indices.into_iter().zip(causes).map(by_index).collect::<Result<_, _>>()?;
        Ok(Self { by_result })
    }

    /// Returns the faults that keep clients from a target, each object once, by the index of the
    /// result and its verdict. Calls with the same outcome may fail at several objects. Empty if
    /// the faults are not known.
    pub(super) fn of_verdict(&self, index: usize, verdict: &Verdict) -> &[Fault] {
        let Some(causes) = self.by_result.get(&index) else { return &[] };
        let same = causes.iter().find(|cause| cause.conditions == verdict.conditions);
        same.or_else(|| causes.first()).map_or(&[], |cause| &cause.faults)
    }
}

/// Returns whether the cause of a mechanism is another object than the target.
pub(super) fn is_shared(mechanism: Mechanism) -> bool {
    matches!(
        mechanism,
        Mechanism::SecurityGroup
            | Mechanism::NetworkPolicy
            | Mechanism::Firewall
            | Mechanism::NoRoute
            | Mechanism::CrossNode
            | Mechanism::NodeDown
            | Mechanism::NoBandwidth
            | Mechanism::RuleMissing
            | Mechanism::AddressTaken
            | Mechanism::HostPortOff
            | Mechanism::NameUnresolved
    )
}

/// Returns the faults at these points where calls fail for this reason, each object once. Empty if
/// only the target can be at fault.
pub(super) fn faults_at<'p>(
    points: impl IntoIterator<Item = &'p FailurePoint>,
    mechanism: Mechanism,
) -> Vec<Fault> {
    let mut faults: Vec<Fault> = Vec::new();
    if !is_shared(mechanism) {
        return faults;
    }
    let points = points.into_iter().filter(|point| point.mechanism == mechanism);
    for new in points.map(Fault::of) {
        let is_same =
            |known: &Fault| known.object == new.object && known.is_asked_for == new.is_asked_for;
        if !faults.iter().any(is_same) {
            faults.push(new);
        }
    }
    faults
}

/// Returns the object at fault. Returns `None` if the evidence does not show it.
fn object_at_fault(point: &FailurePoint) -> Option<ObjectRef> {
    match (&point.by, &point.place) {
        (Evidence::SecurityGroups { names, .. }, _) => {
            Some(ObjectRef::global(ObjectKind::SecurityGroup, names.join(", ")))
        }
        (Evidence::Object { object, .. }, _)
            if matches!(object.kind, ObjectKind::Node | ObjectKind::NetworkPolicy)
                || matches!(point.mechanism, Mechanism::AddressTaken | Mechanism::HostPortOff) =>
        {
            Some((**object).clone())
        }
        (_, Place::Node(node)) => Some(ObjectRef::global(ObjectKind::Node, node.as_str())),
        _ => None,
    }
}

/// Returns whether a Service requests the rule that stops a packet: its source ranges, which
/// kube-proxy or the load balancer applies.
fn is_asked_for(point: &FailurePoint) -> bool {
    match &point.by {
        Evidence::Object { object, .. } => {
            object.kind == ObjectKind::Service && point.mechanism == Mechanism::Firewall
        }
        by => is_of_source_ranges(by),
    }
}

/// Returns whether a rule is kube-proxy's for `spec.loadBalancerSourceRanges`.
fn is_of_source_ranges(by: &Evidence) -> bool {
    match by {
        Evidence::Iptables { chain, .. } => chain_names::is_of_source_ranges(chain),
        Evidence::Nftables { rule, .. } => chain_names::is_rule_of_source_ranges(rule),
        _ => false,
    }
}
