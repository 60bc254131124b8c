//! Conditions under which a finding or a verdict that rests on an assumption is true.

use uturn_model::{Assumption, Mechanism, ObjectKind, Text, Verdict};
use uturn_path::{supposed_of_balancer, supposed_of_servers};

use crate::{Code, Severity};

/// Returns the conditions of the failures in a verdict that has its steps.
pub fn of_verdict(verdict: &Verdict, target: ObjectKind) -> Vec<Text> {
    let codes = Code::of_verdict(verdict, target);
    let causes = codes.into_iter().zip(verdict.mechanisms.iter());
    let mut all: Vec<Text> =
        causes.flat_map(|(code, mechanism)| conditions(code, *mechanism, verdict)).collect();
    all.dedup();
    all
}

/// Returns the conditions of a finding that rests on what servers are assumed to expect, or on what
/// a load balancer is assumed to do with packets.
pub(crate) fn conditions(code: Code, mechanism: Mechanism, verdict: &Verdict) -> Vec<Text> {
    let is_of_header = code == Code::ProxyHeaderLost;
    let expected = |supposed: &Assumption| supposed_of_servers(supposed).filter(|_| is_of_header);
    // The choice of targets is also part of what a load balancer does with packets.
    let is_of_packets = matches!(
        mechanism,
        Mechanism::AsymmetricReturn
            | Mechanism::LocalSourceDrop
            | Mechanism::VipUnknown
            | Mechanism::NoEndpoint
            | Mechanism::NoCandidate
            | Mechanism::NoTarget
    );
    let of_balancer =
        |supposed: &Assumption| supposed_of_balancer(supposed).filter(|_| is_of_packets);
    let first = |what: &dyn Fn(&Assumption) -> Option<Text>| verdict.supposed.iter().find_map(what);
    first(&expected).or_else(|| first(&of_balancer)).into_iter().collect()
}

/// Returns the highest severity of a finding with these conditions. That servers expect a header is
/// only concluded from the load balancer that sends one: some servers accept connections with and
/// without. What a load balancer's health checks require depends on settings that no object has.
pub(crate) fn most_severe(code: Code, conditions: &[Text]) -> Severity {
    match code {
        Code::ProxyHeaderLost | Code::NoCandidate if !conditions.is_empty() => Severity::Warning,
        _ => Severity::Error,
    }
}
