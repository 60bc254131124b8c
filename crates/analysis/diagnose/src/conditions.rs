//! What has to be so for a finding or a verdict that rests on something supposed.

use uturn_model::{Assumption, Mechanism, ObjectKind, Text, Verdict};
use uturn_path::{supposed_of_balancer, supposed_of_servers};

use crate::{Code, Severity};

/// What has to be so for what goes wrong in a verdict that has its steps.
pub fn of_verdict(verdict: &Verdict, target: ObjectKind) -> Vec<Text> {
    let codes = Code::of_verdict(verdict, target);
    let causes = codes.into_iter().zip(verdict.mechanisms.iter());
    let mut all: Vec<Text> =
        causes.flat_map(|(code, mechanism)| conditions(code, *mechanism, verdict)).collect();
    all.dedup();
    all
}

/// What has to be so for a finding that rests on what servers are supposed to expect, or on what a
/// load balancer is supposed to do with packets.
pub(crate) fn conditions(code: Code, mechanism: Mechanism, verdict: &Verdict) -> Vec<Text> {
    let is_of_header = code == Code::ProxyHeaderLost;
    let expected = |supposed: &Assumption| supposed_of_servers(supposed).filter(|_| is_of_header);
    // Which targets it has, and which it leaves out, is a part of that.
    let is_of_packets = matches!(
        mechanism,
        Mechanism::AsymmetricReturn
            | Mechanism::LocalSourceDrop
            | Mechanism::VipUnknown
            | Mechanism::NoEndpoint
            | Mechanism::NoCandidate
    );
    let of_balancer =
        |supposed: &Assumption| supposed_of_balancer(supposed).filter(|_| is_of_packets);
    let first = |what: &dyn Fn(&Assumption) -> Option<Text>| verdict.supposed.iter().find_map(what);
    first(&expected).or_else(|| first(&of_balancer)).into_iter().collect()
}

/// How bad a finding can be with these conditions. That servers expect a header is only concluded
/// from the load balancer that sends one: there are servers that take connections with and without.
/// What a load balancer asks of its targets is up to settings that no object has.
pub(crate) fn most_severe(code: Code, conditions: &[Text]) -> Severity {
    match code {
        Code::ProxyHeaderLost | Code::NoCandidate if !conditions.is_empty() => Severity::Warning,
        _ => Severity::Error,
    }
}
