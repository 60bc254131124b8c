//! What is made of objects: a whole cluster, with every gap filled and every filling said.
//!
//! A value that follows from something written is *derived* and carries its ground; a value
//! that nothing gives is *supposed* and listed in [`Cluster::supposed`] with what would
//! settle it. What nobody asks for is not supposed: without load balancers, nothing is said
//! about clouds.

mod balancers;
mod endpoints;
mod families;
mod files;
mod labels;
mod network;
mod nodes;
mod owners;
mod plugin;
mod pods;
mod provider;
mod proxy;
mod ranges;
mod services;
mod unjudged;

use std::collections::BTreeMap;

use uturn_model::dns::Dns;
use uturn_model::network::Transport;
use uturn_model::{Cluster, NamespacedName, Origin, Service, Supposition, Text};

use crate::objects::Objects;

/// Makes a cluster of what was read.
pub(crate) fn cluster(mut objects: Objects) -> Cluster {
    let mut said = Said::default();
    for note in std::mem::take(&mut objects.notes) {
        let about = format!("{}: {}", note.origin, note.message);
        said.suppose(about, note.taken, note.because, note.settle);
    }
    let provider = provider::derive(&objects, &mut said);
    let mut proxy = proxy::derive(&objects, &provider, &mut said);
    owners::settle(&mut objects);
    let plugin = plugin::derive(&objects, &mut said);
    let mode = plugin::mode(&objects, &plugin);
    let mut ranges = ranges::Ranges::new(&objects);
    nodes::complete(&mut objects, mode.value, &mut ranges, &mut said);
    pods::complete(&mut objects, mode.value, &mut ranges, &mut said);
    families::complete(&mut objects, mode.value, &mut ranges, &mut said);
    files::complete(&mut objects);
    services::complete(&mut objects, &mut ranges, &mut said);
    balancers::complete(&mut objects, &provider, &mut ranges, &mut said);
    let network = network::derive(&objects, plugin, mode, proxy.mode.value, &ranges, &mut said);
    if network.transport.value == Transport::Tunnel {
        plugin::add_tunnel_ends(&mut objects, network.plugin.value);
    }
    proxy::suppose_detector(&mut proxy, &objects, &network, &mut said);
    let endpoints = endpoints::derive(&mut objects, &mut said);
    let dns = dns(&mut objects);
    let mut gaps = unjudged::Gaps::default();
    balancers::find_unjudged(&objects, &provider, &mut gaps);
    let unjudged = gaps.settle(&mut objects);
    Cluster {
        provider,
        skipped: objects.skipped(),
        nodes: objects.nodes.0,
        pods: objects.pods.0,
        workloads: objects.workloads.0,
        services: objects.services.0,
        endpoints,
        ingresses: objects.ingresses.0,
        ingress_classes: objects.ingress_classes.0,
        tke_service_configs: objects.tke_service_configs.0,
        load_balancers: objects.facts.load_balancers,
        network,
        security_groups: objects.facts.security_groups,
        dns,
        proxy,
        controller_switches: objects.controller_switches,
        network_policies: objects.network_policies.0,
        captures: BTreeMap::new(),
        unjudged,
        supposed: said.into_sorted(),
    }
}

/// The Service that pods ask for names, and what is known of its answers.
fn dns(objects: &mut Objects) -> Dns {
    let is_dns = |service: &&Service| {
        service.name.namespace.as_str() == "kube-system"
            && (matches!(service.name.name.as_str(), "kube-dns" | "coredns")
                || service.labels.is("k8s-app", "kube-dns"))
    };
    let service: Option<NamespacedName> =
        objects.services.0.values().find(is_dns).map(|service| service.name.clone());
    let custom = std::mem::take(&mut objects.corefile_custom);
    let mut corefile = objects.corefile.take();
    if let Some(corefile) = &mut corefile {
        corefile.beside.extend(custom);
    }
    Dns {
        service,
        domain: objects.facts.domain.take().map(|(domain, _)| domain),
        corefile,
        node_local: objects.node_local.take(),
        outside: std::mem::take(&mut objects.facts.outside),
    }
}

/// Where what nobody wrote down is said to come from.
fn nowhere() -> Origin {
    Origin::file("supposed")
}

/// Suppositions as they are made.
#[derive(Default)]
struct Said(Vec<Supposition>);

impl Said {
    fn suppose(
        &mut self,
        about: impl Into<Text>,
        taken: impl Into<Text>,
        because: impl Into<Text>,
        settle: impl Into<Text>,
    ) {
        self.0.push(Supposition {
            about: about.into(),
            taken: taken.into(),
            because: because.into(),
            settle: settle.into(),
        });
    }

    fn into_sorted(mut self) -> Vec<Supposition> {
        self.0.sort();
        self.0.dedup();
        self.0
    }
}

/// `1 node`, `3 nodes`.
fn count(number: usize, what: &str) -> String {
    if number == 1 { format!("1 {what}") } else { format!("{number} {what}s") }
}

/// A few of many, for a message: `a, b, c and 4 more`.
fn some_of<T: ToString>(all: &[T]) -> String {
    let shown: Vec<String> = all.iter().take(3).map(ToString::to_string).collect();
    match all.len().saturating_sub(shown.len()) {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}

/// Ranges for a message.
fn joined<T: ToString>(all: &[T]) -> String {
    all.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}
