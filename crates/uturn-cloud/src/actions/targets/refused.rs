//! Targets that a data plane should not call for a tenant: its machine itself, and what only that
//! machine can reach.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr};

use super::address::first_private_address;
use super::named::NamedTarget;
use crate::actions::check::value_error;
use crate::state::{TargetHolder, Transaction};
use crate::wire::error::ApiError;

/// Refuses targets at an address of a data plane's machine, of a load balancer, or of no machine.
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
    if !refused.local {
        return Ok(());
    }
    let address = |target: &NamedTarget| match &target.holder {
        TargetHolder::Interface(address) => Some(*address),
        TargetHolder::Instance(id) => first_private_address(context.inventory, context.region, id),
    };
    let addresses: BTreeSet<IpAddr> =
        targets.filter_map(address).map(|address| address.to_canonical()).collect();
    let of_balancers = transaction.addresses_among(&addresses);
    for address in addresses {
        let why = match kind(address) {
            Some(kind) => kind,
            None if of_balancers.contains(&address) => "the address of a load balancer",
            None if refused.addresses.contains(&address) => "an address of the cloud itself",
            None => continue,
        };
        return Err(value_error(format!("{address} cannot be a target: it is {why}")));
    }
    Ok(())
}

/// The kind of an address that is no other machine's.
fn kind(address: IpAddr) -> Option<&'static str> {
    let is_link_local = match address {
        IpAddr::V4(address) => address.is_link_local(),
        IpAddr::V6(address) => address.is_unicast_link_local(),
    };
    let is_of_no_host = match address {
        IpAddr::V4(address) => address.octets()[0] == 0 || address == Ipv4Addr::BROADCAST,
        IpAddr::V6(address) => address.is_unspecified(),
    };
    match () {
        () if address.is_loopback() => Some("a loopback address"),
        () if address.is_multicast() => Some("a multicast address"),
        () if is_link_local => Some("a link-local address"),
        () if is_of_no_host => Some("no host's address"),
        () => None,
    }
}
