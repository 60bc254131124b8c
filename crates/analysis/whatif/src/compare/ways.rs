//! Calls that end as before and go otherwise: servers see another source address, or packets pass
//! another node or load balancer.
//!
//! A scan keeps no hops, so calls that may go otherwise are walked again, one for each class; of very
//! many, only some are.

use std::collections::BTreeMap;

use uturn_diagnose::analysis::AnalysisError;
use uturn_model::route::{Direction, Place};
use uturn_model::{Client, Cluster, Flow, Share, StepKind, Verdict};
use uturn_path::Engine;

/// The maximum number of calls that are walked again.
const MAX: usize = 400;

/// The maximum product of nodes and Services of a cluster whose calls are walked again.
const MAX_RULES: usize = 200_000;

/// How calls go, with the shares of each way.
type Ways = BTreeMap<Way, Share>;

/// How one call goes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Way {
    /// The source address that the server sees.
    source: &'static str,
    /// Whether a load balancer is on the way.
    through_balancer: bool,
    /// Whether a node is on the way that is neither the client's nor the server's.
    through_other_node: bool,
}

/// Walks calls in both clusters, and compares how they go.
pub(super) struct WayWalker<'c> {
    before: Engine<'c>,
    after: Engine<'c>,
    walked: usize,
    is_small: bool,
}

impl<'c> WayWalker<'c> {
    pub(super) fn new(before: &'c Cluster, after: &'c Cluster) -> Result<Self, AnalysisError> {
        let engine = |cluster| Engine::new(cluster).map_err(AnalysisError::Walk);
        let is_small =
            |cluster: &Cluster| cluster.nodes.len() * cluster.services.len() <= MAX_RULES;
        Ok(Self {
            is_small: is_small(before) && is_small(after),
            before: engine(before)?,
            after: engine(after)?,
            walked: 0,
        })
    }

    /// Returns how a call went and how it goes, if that differs.
    pub(super) fn differing(&mut self, flow: &Flow) -> Option<(String, String)> {
        if !self.is_small || self.walked >= MAX {
            return None;
        }
        self.walked += 1;
        let ways = |engine: &Engine<'c>| {
            let verdict = engine.with_met_services().verdict(flow).ok()?;
            Some(ways(engine.cluster(), flow, &verdict))
        };
        let (old, new) = (ways(&self.before)?, ways(&self.after)?);
        let is_same = old.len() == new.len()
            && old.iter().zip(&new).all(|(old, new)| old.0 == new.0 && old.1.is_about(*new.1));
        (!is_same).then(|| (described(&old, &new), described(&new, &old)))
    }

    /// Returns whether some calls were not compared because there are too many.
    pub(super) fn left_some(&self) -> bool {
        !self.is_small || self.walked >= MAX
    }
}

fn ways(cluster: &Cluster, flow: &Flow, verdict: &Verdict) -> Ways {
    let mut all = Ways::new();
    for route in &verdict.routes {
        if !route.outcome.is_answered() {
            continue;
        }
        let out = route.hops.iter().filter(|hop| hop.direction == Direction::Out);
        let out: Vec<_> = out.collect();
        let served = out.iter().rev().find_map(|hop| {
            let is_server = matches!(hop.place, Place::Pod(_) | Place::Node(_));
            let step = hop.steps.iter().rev().find(|step| step.kind == StepKind::Deliver)?;
            let leg = step.after.filter(|_| is_server)?;
            Some((&hop.place, leg))
        });
        let Some((server, leg)) = served else { continue };
        let home = match &flow.from {
            Client::Pod(name) => cluster.pods.get(name).and_then(|pod| pod.node.as_ref()),
            Client::Node(name) => Some(name),
            _ => None,
        };
        let of_server = match server {
            Place::Pod(name) => cluster.pods.get(name).and_then(|pod| pod.node.as_ref()),
            Place::Node(name) => Some(name),
            _ => None,
        };
        let through_other_node = out.iter().any(|hop| match &hop.place {
            Place::Node(name) => Some(name) != home && Some(name) != of_server,
            _ => false,
        });
        let through_balancer = out.iter().any(|hop| matches!(hop.place, Place::LoadBalancer(_)));
        let source = source(cluster, flow, leg.src.ip());
        let way = Way { source, through_balancer, through_other_node };
        let share = all.entry(way).or_insert(Share::NONE);
        *share += route.share;
    }
    all
}

/// Describes whose address a server sees.
fn source(cluster: &Cluster, flow: &Flow, ip: std::net::IpAddr) -> &'static str {
    let is_own = match &flow.from {
        Client::Pod(name) => cluster.pods.get(name).is_some_and(|pod| pod.ips.contains(&ip)),
        Client::Node(name) => {
            cluster.nodes.get(name).is_some_and(|node| node.internal_ips.contains(&ip))
        }
        Client::Outside(own) => own.is_none_or(|own| own == ip),
        _ => false,
    };
    let is_of_node = |node: &uturn_model::Node| {
        node.internal_ips.contains(&ip) || node.pod_cidrs.iter().any(|net| net.contains(&ip))
    };
    let is_pod =
        || cluster.pods.values().any(|pod| !pod.spec.host_network && pod.ips.contains(&ip));
    if is_own && !matches!(flow.from, Client::Outside(None)) {
        "the client's address"
    } else if is_pod() {
        "a pod's address"
    } else if cluster.nodes.values().any(is_of_node) {
        "a node's address"
    } else if matches!(flow.from, Client::Outside(None)) {
        "an address outside the cluster"
    } else {
        "another address"
    }
}

/// Describes ways, as far as they differ from others.
fn described(own: &Ways, other: &Ways) -> String {
    let any_other = |differs: &dyn Fn(&Way, &Way) -> bool| {
        own.keys()
            .chain(other.keys())
            .any(|one| own.keys().chain(other.keys()).any(|two| differs(one, two)))
    };
    let by_balancer = any_other(&|one, two| one.through_balancer != two.through_balancer);
    let by_node = any_other(&|one, two| one.through_other_node != two.through_other_node);
    let mut merged: BTreeMap<String, Share> = BTreeMap::new();
    for (way, share) in own {
        let mut text = format!("servers see {}", way.source);
        if by_balancer {
            let through = if way.through_balancer { "through" } else { "past" };
            text.push_str(&format!(", {through} the load balancer"));
        }
        if by_node && way.through_other_node {
            text.push_str(", by way of another node");
        }
        *merged.entry(text).or_insert(Share::NONE) += *share;
    }
    let mut all: Vec<(String, Share)> = merged.into_iter().collect();
    all.sort_by(|a, b| b.1.rounded_cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    match all.as_slice() {
        [(only, _)] => only.clone(),
        many => {
            let part =
                |(text, share): &(String, Share)| format!("{:.0} %: {text}", share.get() * 100.0);
            many.iter().map(part).collect::<Vec<_>>().join("; ")
        }
    }
}
