//! Load balancers in the form of answers.
//!
//! Members that are empty in the documented answers are empty texts here too, because clients do
//! not check them for `null`. All other unset members are `null`.

use std::net::IpAddr;

use uturn_cloud_api::clb::{
    ExclusiveCluster, InternetAccessible, LoadBalancer as Described, SnatIp, TargetRegionInfo,
    ZoneInfo,
};
use uturn_cloud_api::unserved::Unserved;

use crate::actions::number::number_of;
use crate::actions::time;
use crate::state::{IpVersion, LoadBalancer, Transaction};

/// The status of a load balancer that is being created.
const CREATING: u64 = 0;
/// The status of a load balancer that runs.
const RUNNING: u64 = 1;

/// Returns a load balancer in the form of `DescribeLoadBalancers`.
pub(in crate::actions) fn view(
    transaction: &Transaction<'_>,
    load_balancer: &LoadBalancer,
) -> Described {
    let region = transaction.context.region;
    let empty = || Some(String::new());
    let text = |text: Option<&String>| Some(text.cloned().unwrap_or_default());
    let attributes = &load_balancer.attributes;
    let is_v6 = load_balancer.ip_version != IpVersion::V4;
    let domain = domain(load_balancer, region);
    Described {
        load_balancer_id: Some(load_balancer.id.clone()),
        load_balancer_name: Some(load_balancer.name.clone()),
        load_balancer_type: Some(type_of(load_balancer).to_owned()),
        forward: Some(1),
        domain: Some(domain.clone()),
        load_balancer_vips: Some(vips(load_balancer)),
        status: Some(status(transaction, load_balancer)),
        create_time: Some(time::written(load_balancer.created)),
        status_time: Some(time::written(load_balancer.status_changed)),
        project_id: Some(load_balancer.project),
        vpc_id: Some(load_balancer.vpc.clone()),
        open_bgp: Some(0),
        snat: Some(false),
        isolation: Some(0),
        log: empty(),
        subnet_id: text(load_balancer.subnet.as_ref()),
        tags: Some(load_balancer.tags.clone()),
        secure_groups: Some(load_balancer.security_groups.clone()),
        target_region_info: Some(attributes.target_region.clone().unwrap_or_else(|| {
            TargetRegionInfo {
                region: region.to_owned(),
                vpc_id: load_balancer.vpc.clone(),
                numerical_vpc_id: None,
            }
        })),
        anycast_zone: empty(),
        address_ip_version: Some(if is_v6 { "ipv6" } else { "ipv4" }.to_owned()),
        numerical_vpc_id: Some(numerical_vpc(&load_balancer.vpc)),
        vip_isp: load_balancer.vip_isp.clone(),
        master_zone: zone(load_balancer.zone.as_ref(), region),
        backup_zone_set: zone(attributes.backup_zone.as_ref(), region).map(|zone| vec![zone]),
        isolated_time: None,
        expire_time: None,
        charge_type: Some(load_balancer.charge_type.clone()),
        network_attributes: network_attributes(load_balancer),
        prepaid_attributes: attributes.prepaid.clone(),
        log_set_id: empty(),
        log_topic_id: empty(),
        address_ipv6: ipv6(load_balancer),
        extra_info: None,
        is_d_dos: Some(false),
        config_id: text(load_balancer.custom_config.as_ref()),
        load_balancer_pass_to_target: Some(load_balancer.passes_to_target),
        exclusive_cluster: Some(ExclusiveCluster::default()),
        ipv6_mode: ipv6_mode(load_balancer),
        snat_pro: Some(load_balancer.snat_pro),
        snat_ips: Some(snat_ips(load_balancer)),
        sla_type: text(load_balancer.sla_type.as_ref()),
        is_block: Some(false),
        is_block_time: empty(),
        local_bgp: Some(false),
        cluster_tag: None,
        mix_ip_target: Some(false),
        zones: None,
        nfv_info: empty(),
        health_log_set_id: empty(),
        health_log_topic_id: empty(),
        cluster_ids: None,
        attribute_flags: Some(attribute_flags(transaction, load_balancer)),
        load_balancer_domain: Some(domain),
        egress: text(attributes.egress.as_ref()),
        exclusive: Some(0),
        target_count: None,
        associate_endpoint: text(attributes.endpoint.as_ref()),
        available_zone_affinity_info: attributes.zone_affinity.clone(),
    }
}

/// Returns the number that a network has beside its id. It is always set, because clients do not
/// check it for `null`.
fn numerical_vpc(vpc: &str) -> u64 {
    1 + number_of(vpc, 10_000_000)
}

/// Returns `OPEN` or `INTERNAL`.
pub(super) fn type_of(load_balancer: &LoadBalancer) -> &'static str {
    if load_balancer.is_public { "OPEN" } else { "INTERNAL" }
}

/// Returns 0 until the task that creates the load balancer is done, then 1. INF: if that task
/// failed, the load balancer does not run.
pub(super) fn status(transaction: &Transaction<'_>, load_balancer: &LoadBalancer) -> u64 {
    let task = transaction.task(&load_balancer.last_task);
    let is_not_created = task.is_some_and(|task| {
        let is_done = task.status_code(transaction.context.now) == 0;
        task.began == load_balancer.created && !is_done
    });
    if is_not_created { CREATING } else { RUNNING }
}

/// Returns the domain of a load balancer that has one instead of addresses, or the empty text.
pub(super) fn domain(load_balancer: &LoadBalancer, region: &str) -> String {
    if load_balancer.attributes.has_domain {
        format!("{}.clb.{region}.tencentclb.com", load_balancer.id)
    } else {
        String::new()
    }
}

/// Returns the IPv4 addresses; none for a load balancer with a domain.
fn vips(load_balancer: &LoadBalancer) -> Vec<String> {
    let is_listed = |address: &&IpAddr| address.is_ipv4() && !load_balancer.attributes.has_domain;
    load_balancer.addresses.iter().filter(is_listed).map(ToString::to_string).collect()
}

/// Returns the IPv6 address.
pub(super) fn ipv6(load_balancer: &LoadBalancer) -> Option<String> {
    let mut addresses = load_balancer.addresses.iter();
    addresses.find(|address| address.is_ipv6()).map(ToString::to_string)
}

/// Returns the API's name for an IPv6 load balancer's treatment of its clients' packets.
pub(super) fn ipv6_mode(load_balancer: &LoadBalancer) -> Option<String> {
    match load_balancer.ip_version {
        IpVersion::V4 => None,
        IpVersion::V6Translated => Some("IPv6Nat64".to_owned()),
        IpVersion::V6 => Some("IPv6FullChain".to_owned()),
    }
}

/// Returns the charge type and bandwidth; `None` for private load balancers without a class.
pub(super) fn network_attributes(load_balancer: &LoadBalancer) -> Option<InternetAccessible> {
    load_balancer.bandwidth.map(|bandwidth| InternetAccessible {
        internet_charge_type: load_balancer.internet_charge_type.clone(),
        internet_max_bandwidth_out: Some(bandwidth),
        bandwidthpkg_sub_type: load_balancer.attributes.bandwidth_package.clone(),
    })
}

/// Returns the flags of a load balancer, including those for a load balancer or listeners that are
/// not served.
pub(super) fn attribute_flags(
    transaction: &Transaction<'_>,
    load_balancer: &LoadBalancer,
) -> Vec<String> {
    let unserved = transaction.context.health.unserved(&load_balancer.id);
    let flags = [
        ("DeleteProtect", load_balancer.is_delete_protected),
        (
            Unserved::SOME_LISTENERS,
            transaction.context.health.has_unserved_listeners(&load_balancer.id),
        ),
    ];
    let set = flags.into_iter().filter(|(_, is_set)| *is_set);
    set.map(|(flag, _)| flag.to_owned()).chain(unserved.map(Unserved::flag)).collect()
}

fn snat_ips(load_balancer: &LoadBalancer) -> Vec<SnatIp> {
    let addresses = load_balancer.snat_addresses.iter();
    addresses
        .map(|address| SnatIp {
            subnet_id: address.subnet.clone(),
            ip: Some(address.ip.to_string()),
        })
        .collect()
}

/// Returns a zone with its number or its name, whichever is known.
fn zone(zone: Option<&String>, region: &str) -> Option<ZoneInfo> {
    let zone = zone?;
    let number = zone.parse().ok();
    Some(ZoneInfo {
        zone_id: number,
        zone: number.is_none().then(|| zone.clone()),
        zone_name: None,
        zone_region: Some(region.to_owned()),
        local_zone: Some(false),
        edge_zone: Some(false),
    })
}
