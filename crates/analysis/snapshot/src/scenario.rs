//! Reads Scenarios: a cluster in several sizes, flows through it, and their expected outcomes.
//!
//! ```yaml
//! apiVersion: uturn.dev/v1alpha1
//! kind: Scenario
//! metadata: {name: l7-loop}
//! spec:
//!   shows: A pod that calls its own cluster's private Ingress meets its own node.
//!   seed: "000, Analyzing a L7 loopback"   # where it comes from; may be left out
//!   nodes: [1, 2, 3, 5]                    # one case for each number of nodes …
//!   modes: [iptables, nftables]            # … and mode of kube-proxy, where this is given
//!   shape: {network: global-router, backends: last, clients: each}
//!   facts: {provider: none, kubeProxy: {mode: iptables, version: v1.34.4}}
//!   objects: []                            # manifests: Services, Ingresses …
//!   flows:
//!   - from: clients
//!     to: http://10.0.0.100/
//!     expect:
//!     - when: {nodes: 1}
//!       outcomes: [{status: 504, after: 4s}]
//!       mechanisms: [asymmetric-return]
//!     - outcomes:
//!       - {outcome: answered, after: 4s, share: 1/N}
//!       - {outcome: answered, share: rest}
//!       mechanisms: [asymmetric-return]
//! ```
//!
//! **shape** makes the nodes `n1` … `nN` (10.0.0.11 and on) and, in namespace `shop`, pods:
//!
//! | field | values |
//! | --- | --- |
//! | `network` | `global-router`: pods of node i have 10.1.i.0/24. `vpc-cni`: 10.0.i.0/24, out of the VPC |
//! | `backends` | pods `web-1` … (label `app: web`, port `http` 8080): on the `last` node, the `first`, `each`, or `none` |
//! | `clients` | what `clients` means in a flow: `each` or `first`: pods `client-i` on those nodes; `host`: the nodes themselves; `none` |
//!
//! The VPC is 10.0.0.0/16, Services have 172.16.0.0/16, unless **facts** say otherwise; the
//! fields of **facts** are those of a Facts document's `spec`.
//!
//! **probes**: for a listener of a load balancer, which of its targets the health checks
//! find `alive` (`all`, `none`, or a list of nodes), and by which mechanisms the others die:
//!
//! ```yaml
//!   probes:
//!   - listener: 10.0.0.101:80
//!     expect: [{alive: none, mechanisms: [local-source-drop]}]
//! ```
//!
//! A `when` in an expectation names `nodes` and `mode`, one or a list of each.
//!
//! **flows**: `from` is `clients` (each of them in turn) or one client as on the command line
//! (`pod/shop/client-1`, `node/n1`, `outside`); `to` is a target as there; `protocol` is `tcp`
//! unless it says `udp`. The first entry of **expect** whose `when` fits counts; without any,
//! nothing is expected and the flow is only measured. An outcome is a `status` or one of
//! `answered`, `hangs`, `refused`, `reset`, `tls-error`, `unreachable`, `name-not-found`; `after`
//! says how late it comes. A `share` is a number, a formula over N such as `1/N` or `(N-1)/N`, or
//! `rest`; a single outcome needs none. Outcomes whose share is zero are ignored.
//!
//! In the lab every pod answers on the ports that it declares or that probes ask, and on no
//! others; so a Scenario states it (`declaredPortsOnly`). One with a container whose
//! image is `nginx`, and a ConfigMap mounted below `/etc/nginx` there, is a real nginx with that
//! configuration. It knows the names of Services:
//!
//! ```yaml
//! - kind: ConfigMap
//!   metadata: {name: routes, namespace: shop}
//!   data:
//!     shop.conf: |
//!       server {
//!         listen 80;
//!         server_name shop.example.com;
//!         location /api { proxy_pass http://api:8080; }
//!       }
//! - kind: Pod
//!   spec:
//!     containers:
//!     - image: nginx:1.29
//!       volumeMounts: [{name: routes, mountPath: /etc/nginx/conf.d}]
//!     volumes: [{name: routes, configMap: {name: routes}}]
//! ```

mod expect;
mod shape;
mod share;

use std::cell::RefCell;
use std::collections::HashMap;
use std::fmt;
use std::net::SocketAddr;

use uturn_document::{Fault, Faults, Node, Source};
use uturn_model::{
    Cluster, Flow, IpNet, Mechanism, Name, Origin, Outcome, Protocol, ProxyMode, Share, Text,
    misspelt,
};

use crate::decode::facts::{self, Fact};
use crate::decode::objects::Objects;
use crate::decode::{Doc, FromNode};
use crate::derive;
use crate::documents::{OURS, each_document, each_item, what_it_lacks};
use crate::kinds::take;

use shape::Shape;

/// A cluster in several sizes, and its expected outcomes.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// The name of the Scenario.
    pub name: Text,
    /// What the Scenario shows, in a sentence.
    pub shows: Text,
    /// The source of the Scenario; may be empty.
    pub seed: Text,
    /// The cases, one for each size and mode of kube-proxy.
    pub cases: Vec<Case>,
    /// The place of the Scenario in its file.
    pub origin: Origin,
}

/// A scenario in one size and one mode of kube-proxy.
#[derive(Clone, Debug)]
pub struct Case {
    /// The size and mode in words: `3 nodes, iptables`.
    pub label: String,
    /// The number of nodes.
    pub nodes: usize,
    /// The cluster.
    pub cluster: Cluster,
    /// The flows and their expected outcomes.
    pub flows: Vec<ExpectedFlow>,
    /// The expected results of health checks.
    pub probes: Vec<ExpectedProbes>,
}

/// A flow and its expected outcomes.
#[derive(Clone, Debug, PartialEq)]
pub struct ExpectedFlow {
    /// The flow.
    pub flow: Flow,
    /// The outcomes and their shares, which add up to 1. Empty if nothing is expected.
    pub outcomes: Vec<(Outcome, Share)>,
    /// The stated mechanisms of failure, sorted. `None` if none are stated.
    pub mechanisms: Option<Vec<Mechanism>>,
    /// The place of the flow in its file.
    pub origin: Origin,
}

/// The expected results of a listener's health checks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExpectedProbes {
    /// The load balancer's address and port.
    pub listener: SocketAddr,
    /// The protocol of the listener.
    pub protocol: Protocol,
    /// The targets whose health checks succeed.
    pub alive: Alive,
    /// The stated mechanisms by which the other targets fail, sorted. `None` if none are stated.
    pub mechanisms: Option<Vec<Mechanism>>,
    /// The place of the expectation in its file.
    pub origin: Origin,
}

/// The targets of a listener that answer their health checks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Alive {
    /// All targets.
    All,
    /// No target.
    None,
    /// The targets on these nodes.
    Only(Vec<Name>),
}

/// The maximum number of nodes of a case: more would not fit the shape's ranges.
const MAX_NODES: usize = 200;

/// The maximum number of objects of all cases of a Scenario together.
const MAX_OBJECTS: usize = 200_000;

/// Reads all Scenarios of the sources. Other objects are ignored.
///
/// # Errors
/// All faults of the sources.
pub fn read_all(sources: Vec<Source>) -> Result<Vec<Scenario>, Vec<Fault>> {
    let faults = RefCell::new(Faults::default());
    let (mut scenarios, mut places) = (Vec::new(), Places::new());
    for source in sources {
        each_document(&source, false, &faults, &mut |doc| {
            if what_it_lacks(doc).is_some() {
                return;
            }
            each_item(doc, &mut |doc, version, kind| {
                if (version, kind) == (OURS, "Scenario") {
                    add(doc, &mut scenarios, &mut places);
                }
            });
        });
    }
    let faults = faults.into_inner();
    if faults.count() > 0 { Err(faults.into_vec()) } else { Ok(scenarios) }
}

/// The indices of scenarios in a list, by name.
pub(crate) type Places = HashMap<Text, usize>;

/// Reads a Scenario and adds it. A second Scenario of the same name is a fault.
pub(crate) fn add(doc: &Doc<'_>, scenarios: &mut Vec<Scenario>, places: &mut Places) {
    let Some(scenario) = decode(doc) else { return };
    let at = *places.entry(scenario.name.clone()).or_insert(scenarios.len());
    match scenarios.get(at) {
        Some(first) => {
            let message = format!(
                "Scenario {} is defined more than once, first at {}",
                scenario.name, first.origin
            );
            doc.fault(doc.root, message);
        }
        None => scenarios.push(scenario),
    }
}

fn decode(doc: &Doc<'_>) -> Option<Scenario> {
    doc.only(doc.root, &["apiVersion", "kind", "metadata", "spec"]);
    let meta = doc.need_map(doc.root, "metadata");
    let name = meta.and_then(|meta| doc.need::<Name>(meta, "name"));
    let spec = doc.need_map(doc.root, "spec")?;
    doc.only(
        spec,
        &["shows", "seed", "nodes", "modes", "shape", "facts", "objects", "flows", "probes"],
    );
    let shows = doc.need::<Text>(spec, "shows");
    let seed = doc.read::<Text>(spec, "seed");
    let sizes = sizes(doc, spec);
    let modes = doc.items(spec, "modes");
    let modes = modes.iter().filter_map(|item| Some((item, doc.value::<ProxyMode>(item)?)));
    let modes = once(doc, modes);
    let shape = Shape::read(doc, spec);
    let base = objects(doc, spec);
    if spec.get("flows").is_none() {
        doc.missing(spec, "flows", "the flows to measure");
    }
    let modes: Vec<Option<ProxyMode>> = match modes.as_slice() {
        [] => vec![None],
        several => several.iter().copied().map(Some).collect(),
    };
    let mut cases = Vec::new();
    let mut size_of_all = 0;
    let silent = RefCell::new(Faults::default());
    for nodes in sizes {
        let of_size = RefCell::new(Faults::default());
        for mode in &modes {
            let case = match case(doc, spec, &shape, &base, nodes, *mode) {
                Ok(case) => case,
                Err(fault) => {
                    doc.faults.borrow_mut().push(fault);
                    return None;
                }
            };
            size_of_all += size(&case.cluster);
            if size_of_all > MAX_OBJECTS {
                let message = format!("its cases have more than {MAX_OBJECTS} objects together");
                doc.fault_with_hint(spec, message, "state fewer sizes or modes".to_owned());
                return None;
            }
            // Faults of the text are the same in every case and reported for the first. Faults of a
            // share may concern one size only.
            let common = if cases.is_empty() { doc.faults } else { &silent };
            let (common, own) = (Doc { faults: common, ..*doc }, Doc { faults: &of_size, ..*doc });
            let size = expect::Size { nodes, mode: case.cluster.proxy.mode.value };
            let flows = expect::flows(&common, &own, spec, size, &shape.clients(nodes));
            let probes = expect::probes(&common, &own, spec, size);
            cases.push(Case { flows, probes, ..case });
        }
        // Report faults that several modes have in common once.
        let mut reported: Vec<Fault> = Vec::new();
        for fault in of_size.into_inner().into_vec() {
            if !reported.contains(&fault) {
                doc.faults.borrow_mut().push(fault.clone());
                reported.push(fault);
            }
        }
    }
    let origin = doc.origin(doc.root);
    let name = name?.as_str().into();
    Some(Scenario { name, shows: shows?, seed: seed.unwrap_or_else(|| "".into()), cases, origin })
}

fn sizes<'d>(doc: &Doc<'d>, spec: &'d Node<'d>) -> Vec<usize> {
    let items = doc.items(spec, "nodes");
    if items.is_empty() && spec.get("nodes").is_none_or(|node| node.describe() == "a list") {
        doc.missing(spec, "nodes", "the numbers of nodes: [1, 2, 3]");
    }
    let sizes = items.iter().filter_map(|item| {
        let size = doc.value::<usize>(item)?;
        if !(1..=MAX_NODES).contains(&size) {
            doc.fault(item, format!("expected 1 to {MAX_NODES} nodes, found {size}"));
            return None;
        }
        Some((item, size))
    });
    once(doc, sizes)
}

/// Returns the values of a list, each of which makes separate cases. A repeated value is a fault.
fn once<'d, T: PartialEq + Copy + fmt::Display>(
    doc: &Doc<'d>,
    all: impl Iterator<Item = (&'d Node<'d>, T)>,
) -> Vec<T> {
    let mut known = Vec::new();
    for (item, value) in all {
        if known.contains(&value) {
            doc.fault(item, format!("{value} is listed twice"));
        } else {
            known.push(value);
        }
    }
    known
}

/// Reads the Facts and manifests that all cases share.
fn objects<'d>(doc: &Doc<'d>, spec: &'d Node<'d>) -> Objects {
    let mut objects = Objects::default();
    if let Some(stated) = doc.map(spec, "facts") {
        facts::read_spec(doc, stated, &mut objects.facts);
    }
    for (at, item) in doc.items(spec, "objects").iter().enumerate() {
        let prefix = format!("spec.objects[{at}]");
        let doc = Doc { prefix: &prefix, ..Doc::new(doc.file, item, doc.faults) };
        each_item(&doc, &mut |doc, version, kind| take(doc, version, kind, &mut objects));
    }
    objects
}

fn case<'d>(
    doc: &Doc<'d>,
    spec: &'d Node<'d>,
    shape: &Shape,
    base: &Objects,
    nodes: usize,
    mode: Option<ProxyMode>,
) -> Result<Case, Fault> {
    let origin = doc.origin(spec);
    let mut objects = base.clone();
    shape.build(nodes, &origin, &mut objects);
    let facts = &mut objects.facts;
    let range = |text: &str| vec![text.parse::<IpNet>().expect("a constant range")];
    suppose(&mut facts.vpc_cidrs, range("10.0.0.0/16"), &origin);
    suppose(&mut facts.service_cidrs, range("172.16.0.0/16"), &origin);
    suppose(&mut facts.pod_cidrs, range(shape.pods()), &origin);
    suppose(&mut facts.network_mode, shape.network, &origin);
    suppose(&mut facts.domain, "cluster.local".into(), &origin);
    // The lab builds the objects of the Scenario and nothing else.
    suppose(&mut facts.declared_ports_only, true, &origin);
    objects.complete = true;
    if let Some(mode) = mode {
        facts.proxy_mode = Some((mode, origin));
    }
    let cluster = derive::cluster(objects)?;
    let counted = if nodes == 1 { "1 node".to_owned() } else { format!("{nodes} nodes") };
    let label = format!("{counted}, {}", cluster.proxy.mode.value);
    Ok(Case { label, nodes, cluster, flows: Vec::new(), probes: Vec::new() })
}

/// Returns the number of objects of a cluster.
fn size(cluster: &Cluster) -> usize {
    let objects = cluster.nodes.len() + cluster.pods.len() + cluster.workloads.len();
    let endpoints = cluster.endpoints.values().flatten().map(|slice| slice.endpoints.len());
    objects + cluster.services.len() + cluster.ingresses.len() + endpoints.sum::<usize>()
}

fn suppose<T>(fact: &mut Fact<T>, value: T, origin: &Origin) {
    fact.get_or_insert_with(|| (value, origin.clone()));
}

impl FromNode for Mechanism {
    const EXPECTED: &'static str = "a mechanism";
    const IS_TEXT: bool = true;

    fn from_node(node: &Node<'_>) -> Result<Self, String> {
        let text = node.as_str().ok_or_else(String::new)?;
        text.parse().map_err(|_| {
            let names: Vec<&str> = Self::ALL.iter().map(|value| value.as_str()).collect();
            match misspelt::closest(text, names.iter().copied()) {
                Some(close) => format!("a mechanism ({close}?)"),
                None => format!("a mechanism ({})", names.join(", ")),
            }
        })
    }
}
