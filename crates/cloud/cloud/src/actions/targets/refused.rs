//! Refuses targets that a data plane should not call for a tenant: its own machine, and addresses
//! that only that machine can reach.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use uturn_cloud_api::wire::error::ApiError;
use uturn_lb::special_address::{Special, led_to};

use super::address::first_private_address;
use super::named::NamedTarget;
use crate::actions::check::value_error;
use crate::state::{TargetHolder, Transaction};

/// Refuses targets at an address of a data plane's machine or of a load balancer, or at a special
/// address.
///
/// # Errors
///
/// Returns `InvalidParameterValue`.
pub(super) fn check<'t>(
    transaction: &Transaction<'_>,
    targets: impl Iterator<Item = &'t NamedTarget>,
) -> Result<(), ApiError> {
    let context = &transaction.context;
    let refused = context.refused_targets;
    let address = |target: &NamedTarget| match &target.holder {
        TargetHolder::Interface(address) => Some(*address),
        TargetHolder::Instance(id) => first_private_address(context.inventory, context.region, id),
    };
    // An IPv6 address may embed an IPv4 address.
    let addresses: BTreeMap<IpAddr, IpAddr> =
        targets.filter_map(address).map(|address| (led_to(address), address)).collect();
    let of_balancers = if refused.local {
        transaction.addresses_among(&addresses.keys().copied().collect())
    } else {
        BTreeSet::new()
    };
    for (inner, address) in addresses {
        let why = match Special::of(inner) {
            Some(special) if refused.local || special.is_nobodys() => special.to_string(),
            _ if !refused.local => continue,
            _ if of_balancers.contains(&inner) => "the address of a load balancer".to_owned(),
            _ if refused.addresses.contains(&inner) => "an address of the cloud itself".to_owned(),
            _ => continue,
        };
        return Err(value_error(format!("{address} cannot be a target: it is {why}")));
    }
    Ok(())
}
