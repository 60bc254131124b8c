//! The address of a target.

use std::net::{IpAddr, SocketAddr};

use crate::inventory::Inventory;
use crate::state::{Target, TargetHolder};

/// Returns the address at which a target listens; `None` for an instance that no longer exists.
pub fn address(target: &Target, inventory: &Inventory, region: &str) -> Option<SocketAddr> {
    let ip = match &target.holder {
        TargetHolder::Interface(address) => *address,
        TargetHolder::Instance(id) => first_private_address(inventory, region, id)?,
    };
    Some(SocketAddr::new(ip, target.port))
}

/// Returns the address at which an instance is reached.
pub(super) fn first_private_address(
    inventory: &Inventory,
    region: &str,
    id: &str,
) -> Option<IpAddr> {
    inventory.instance(region, id)?.private_addresses.first().copied()
}
