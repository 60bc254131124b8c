//! vpc `DescribeAddresses`: the public addresses of instances.

use std::net::{IpAddr, Ipv4Addr};

use uturn_cloud_api::vpc::{Address, DescribeAddressesRequest, DescribeAddressesResponse};
use uturn_cloud_api::wire::error::{ApiError, ErrorCode};

use super::networks::{rules, selection};
use super::selection::{Rules, check_found};
use crate::actions::page::Page;
use crate::ids::base_36;
use crate::inventory::Instance;
use crate::state::Transaction;

/// The filters.
const FILTERS: Rules = rules(
    "address-id",
    &[
        "address-id",
        "address-name",
        "address-ip",
        "address-status",
        "instance-id",
        "private-ip-address",
        "network-interface-id",
        "is-arrears",
        "instance-type",
        "address-type",
        "address-isp",
        "dedicated-cluster-id",
        "tag-key",
        "tag-value",
        "tag:",
    ],
);

/// `DescribeAddresses`. INF: every public IPv4 address of an instance counts as an elastic one.
pub(in crate::actions) fn describe(
    transaction: &mut Transaction<'_>,
    request: &DescribeAddressesRequest,
) -> Result<DescribeAddressesResponse, ApiError> {
    let wanted = request.address_ids.as_ref();
    let selection = selection(wanted, request.filters.as_ref(), FILTERS)?;
    let page = Page::of(request.offset, request.limit, ErrorCode::ValueRange)?;
    let context = &transaction.context;
    let instances = context.inventory.instances(context.region, None, None);
    let mut found: Vec<Address> = instances.iter().flat_map(|instance| elastic(instance)).collect();
    let is_there = |id: &str| found.iter().any(|known| known.address_id.as_deref() == Some(id));
    check_found(wanted, is_there, ErrorCode::InvalidAddressIdNotFound)?;
    found.retain(|address| {
        selection.passes(|filter| {
            let value = match filter {
                "address-id" => &address.address_id,
                "address-name" => &address.address_name,
                "address-ip" => &address.address_ip,
                "address-status" => &address.address_status,
                "instance-id" => &address.instance_id,
                "private-ip-address" => &address.private_address_ip,
                "instance-type" => &address.instance_type,
                "address-type" => &address.address_type,
                "is-arrears" => return vec!["FALSE".to_owned()],
                _ => &None,
            };
            value.iter().cloned().collect()
        })
    });
    let total_count = i64::try_from(found.len()).ok();
    Ok(DescribeAddressesResponse { total_count, address_set: Some(page.take(found)) })
}

fn elastic(instance: &Instance) -> impl Iterator<Item = Address> {
    let private = instance.private_addresses.iter().find(|address| address.is_ipv4());
    let addresses = instance.public_addresses.iter().filter_map(|address| match address {
        IpAddr::V4(address) => Some(*address),
        IpAddr::V6(_) => None,
    });
    addresses.map(move |address| Address {
        address_id: Some(id_of(address)),
        address_name: Some(id_of(address)),
        address_status: Some("BIND".to_owned()),
        address_ip: Some(address.to_string()),
        instance_id: Some(instance.id.clone()),
        private_address_ip: private.map(ToString::to_string),
        is_arrears: Some(false),
        is_blocked: Some(false),
        is_eip_direct_connection: Some(false),
        address_type: Some("EIP".to_owned()),
        cascade_release: Some(false),
        tag_set: Some(Vec::new()),
        instance_type: Some("CVM".to_owned()),
        ..Address::default()
    })
}

/// Returns the id of an address, which is the address in base 36.
fn id_of(address: Ipv4Addr) -> String {
    format!("eip-{}", base_36(u32::from(address).into(), 8))
}
