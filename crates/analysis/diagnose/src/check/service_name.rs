//! Checks whether a Service's own name resolves to its address.

use uturn_model::{Flow, Service};
use uturn_path::Engine;

use super::{Check, trace_of};

/// Returns a failed check if a name resolves to another address, as with a search domain that
/// answers every name.
pub(super) fn leads_elsewhere(
    engine: &Engine<'_>,
    what: &str,
    service: &Service,
    flows: &[Flow],
) -> Option<Check> {
    let elsewhere = flows.iter().find_map(|flow| {
        let target = engine.resolve(flow).ok()?;
        let all: Vec<String> = target.addresses().iter().map(|at| at.ip().to_string()).collect();
        let is_own = target.addresses().iter().any(|at| service.cluster_ips.contains(&at.ip()));
        (!is_own && !all.is_empty()).then(|| (flow, all.join(", ")))
    });
    let (flow, addresses) = elsewhere?;
    let own: Vec<String> = service.cluster_ips.iter().map(ToString::to_string).collect();
    let evidence =
        format!("{} is sent to {addresses}, and its address is {}", flow.from, own.join(", "));
    let next = trace_of(flow);
    Some(Check::failed(what, evidence).next(next))
}
