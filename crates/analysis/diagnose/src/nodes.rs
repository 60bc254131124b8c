//! Compares a node's capture with what kube-proxy should have programmed there for the cluster's
//! objects.
//!
//! **Start reading** at [`examine`]. [`rules`] compares rules, sets and servers with what
//! `uturn_kubeproxy` compiles, as [`blocks`] of lines; [`leftovers`] looks for a second kube-proxy;
//! [`foreign`] for rules of other programs that affect calls to Services; [`settings`] for sysctls;
//! [`masquerade`] for a plugin that masquerades otherwise than Facts state.
//!
//! A difference is reported as a fault of the node. Therefore the answer is unknown if the objects
//! do not state kube-proxy's settings, if the capture is incomplete, or if it was taken while rules
//! changed.

mod age;
mod blocks;
mod difference;
mod foreign;
mod iptables;
mod ipvs;
mod judge;
mod leftovers;
mod masquerade;
mod nftables;
mod order;
mod rules;
mod settings;

use std::net::IpAddr;

use uturn_model::{Capture, CaptureFile, Cluster, Family, Node};
use uturn_netfilter::NodeState;
use uturn_node::Manifest;
use uturn_path::Engine;

pub(crate) use difference::{Answer, Difference, Question};

/// A node with its capture and the cluster's objects.
struct Subject<'a> {
    cluster: &'a Cluster,
    node: &'a Node,
    capture: &'a Capture,
    manifest: Option<Manifest>,
    state: NodeState,
}

impl Subject<'_> {
    /// Returns whether calls of a family may pass the node: pods or Services have addresses of the
    /// family, and for IPv6 the node has one too.
    fn serves(&self, family: Family) -> bool {
        let is_used = |family| is_used(self.cluster, family);
        match family {
            Family::V4 => is_used(Family::V4) || !is_used(Family::V6),
            Family::V6 => self.node.address(family).is_some() && is_used(family),
        }
    }
}

/// Returns whether pods or Services of a cluster have addresses of a family.
fn is_used(cluster: &Cluster, family: Family) -> bool {
    let is_it = |ip: &IpAddr| Family::of(*ip) == family;
    let mut ranges = cluster.nodes.values().flat_map(|node| &node.pod_cidrs);
    let own = cluster.pods.values().filter(|pod| !pod.spec.host_network);
    ranges.any(|range| is_it(&range.addr()))
        || own.flat_map(|pod| &pod.ips).any(is_it)
        || cluster.services.values().flat_map(|service| &service.cluster_ips).any(is_it)
}

/// Returns the questions about a captured node with their answers. Returns `None` if the node was
/// not captured.
pub(crate) fn examine(engine: &Engine<'_>, node: &Node) -> Option<Vec<Question>> {
    let cluster = engine.cluster();
    let capture = cluster.captures.get(&node.name)?;
    let manifest = Manifest::of(capture);
    // A capture that cannot be parsed stops every command before this point.
    let state = NodeState::from_capture(capture).ok()?;
    let subject = Subject { cluster, node, capture, manifest, state };
    let mut questions = vec![whole(&subject)];
    questions.extend(leftovers::questions(&subject));
    questions.extend(rules::questions(&subject));
    questions.extend(foreign::questions(engine, &subject));
    questions.extend(settings::questions(&subject));
    questions.extend(masquerade::question(&subject));
    Some(questions)
}

/// Answers whether the capture is complete.
fn whole(subject: &Subject<'_>) -> Question {
    let what = "its capture is whole";
    let Some(manifest) = &subject.manifest else {
        let has = |family| subject.capture.has_rules(family);
        if subject.capture.files.contains_key(&CaptureFile::Manifest) {
            let file = CaptureFile::Manifest.file_name();
            return Question::unknown(what, format!("this uturn cannot read {file}"));
        }
        return if Family::BOTH.into_iter().any(has) && subject.capture.has_links() {
            Question::of(what, "it has rules, addresses and routes", Vec::new())
        } else {
            Question::unknown(what, "it lacks rules, addresses or routes")
        };
    };
    let mut lacks: Vec<String> = manifest
        .lacks()
        .map(|part| {
            let why = part.why.as_deref().unwrap_or("not there");
            format!("{} is missing: {}: {why}", part.file, part.from)
        })
        .collect();
    if !manifest.settled {
        lacks.push("its rules kept changing during the capture".to_owned());
    }
    let taken = format!("taken at {}", manifest.taken_at);
    if lacks.is_empty() {
        Question::of(what, taken, Vec::new())
    } else {
        Question { what: what.to_owned(), answer: Answer::Unknown(lacks) }
    }
}

impl Subject<'_> {
    /// Returns whether rules kept changing while they were captured.
    fn is_restless(&self) -> bool {
        self.manifest.as_ref().is_some_and(|manifest| !manifest.settled)
    }
}
