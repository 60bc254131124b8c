//! The calls of a cluster: how each ends, for each client and each target.

use std::collections::{BTreeMap, HashSet};
use std::net::IpAddr;
use std::sync::Arc;

use uturn_diagnose::analysis::AnalysisError;
use uturn_model::{Client, Cluster, Destination, NamespacedName, Protocol, Verdict};
use uturn_path::Engine;
use uturn_scan::{KnownWalks, Pods, ScanResult, ScanTarget, Scanner, other_calls};

use super::readings::{Pair, Readings};
use crate::result::{Side, Verdicts};

/// A destination, as it is told apart from others.
pub(super) type Key = (Destination, Protocol);

/// How the calls of a cluster end.
#[derive(Debug, Default)]
pub struct Flows {
    /// The targets, each with its classes of pods.
    pub(super) targets: BTreeMap<Key, TargetFlows>,
    /// The calls of clients that are not pods.
    pub(super) others: BTreeMap<(Client, Key), Verdicts>,
}

/// The calls to one target.
#[derive(Debug)]
pub(super) struct TargetFlows {
    pub(super) target: Arc<ScanTarget>,
    pub(super) classes: Vec<Class>,
}

/// Pods whose calls to a target end alike.
#[derive(Debug)]
pub(super) struct Class {
    pub(super) first: NamespacedName,
    pub(super) pods: Pods,
    pub(super) ends: Verdicts,
    /// The results of the walks, which several scans may share.
    pub(super) verdicts: Arc<[Verdict]>,
}

/// The calls of both clusters, in each pair of their readings.
pub(super) struct Walked {
    pub(super) pairs: Vec<Pair>,
    pub(super) before: Vec<Flows>,
    pub(super) after: Vec<Flows>,
}

impl Walked {
    /// Walks the calls of both clusters to the targets of either.
    pub(super) fn of(
        before: &Cluster,
        after: &Cluster,
        namespace: Option<&str>,
        known: &Arc<KnownWalks>,
    ) -> Result<Self, AnalysisError> {
        let readings = Readings::of(before, after);
        let (old, new) = (node_ports(before, namespace)?, node_ports(after, namespace)?);
        let lost = lost_addresses([before, after]);
        let is_called = |target: &ScanTarget| is_in(target, namespace) && !is_at(&lost, target);
        let each = |clusters: &[&Cluster], others: &[ScanTarget]| {
            let walked =
                clusters.iter().map(|cluster| Flows::of(cluster, others, &is_called, known));
            walked.collect::<Result<Vec<Flows>, AnalysisError>>()
        };
        Ok(Self {
            before: each(&readings.before(before), &new)?,
            after: each(&readings.after(after), &old)?,
            pairs: readings.pairs,
        })
    }
}

/// Returns the node ports that a scan of a cluster calls. Which nodes stand for others differs
/// between two clusters, so each is called at the nodes of both.
fn node_ports(
    cluster: &Cluster,
    namespace: Option<&str>,
) -> Result<Vec<ScanTarget>, AnalysisError> {
    let engine = Engine::new(cluster).map_err(AnalysisError::Walk)?;
    let mut targets = Scanner::new(&engine).targets();
    targets.retain(|target| target.called_node().is_some() && is_in(target, namespace));
    Ok(targets)
}

/// Returns the addresses of nodes that are down in one of the clusters. That they do not answer is what
/// was asked for, so calls of them are not compared.
fn lost_addresses(clusters: [&Cluster; 2]) -> HashSet<IpAddr> {
    let nodes = clusters.into_iter().flat_map(|cluster| cluster.nodes.values());
    let lost = nodes.filter(|node| node.loss.is_some());
    lost.flat_map(|node| node.internal_ips.iter().chain(&node.external_ips)).copied().collect()
}

fn is_at(addresses: &HashSet<IpAddr>, target: &ScanTarget) -> bool {
    matches!(&target.to, Destination::Address(at) if addresses.contains(&at.ip()))
}

fn is_in(target: &ScanTarget, namespace: Option<&str>) -> bool {
    let own = target.object.namespace.as_ref();
    namespace.is_none_or(|wanted| own.is_some_and(|own| own.as_str() == wanted))
}

impl Flows {
    /// Walks all calls of a cluster, and those to the node ports that another cluster is called at.
    fn of(
        cluster: &Cluster,
        node_ports: &[ScanTarget],
        is_called: &dyn Fn(&ScanTarget) -> bool,
        known: &Arc<KnownWalks>,
    ) -> Result<Self, AnalysisError> {
        let engine = Engine::new(cluster).map_err(AnalysisError::Walk)?;
        let scanner = Scanner::new(&engine).knowing(Some(known));
        let mut targets = scanner.targets();
        targets.retain(is_called);
        let more = node_ports
            .iter()
            .filter(|other| is_called(other) && has_node_port(cluster, &targets, other));
        let more: Vec<ScanTarget> = more.cloned().collect();
        targets.extend(more);
        let scanned = scanner.scan(&targets)?;
        let mut flows = Self::of_results(scanned);
        flows.others = others(&engine, &targets);
        Ok(flows)
    }

    /// Makes flows of the results of a scan.
    pub fn of_results(results: Vec<ScanResult>) -> Self {
        let mut targets: BTreeMap<Key, TargetFlows> = BTreeMap::new();
        for result in results {
            let key = (result.target.to.clone(), result.target.protocol);
            let of = targets.entry(key).or_insert_with(|| TargetFlows {
                target: Arc::clone(&result.target),
                classes: Vec::new(),
            });
            of.classes.push(Class {
                first: result.clients.first,
                pods: result.clients.pods,
                ends: result.verdicts.iter().map(side).collect(),
                verdicts: result.verdicts,
            });
        }
        Self { targets, others: BTreeMap::new() }
    }
}

/// Returns whether a cluster has a node port that another cluster is called at, and no scan of it
/// calls that address.
fn has_node_port(cluster: &Cluster, targets: &[ScanTarget], other: &ScanTarget) -> bool {
    let is_same = |own: &ScanTarget| own.to == other.to && own.protocol == other.protocol;
    if targets.iter().any(is_same) {
        return false;
    }
    let is_called =
        targets.iter().any(|own| own.object == other.object && own.called_node().is_some());
    let (Some(name), Destination::Address(at)) = (other.object.namespaced_name(), &other.to) else {
        return false;
    };
    let service = cluster.services.get(&name);
    let has_port = service.is_some_and(|service| {
        service.ports.iter().any(|port| {
            port.node_port.is_some_and(|own| own.number() == at.port())
                && port.protocol == other.protocol
        })
    });
    let has_node = cluster.nodes.values().any(|node| node.internal_ips.contains(&at.ip()));
    is_called && has_port && has_node
}

fn side(verdict: &Verdict) -> Side {
    Side { outcomes: verdict.outcomes.clone(), mechanisms: verdict.mechanisms.clone(), way: None }
}

/// Walks the calls of nodes and of clients outside, if they are few.
fn others(engine: &Engine<'_>, targets: &[ScanTarget]) -> BTreeMap<(Client, Key), Verdicts> {
    let targets: Vec<&ScanTarget> = targets.iter().collect();
    let walked = other_calls(engine, &targets).into_iter();
    walked
        .map(|(_, flow, verdict)| ((flow.from, (flow.to, flow.protocol)), vec![side(&verdict)]))
        .collect()
}
