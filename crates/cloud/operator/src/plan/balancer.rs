//! The calls for a load balancer itself.

use super::call::{Call, Creation};
use crate::clb::BalancerSettings;
use crate::observed;

/// Creates a load balancer unless it exists, and changes its settings.
pub(super) fn calls(
    found: Option<&observed::Balancer>,
    wanted: &BalancerSettings,
    creation: Option<&Creation>,
) -> Vec<Call> {
    let mut calls = Vec::new();
    let mut there = found.map(|found| found.settings.clone()).unwrap_or_default();
    if let (None, Some(request)) = (found, creation) {
        let mut request = request.clone();
        if wanted.passes_to_target.is_some() {
            request.load_balancer_pass_to_target = wanted.passes_to_target;
        }
        there.passes_to_target = request.load_balancer_pass_to_target;
        there.security_groups = Some(Vec::new());
        calls.push(Call::CreateBalancer(Box::new(request)));
    }
    let mut changes = wanted.difference(&there);
    let groups = changes.security_groups.take();
    let addresses = changes.snat_addresses.take();
    if !changes.is_empty() {
        calls.push(Call::ModifyBalancer(changes));
    }
    calls.extend(groups.map(Call::SetSecurityGroups));
    calls.extend(addresses.map(Call::CreateSnatAddresses));
    calls
}
