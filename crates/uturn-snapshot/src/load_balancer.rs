//! Reads LoadBalancer documents, which `uturn lb run -f` takes and the lab writes.
//!
//! ```yaml
//! apiVersion: uturn.dev/v1alpha1
//! kind: LoadBalancer
//! metadata: {name: lb-1}
//! spec:
//!   vip: 10.0.0.100
//!   scope: private                # or public
//!   securityGroups: []
//!   listeners:
//!   - port: 80
//!     protocol: HTTP              # TCP, UDP, TCP_SSL, HTTP, HTTPS
//!     profile:                    # each part may be left out
//!       name: layer-7
//!       source: kept              # or a range: 100.127.0.0/16
//!       avoidsClient: true
//!       connectTimeout: 4s
//!       nextTarget: true          # on layer 7
//!       scheduler: WRR            # LEAST_CONN, IP_HASH
//!       allDeadAllAlive: true
//!       # source: vip, or reserved with the two ranges, which may be left out
//!       healthCheck: {source: reserved, interval: 5s, timeout: 2s, rise: 3, fall: 3}
//!       passiveCheck: {failures: 3, rest: 10s}
//!     rules:
//!     - host: shop.example.com    # left out: every host
//!       path: {path: /, type: Prefix}
//!       service: shop/front
//!       owner: {kind: Ingress, namespace: shop, name: front}
//!       targets:
//!       - {address: "10.0.0.11:30080", weight: 10, nodePort: n1}
//!     - path: {path: /old, type: Prefix}
//!       service: shop/front
//!       # instead of targets; host and path, where left out, as they were asked
//!       redirect: {status: 302, tls: true, port: 443, path: /new}
//!       - {address: "10.1.2.20:8080", pod: shop/front-1, node: n2}
//! ```

mod write;

use std::cell::RefCell;
use std::net::SocketAddr;
use std::time::Duration;

use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use uturn_lb::cloud;
use uturn_model::ingress::PathKind;
use uturn_model::lb::{
    self, HealthCheck, Layer, Listener, ListenerProtocol, PassiveCheck, ProbeRanges, Profile,
    Redirect, Rule, Scheduler, StatedProbeSource, Target, TargetKind,
};
use uturn_model::{LoadBalancer, Name, NamespacedName, ObjectKind, ObjectRef, Port, Text};

use crate::decode::{Doc, FromNode};
use crate::document::Node;
use crate::documents::{OURS as VERSION, each_document, each_item};
use crate::fault::{Fault, Faults};
use crate::source::Source;

pub use write::write_load_balancers;

/// Reads the LoadBalancer documents of a source.
///
/// # Errors
/// All faults of the source.
#[expect(clippy::needless_pass_by_value, reason = "as the other readers: a source is read once")]
pub fn read_load_balancers(source: Source) -> Result<Vec<LoadBalancer>, Vec<Fault>> {
    let faults = RefCell::new(Faults::default());
    let mut read = Vec::new();
    each_document(&source, &faults, &mut |doc| {
        each_item(doc, &mut |doc, version, kind| {
            if (version, kind) == (VERSION, "LoadBalancer") {
                read.extend(balancer(doc));
            } else {
                let message = format!("expected {VERSION} LoadBalancer, found {version} {kind}");
                doc.fault(doc.root, message);
            }
        });
    });
    let faults = faults.into_inner();
    if faults.len() > 0 { Err(faults.into_vec()) } else { Ok(read) }
}

fn balancer(doc: &Doc<'_>) -> Option<LoadBalancer> {
    doc.only(doc.root, &["apiVersion", "kind", "metadata", "spec"]);
    let meta = doc.need_map(doc.root, "metadata");
    let name = meta.and_then(|meta| doc.need::<Text>(meta, "name"));
    let spec = doc.need_map(doc.root, "spec")?;
    doc.only(spec, &["vip", "scope", "securityGroups", "listeners"]);
    let vip = doc.need(spec, "vip");
    let scope = doc.need(spec, "scope");
    let security_groups = doc.list(spec, "securityGroups");
    let listeners = doc.maps(spec, "listeners").filter_map(|item| listener(doc, item)).collect();
    Some(LoadBalancer { name: name?, vip: vip?, scope: scope?, security_groups, listeners })
}

fn listener<'d>(doc: &Doc<'d>, node: &'d Node<'d>) -> Option<Listener> {
    doc.only(node, &["port", "protocol", "profile", "rules"]);
    let port = doc.need::<Port>(node, "port");
    let protocol = doc.need::<ListenerProtocol>(node, "protocol");
    let rules = doc.maps(node, "rules").filter_map(|item| rule(doc, item)).collect();
    let profile = profile(doc, doc.map(node, "profile"), protocol?.layer());
    Some(Listener { port: port?, protocol: protocol?, profile, rules })
}

fn profile<'d>(doc: &Doc<'d>, node: Option<&'d Node<'d>>, layer: Layer) -> Profile {
    let mut profile = Profile {
        name: "custom".into(),
        source: lb::Source::Kept,
        avoids_client: true,
        connect_timeout: Duration::from_secs(4),
        next_target: layer == Layer::L7,
        scheduler: Scheduler::WeightedRoundRobin,
        all_dead_all_alive: true,
        health_check: None,
        passive_check: None,
    };
    let Some(node) = node else { return profile };
    doc.only(
        node,
        &[
            "name",
            "source",
            "avoidsClient",
            "connectTimeout",
            "nextTarget",
            "scheduler",
            "allDeadAllAlive",
            "healthCheck",
            "passiveCheck",
        ],
    );
    set(&mut profile.name, doc.read(node, "name"));
    set(&mut profile.source, doc.read(node, "source"));
    set(&mut profile.avoids_client, doc.read(node, "avoidsClient"));
    set(&mut profile.connect_timeout, doc.read(node, "connectTimeout"));
    set(&mut profile.next_target, doc.read(node, "nextTarget"));
    set(&mut profile.scheduler, doc.read(node, "scheduler"));
    set(&mut profile.all_dead_all_alive, doc.read(node, "allDeadAllAlive"));
    profile.health_check = doc.map(node, "healthCheck").and_then(|item| health_check(doc, item));
    profile.passive_check = doc.map(node, "passiveCheck").and_then(|item| passive_check(doc, item));
    profile
}

fn set<T>(place: &mut T, value: Option<T>) {
    if let Some(value) = value {
        *place = value;
    }
}

fn health_check<'d>(doc: &Doc<'d>, node: &'d Node<'d>) -> Option<HealthCheck> {
    doc.only(node, &["source", "ranges", "interval", "timeout", "rise", "fall"]);
    let source = doc.need::<StatedProbeSource>(node, "source");
    let ranges = doc.map(node, "ranges").map_or(Some(cloud::USUAL_PROBE_RANGES), |item| {
        doc.only(item, &["v4", "v6"]);
        let (v4, v6) = (doc.need(item, "v4"), doc.need(item, "v6"));
        Some(ProbeRanges { v4: v4?, v6: v6? })
    });
    let interval = doc.need(node, "interval");
    let timeout = doc.need(node, "timeout");
    let rise = doc.need(node, "rise");
    let fall = doc.need(node, "fall");
    Some(HealthCheck {
        source: source?.with_ranges(ranges?),
        interval: interval?,
        timeout: timeout?,
        rise: rise?,
        fall: fall?,
    })
}

fn passive_check<'d>(doc: &Doc<'d>, node: &'d Node<'d>) -> Option<PassiveCheck> {
    doc.only(node, &["failures", "rest"]);
    let failures = doc.need(node, "failures");
    let rest = doc.need(node, "rest");
    Some(PassiveCheck { failures: failures?, rest: rest? })
}

fn rule<'d>(doc: &Doc<'d>, node: &'d Node<'d>) -> Option<Rule> {
    doc.only(node, &["host", "path", "service", "owner", "targets", "redirect"]);
    let path = doc.map(node, "path").map(|path| {
        doc.only(path, &["path", "type"]);
        (doc.need::<Text>(path, "path"), doc.need::<PathKind>(path, "type"))
    });
    let service = doc.need::<NamespacedName>(node, "service");
    let owner = doc.map(node, "owner").map(|owner| object(doc, owner));
    let targets = doc.maps(node, "targets").filter_map(|item| target(doc, item)).collect();
    let service = service?;
    Some(Rule {
        host: doc.read(node, "host"),
        path: match path {
            Some((path, kind)) => Some((path?, kind?)),
            None => None,
        },
        owner: match owner {
            Some(owner) => owner?,
            None => ObjectRef::namespaced(ObjectKind::Service, &service),
        },
        service,
        targets,
        redirect: match doc.map(node, "redirect") {
            Some(item) => Some(redirect(doc, item)?),
            None => None,
        },
    })
}

fn redirect<'d>(doc: &Doc<'d>, node: &'d Node<'d>) -> Option<Redirect> {
    doc.only(node, &["status", "tls", "host", "port", "path"]);
    let port = doc.need::<Port>(node, "port");
    Some(Redirect {
        code: doc.read(node, "status").unwrap_or(302),
        tls: doc.read(node, "tls").unwrap_or(false),
        host: doc.read(node, "host"),
        port: port?,
        path: doc.read(node, "path"),
    })
}

fn object<'d>(doc: &Doc<'d>, node: &'d Node<'d>) -> Option<ObjectRef> {
    doc.only(node, &["kind", "namespace", "name"]);
    let kind = doc.need::<ObjectKind>(node, "kind");
    let namespace = doc.read::<Name>(node, "namespace");
    let name = doc.need::<Text>(node, "name");
    Some(ObjectRef { kind: kind?, namespace, name: name? })
}

fn target<'d>(doc: &Doc<'d>, node: &'d Node<'d>) -> Option<Target> {
    doc.only(node, &["address", "weight", "nodePort", "pod", "node"]);
    let address = doc.need::<SocketAddr>(node, "address");
    let weight = doc.read(node, "weight").unwrap_or(10);
    let kind = match node.get("nodePort") {
        Some(name) if node.get("pod").is_some() || node.get("node").is_some() => {
            doc.fault(name, "a target is a nodePort or a pod, not both");
            return None;
        }
        Some(name) => TargetKind::NodePort(doc.value(name)?),
        None => TargetKind::Pod { pod: doc.read(node, "pod"), node: doc.read(node, "node") },
    };
    Some(Target { address: address?, weight, kind })
}

impl FromNode for SocketAddr {
    const EXPECTED: &'static str = "ADDRESS:PORT";
    const IS_TEXT: bool = true;

    fn from_node(node: &Node<'_>) -> Result<Self, String> {
        node.as_str().and_then(|text| text.parse().ok()).ok_or_else(String::new)
    }
}

impl FromNode for lb::Source {
    const EXPECTED: &'static str = "kept, or a range such as 100.127.0.0/16";

    fn from_node(node: &Node<'_>) -> Result<Self, String> {
        match node.as_str() {
            Some("kept") => Ok(Self::Kept),
            // Not truncated to its network, so that it reads back as written.
            Some(text) => text.parse::<IpNet>().map(Self::Replaced).map_err(|_| String::new()),
            None => Err(String::new()),
        }
    }
}

impl FromNode for Ipv4Net {
    const EXPECTED: &'static str = "a range such as 10.0.0.0/16";
    const IS_TEXT: bool = true;

    fn from_node(node: &Node<'_>) -> Result<Self, String> {
        node.as_str().and_then(|text| text.parse().ok()).ok_or_else(String::new)
    }
}

impl FromNode for Ipv6Net {
    const EXPECTED: &'static str = "a range such as fd00::/64";
    const IS_TEXT: bool = true;

    fn from_node(node: &Node<'_>) -> Result<Self, String> {
        node.as_str().and_then(|text| text.parse().ok()).ok_or_else(String::new)
    }
}

impl FromNode for ObjectKind {
    const EXPECTED: &'static str = "the kind of an object";

    fn from_node(node: &Node<'_>) -> Result<Self, String> {
        let kinds = [
            Self::Node,
            Self::Pod,
            Self::Deployment,
            Self::StatefulSet,
            Self::DaemonSet,
            Self::ReplicaSet,
            Self::Job,
            Self::CronJob,
            Self::Service,
            Self::EndpointSlice,
            Self::Endpoints,
            Self::Ingress,
            Self::IngressClass,
            Self::ConfigMap,
            Self::NetworkPolicy,
            Self::Facts,
            Self::LoadBalancer,
            Self::SecurityGroup,
        ];
        let of_clouds = cloud::ALL.into_iter().filter_map(|entry| entry.overrides.as_ref());
        let of_clouds = of_clouds.map(|object| Self::CloudObject(object.kind));
        let text = node.as_str().ok_or_else(String::new)?;
        kinds
            .into_iter()
            .chain(of_clouds)
            .find(|kind| kind.as_str() == text)
            .ok_or_else(String::new)
    }
}
