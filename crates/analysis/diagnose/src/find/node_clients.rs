//! Finds calls of the nodes' own programs that fail: of the kubelet, of agents, of whatever runs
//! outside of pods. A scan covers the nodes that run a pod in their network; this walks the others.

use std::collections::BTreeSet;

use uturn_model::{Client, Flow, Mechanism, Name, Node};
use uturn_path::WalkError;
use uturn_scan::{ScanTarget, Scanner, node_kinds};

use super::MAX_PAIRS;
use super::node_ports::severity_at;
use super::walked::{self, Caused};
use crate::clients::Clients;
use crate::{Code, Severity};

/// Walks a call of one node of each kind that runs no pod in its network to each target.
///
/// # Errors
/// Returns an error if a flow cannot be walked.
pub(super) fn find(scanner: &Scanner<'_, '_>) -> Result<Vec<Caused>, WalkError> {
    let cluster = scanner.engine().cluster();
    if cluster.nodes.len() * cluster.services.len() > MAX_PAIRS {
        return Ok(Vec::new());
    }
    let in_network = cluster.pods.values().filter(|pod| pod.spec.host_network && pod.is_alive());
    let scanned: BTreeSet<&Name> = in_network.filter_map(|pod| pod.node.as_ref()).collect();
    let kinds = node_kinds(cluster).into_iter();
    // A kind of which a node was scanned is covered.
    let callers: Vec<&Node> = kinds
        .filter(|nodes| !nodes.iter().any(|node| scanned.contains(&node.name)))
        .filter_map(|nodes| nodes.first().copied())
        .collect();
    let mut all = Vec::new();
    for target in scanner.targets().iter().filter(|_| !callers.is_empty()) {
        for node in &callers {
            all.extend(of_flow(scanner, node, target)?);
        }
    }
    Ok(all)
}

fn of_flow(
    scanner: &Scanner<'_, '_>,
    node: &Node,
    target: &ScanTarget,
) -> Result<Option<Caused>, WalkError> {
    let from = Client::Node(node.name.clone());
    let flow = Flow { from, to: target.to.clone(), protocol: target.protocol };
    let about = (&target.object, &*target.label);
    let found = walked::failure(scanner.engine(), about, flow, Clients::NODES)?;
    let Some((mut finding, faults)) = found else { return Ok(None) };
    // Nodes need not resolve names of the cluster; what lies behind a load balancer that is not
    // judged, and paths without a rule, are counted with the calls of pods.
    let is_excused = matches!(
        finding.mechanism,
        Some(
            Mechanism::NameUnresolved
                | Mechanism::NoRuleForPath
                | Mechanism::NotModelled
                | Mechanism::NotGiven
        )
    );
    // Nobody need call the cluster IP of servers that expect a load balancer in front of them.
    if finding.code == Code::ProxyHeaderLost && target.is_cluster_ip() {
        finding.severity = Severity::Info;
    }
    // Which programs of a node call the Service is not known.
    let most = severity_at(scanner.engine().cluster(), target, finding.mechanism);
    finding.severity = finding.severity.min(most).min(Severity::Warning);
    Ok((!is_excused).then_some((finding, faults)))
}
