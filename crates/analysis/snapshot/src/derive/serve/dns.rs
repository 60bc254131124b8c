//! Derives the DNS of the cluster: its name servers, its domain, and what pods are told of them.

use std::collections::BTreeMap;
use std::net::IpAddr;

use uturn_model::Text;
use uturn_model::dns::{Corefile, CorefileFile, Dns};
use uturn_model::lb::NamedAddress;

use super::name_server;
use crate::decode::objects::Objects;
use crate::derive::populate::corefile;
use crate::derive::{Assumptions, joined};

/// Returns the DNS of the cluster: the Service of its name servers, and what is known of their
/// answers. `balancers` are the addresses of load balancers that have only a name.
pub(super) fn derive(
    objects: &Objects,
    balancers: BTreeMap<Text, Vec<NamedAddress>>,
    assumptions: &mut Assumptions,
) -> Dns {
    let service = corefile::service(objects);
    let corefile = objects.corefile.clone().map(|mut corefile| {
        let is_new =
            |file: &&CorefileFile| !corefile.beside.iter().any(|known| known.path == file.path);
        let custom: Vec<_> = objects.corefile_custom.iter().filter(is_new).cloned().collect();
        corefile.beside.extend(custom);
        corefile.release = name_server::release(objects, service.as_ref());
        corefile
    });
    let facts = &objects.facts;
    let stated = facts.domain.as_ref().map(|(domain, _)| domain.clone());
    let served = || domain(corefile.as_ref()?, assumptions);
    let dns = Dns {
        service,
        domain: stated.or_else(served),
        corefile,
        mounted: objects.mounted_corefile.clone(),
        of_pods: servers_of_pods(objects, assumptions),
        node_local: objects.node_local.clone(),
        outside: facts.outside.clone(),
        node_searches: facts.node_searches.clone().map(|(all, _)| all).unwrap_or_default(),
        balancers,
    };
    if dns.service.is_some() && dns.corefile.is_none() {
        assumptions.0.push(dns.supposed_corefile());
    }
    dns
}

/// Returns the name servers that the kubelets' configuration gives to pods. Servers whose address
/// nothing in the cluster has are ignored: the nodes are probably configured otherwise.
fn servers_of_pods(objects: &Objects, assumptions: &mut Assumptions) -> Vec<IpAddr> {
    let cache = objects.node_local.as_ref();
    let mut all = objects.kubelet_dns.values().filter(|servers| !servers.is_empty());
    let Some(first) = all.next().filter(|first| all.all(|other| other == *first)) else {
        return Vec::new();
    };
    let services = || objects.services.0.values().flat_map(|service| &service.cluster_ips);
    let is_cache = |ip: &IpAddr| cache.is_some_and(|cache| cache.text.contains(&ip.to_string()));
    let is_link_local = |ip: &IpAddr| matches!(ip, IpAddr::V4(ip) if ip.is_link_local());
    let is_there =
        |ip: &IpAddr| is_link_local(ip) || is_cache(ip) || services().any(|known| known == ip);
    if first.iter().all(is_there) {
        return first.clone();
    }
    assumptions.assume(
        "the name servers of pods",
        "those that the cluster has",
        format!("kubelet-config names {}, which no Service has", joined(first)),
        "look at /etc/resolv.conf in a pod",
    );
    Vec::new()
}

/// Returns the cluster's domain as CoreDNS serves it, if it is not the usual one. Kubelets are
/// assumed to give pods the same domain.
fn domain(corefile: &Corefile, assumptions: &mut Assumptions) -> Option<Text> {
    let mut zones = corefile.text.lines().flat_map(|line| {
        let mut words = line.split_whitespace();
        let is_ours = words.next() == Some("kubernetes");
        words.take_while(|word| *word != "{").filter(move |_| is_ours)
    });
    let is_name = |zone: &&str| {
        !zone.ends_with("arpa") && !zone.ends_with("arpa.") && !zone.contains(['{', '_', '/', ':'])
    };
    let all: Vec<&str> = zones.by_ref().filter(is_name).collect();
    let is_usual = |zone: &&str| zone.trim_end_matches('.') == "cluster.local";
    let zone = all.first().filter(|zone| !all.iter().any(is_usual) && **zone != ".")?;
    let zone = zone.trim_end_matches('.');
    assumptions.assume(
        "the cluster's domain",
        zone,
        format!("the Corefile at {} serves it", corefile.origin),
        "state spec.dns.domain in Facts",
    );
    Some(zone.into())
}
