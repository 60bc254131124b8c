//! Derives a whole cluster from objects: every gap is filled, and every assumption is listed.
//!
//! A value that follows from something written is *derived* and carries its reason. A value that
//! nothing states is *supposed*, and listed in [`Cluster::supposed`] with what would settle it.
//! Values that no object needs are not supposed: without load balancers, no cloud is supposed.

mod gaps;
mod ground;
mod populate;
mod serve;

use std::collections::BTreeMap;
use std::net::IpAddr;

use uturn_model::cluster::Unread;
use uturn_model::dns::{Corefile, Dns};
use uturn_model::lb::NamedAddress;
use uturn_model::pod::PodSpec;
use uturn_model::{
    Assumption, AssumptionSubject, Cluster, NamespacedName, ObjectRef, Origin, Service, Text,
    WorkloadKind,
};

use crate::decode::objects::Objects;
use crate::fault::Fault;
use gaps::{missing, unjudged};
use ground::{extent, plugin, provider, proxy, service_proxy};
use populate::{endpoint_pods, families, files, nodes, owners, pods, proxy_names, ranges};
use serve::{
    announcers, balancer_arguments, balancer_names, balancers, controllers, endpoints, gateways,
    holders, ingress_products, name_server, network, pending_balancers, services,
};

/// Derives a cluster from the decoded objects.
///
/// # Errors
/// Returns a fault if more pods or endpoints than the limit would have to be made up.
pub(crate) fn cluster(mut objects: Objects) -> Result<Cluster, Fault> {
    let mut assumptions = Assumptions::default();
    for note in std::mem::take(&mut objects.notes) {
        let about = format!("{}: {}", note.origin, note.message);
        assumptions.assume(about, note.assumed, note.because, note.settle);
    }
    for unread in Unread::grouped(&objects.listing.unread) {
        let settle = if unread.is_forbidden() {
            "uturn collect --rbac prints the rights that are needed"
        } else {
            "see whether kubectl can read it"
        };
        let because = format!("could not be read: {}", unread.why);
        assumptions.assume(unread.what, unread.known, because, settle);
    }
    let extent = extent::of(&objects);
    let coming = extent::coming(&objects);
    let provider = provider::derive(&objects);
    let mut proxy = proxy::derive(&objects, &provider, &mut assumptions);
    owners::settle(&mut objects);
    let plugin = plugin::derive(&objects, &mut assumptions);
    let mode = plugin::mode(&objects, &plugin);
    let mut ranges = ranges::Ranges::new(&objects);
    nodes::complete(&mut objects, mode.value, &mut ranges, &mut assumptions);
    proxy::add_arp_ranges(&mut proxy, &objects);
    proxy_names::complete(&mut objects, proxy.version.value);
    plugin::add_hairpin(&mut objects, plugin.value, mode.value);
    endpoint_pods::add(&mut objects, extent, &mut assumptions);
    pods::complete(&mut objects, mode.value, &mut ranges, &mut assumptions)?;
    families::complete(&mut objects, mode.value, &mut ranges, &mut assumptions);
    files::complete(&mut objects);
    let unapplied = pending_balancers::unapplied(&objects);
    services::complete(&mut objects, &mut ranges, &mut assumptions);
    let mut gaps = unjudged::Gaps::default();
    gateways::complete(&mut objects, &mut gaps, &mut assumptions);
    ingress_products::derive(&mut objects, &provider, &mut assumptions);
    balancers::complete_stated(&mut objects, &mut ranges, &mut assumptions);
    pending_balancers::complete(&mut objects, &provider, &unapplied, &mut ranges, &mut assumptions);
    balancers::leave_to_balancers(&mut objects, &provider);
    holders::derive(&mut objects, &provider);
    let network =
        network::derive(&objects, plugin, mode, proxy.mode.value, &ranges, &mut assumptions);
    if network.has_tunnels() {
        plugin::add_tunnel_ends(&mut objects, network.plugin.value);
    }
    proxy::suppose_detector(&mut proxy, &objects, &network, &mut assumptions);
    let endpoints = endpoints::derive(&mut objects)?;
    let balancer_names =
        balancer_names::derive(&objects, &endpoints, &provider, &mut ranges, &mut assumptions);
    let dns = dns(&mut objects, balancer_names, &mut assumptions);
    let served = controllers::derive(&mut objects, &provider, &mut assumptions);
    service_proxy::find_placeholders(&objects, &endpoints, &mut gaps);
    service_proxy::find_left_to_others(&objects, &mut gaps);
    missing::find(&objects, &endpoints, extent, &coming, &mut gaps);
    balancers::find_unjudged(&objects, &provider, &served.open, &mut gaps);
    service_proxy::find_unjudged(&objects, &proxy.served_by, &mut gaps);
    service_proxy::suppose_no_mesh(&objects, &mut assumptions);
    unjudged::find_windows(&objects, &mut gaps);
    let unjudged = gaps.settle(&mut objects);
    let balancer_arguments = balancer_arguments::derive(&objects);
    announcers::note_nodes_without(&mut objects, provider.value.cloud(), extent);
    let announcements = announcers::derive(&objects);
    Ok(Cluster {
        provider,
        skipped: objects.skipped(),
        nodes: objects.nodes.0,
        pods: objects.pods.0,
        workloads: objects.workloads.0,
        services: objects.services.0,
        endpoints,
        ingresses: objects.ingresses.0,
        ingress_classes: objects.ingress_classes.0,
        controllers: served.controllers,
        listener_overrides: objects.listener_overrides.0,
        load_balancers: objects.facts.load_balancers,
        network,
        security_groups: objects.facts.security_groups,
        dns,
        proxy,
        controller_switches: objects.controller_switches,
        balancer_arguments,
        announcements,
        network_policies: objects.network_policies.0,
        captures: BTreeMap::new(),
        extent,
        awaited: coming.namespaces,
        unjudged,
        unread: std::mem::take(&mut objects.listing.unread),
        read_at: objects.listing.read_at.take(),
        supposed: assumptions.into_sorted(),
    })
}

/// Returns the DNS of the cluster: the Service of its name servers, and what is known of their
/// answers.
fn dns(
    objects: &mut Objects,
    balancers: BTreeMap<Text, Vec<NamedAddress>>,
    assumptions: &mut Assumptions,
) -> Dns {
    let service = dns_service(objects);
    let custom = std::mem::take(&mut objects.corefile_custom);
    let mut corefile = objects.corefile.take();
    if let Some(corefile) = &mut corefile {
        corefile.beside.extend(custom);
        corefile.release = name_server::release(objects);
    }
    let stated = objects.facts.domain.take().map(|(domain, _)| domain);
    let node_local = objects.node_local.take();
    let served = || domain(corefile.as_ref()?, assumptions);
    Dns {
        service,
        domain: stated.or_else(served),
        corefile,
        of_pods: servers_of_pods(objects, node_local.as_ref(), assumptions),
        node_local,
        outside: std::mem::take(&mut objects.facts.outside),
        node_searches: objects.facts.node_searches.take().map(|(all, _)| all).unwrap_or_default(),
        balancers,
    }
}

/// Finds the Service of the cluster's name servers: by its name, or else the first with the label.
/// The upstream Service of the cache on nodes has the label too.
fn dns_service(objects: &Objects) -> Option<NamespacedName> {
    let in_system = |service: &&Service| service.name.namespace.as_str() == "kube-system";
    let all = || objects.services.0.values().filter(in_system);
    let is_named =
        |service: &&Service| matches!(service.name.name.as_str(), "kube-dns" | "coredns");
    let is_labelled = |service: &&Service| service.labels.is("k8s-app", "kube-dns");
    let is_usual = |service: &&Service| {
        !service.headless && !service.name.name.as_str().ends_with("-upstream")
    };
    let service = all()
        .find(is_named)
        .or_else(|| all().filter(is_labelled).find(is_usual))
        .or_else(|| all().find(is_labelled));
    service.map(|service| service.name.clone())
}

/// Returns the name servers that the kubelets' configuration gives to pods. Servers whose address
/// nothing in the cluster has are ignored: the nodes are probably configured otherwise.
fn servers_of_pods(
    objects: &Objects,
    cache: Option<&Corefile>,
    assumptions: &mut Assumptions,
) -> Vec<IpAddr> {
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

/// Iterates over the given DaemonSets, and those that own given pods, each with the spec of a pod.
fn daemon_sets(objects: &Objects) -> impl Iterator<Item = (ObjectRef, &PodSpec)> {
    let given = objects.workloads.0.values().filter(|set| set.kind == WorkloadKind::DaemonSet);
    let given = given.map(|set| (set.object(), &*set.template));
    let owned = objects.pods.0.values().filter_map(|pod| {
        let owner =
            pod.owner.as_ref().filter(|owner| owner.kind == WorkloadKind::DaemonSet.into())?;
        Some((owner.clone(), &*pod.spec))
    });
    given.chain(owned)
}

/// Returns the origin of values that no manifest states.
fn nowhere() -> Origin {
    Origin::SUPPOSED
}

/// The assumptions made so far.
#[derive(Default)]
struct Assumptions(Vec<Assumption>);

impl Assumptions {
    fn assume(
        &mut self,
        about: impl Into<AssumptionSubject>,
        taken: impl Into<Text>,
        because: impl Into<Text>,
        settle: impl Into<Text>,
    ) {
        self.0.push(Assumption {
            subject: about.into(),
            assumed: taken.into(),
            because: because.into(),
            settle: settle.into(),
        });
    }

    fn into_sorted(mut self) -> Vec<Assumption> {
        self.0.sort();
        self.0.dedup();
        self.0
    }
}

/// Joins values for a message.
fn joined<T: ToString>(all: &[T]) -> String {
    all.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}
