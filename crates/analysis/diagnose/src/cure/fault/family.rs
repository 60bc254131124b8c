//! Cures of Services of one family: addresses of both.

use std::net::IpAddr;

use uturn_document::edit::{Change, Tree};
use uturn_model::{Cluster, Family, Service};

use super::super::{Case, Proposal, way};
use super::service_of;
use crate::Finding;

pub(super) fn propose(case: &Case<'_>, fault: &Finding) -> Vec<Proposal> {
    service_of(case, fault).and_then(|service| both(case, service)).into_iter().collect()
}

/// Proposes that the Service has a cluster IP of each family.
fn both(case: &Case<'_>, service: &Service) -> Option<Proposal> {
    let cluster = case.cluster();
    let other = Family::of(*service.cluster_ips.first()?).other();
    let object = service.object();
    let title = format!("ipFamilyPolicy: PreferDualStack for svc/{}", service.name);
    let mut made = Proposal::new("dual-stack", 12, title).edit(
        object.clone(),
        way!["spec", "ipFamilyPolicy"],
        Change::Set(Tree::text("PreferDualStack")),
    );
    let free = free_address(cluster, other);
    made = if free.is_some() {
        made.when(
            format!("Services get addresses of {other} here"),
            true,
            "the ranges of cluster IPs, or other Services, have such addresses",
        )
    } else {
        made.ask(
            format!("Services get addresses of {other} here"),
            "--service-cluster-ip-range of the API server has a range of each family",
        )
    };
    let ips = service.cluster_ips.iter().copied().chain([free.unwrap_or_else(|| stand_in(other))]);
    let ips = ips.map(|ip| Tree::text(ip.to_string())).collect();
    Some(
        made.follow(object, way!["spec", "clusterIPs"], Change::Set(Tree::List(ips)))
            .costs("what made it (a chart, an operator) has to ask for both, or writes it back")
            .costs("a load balancer in front has to have an address of each family too"),
    )
}

/// Returns a cluster IP of a family that no Service has; `None` if nothing shows that Services get
/// such addresses.
fn free_address(cluster: &Cluster, family: Family) -> Option<IpAddr> {
    let ranges = cluster.network.service_cidrs.value.iter();
    let mut ranges = ranges.filter(|range| Family::of(range.network()) == family);
    let taken = || cluster.services.values().flat_map(|own| &own.cluster_ips);
    let is_free = |ip: &IpAddr| !taken().any(|own| own == ip);
    if let Some(range) = ranges.next() {
        return range.hosts().skip(FIRST).take(MAX).find(is_free);
    }
    let known = taken().filter(|ip| Family::of(**ip) == family).max()?;
    next_after(*known).filter(is_free)
}

/// The addresses at the beginning of a range that clusters keep for DNS and the like.
const FIRST: usize = 100;

/// The maximum number of addresses that are tried.
const MAX: usize = 10_000;

fn next_after(ip: IpAddr) -> Option<IpAddr> {
    Some(match ip {
        IpAddr::V4(ip) => {
            u32::from(ip).checked_add(1).map(|next| IpAddr::from(next.to_be_bytes()))?
        }
        IpAddr::V6(ip) => {
            u128::from(ip).checked_add(1).map(|next| IpAddr::from(next.to_be_bytes()))?
        }
    })
}

/// Returns an address that stands for one that the API server would give. Documentation has it, so
/// nothing here does.
fn stand_in(family: Family) -> IpAddr {
    match family {
        Family::V4 => IpAddr::from([203, 0, 113, 250]),
        Family::V6 => IpAddr::from([0x2001, 0xdb8, 0, 0, 0, 0, 0, 0xfa]),
    }
}
