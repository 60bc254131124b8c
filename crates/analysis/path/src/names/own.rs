//! A pod's own hosts file, as the kubelet writes it. It is read before any server is asked.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use uturn_model::route::StepKind;
use uturn_model::{Evidence, Pod, Step};

use super::Resolution;

/// Resolves a host by the file. Returns `None` if the file does not have it.
pub(super) fn hosts_file(pod: &Pod, domain: &str, host: &str) -> Option<Resolution> {
    let is = |name: &str| name.eq_ignore_ascii_case(host);
    let mut addresses: Vec<IpAddr> = Vec::new();
    if is("localhost") {
        addresses.push(Ipv4Addr::LOCALHOST.into());
    }
    if ["localhost", "ip6-localhost", "ip6-loopback"].into_iter().any(is) {
        addresses.push(Ipv6Addr::LOCALHOST.into());
    }
    // A pod in the node's network has the node's file.
    if !pod.spec.host_network {
        let own = pod.spec.hostname.as_deref().unwrap_or(pod.name.name.as_str());
        let namespace = &pod.name.namespace;
        let below = pod.spec.subdomain.as_deref();
        let full = below.map(|below| format!("{own}.{below}.{namespace}.svc.{domain}"));
        if is(own) || full.is_some_and(|full| is(&full)) {
            addresses.extend(&pod.ips);
        }
    }
    let aliases = pod.spec.host_aliases.iter().filter(|(alias, _)| is(alias));
    let from_aliases = addresses.is_empty();
    addresses.extend(aliases.map(|(_, ip)| *ip));
    let first = *addresses.first()?;
    let by = Evidence::HostsFile {
        pod: Arc::new(pod.object()),
        is_alias: from_aliases,
        origin: pod.origin.clone(),
    };
    let why = format!("{host} → {first}: the pod's own hosts file");
    let steps = vec![Step::new(StepKind::Resolve, why, by)];
    Some(Resolution {
        addresses,
        asked: None,
        steps,
        supposed: Vec::new(),
        through: None,
        doubt: None,
        balancer: None,
    })
}
