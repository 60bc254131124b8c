//! Everything that walking the clients of a target depends on.

use std::net::IpAddr;

use uturn_model::{Cluster, Name, NamespacedName, Origin};
use uturn_netfilter::IpProtocol;
use uturn_netfilter::hash::FastMap;
use uturn_path::{Options, Request};

use crate::failover::target_list::TargetList;
use crate::failover::target_slots::{AlikeId, TargetSlot};
use crate::inventory::Caller;
use crate::partition::scope::TargetRequest;
use crate::reduced::reduced_cluster::Weights;

/// Everything that walking the clients of a target depends on, but for the target itself.
#[derive(PartialEq)]
pub(crate) struct WalkInputs {
    pub(crate) clients: Vec<WalkedClient>,
    pub(crate) cluster: Cluster,
    pub(crate) weights: Option<WeightsKey>,
    pub(crate) asked: AskedKey,
    pub(crate) options: Options,
}

/// A client that is walked, and where it stands among the targets in line.
#[derive(PartialEq, Eq)]
pub(crate) struct WalkedClient {
    pub(crate) pod: NamespacedName,
    pub(crate) standing: Standing,
}

/// What is asked.
#[derive(PartialEq, Eq)]
pub(crate) struct AskedKey {
    to: std::net::SocketAddr,
    protocol: IpProtocol,
    request: Request,
}

impl AskedKey {
    pub(crate) fn of(asked: &TargetRequest) -> Self {
        Self { to: asked.to, protocol: asked.protocol, request: asked.request.clone() }
    }
}

/// How many objects each object of the reduced cluster represents.
#[derive(PartialEq)]
pub(crate) struct WeightsKey {
    endpoints: FastMap<IpAddr, f64>,
    target_nodes: FastMap<Name, u32>,
    target_endpoints: FastMap<IpAddr, u32>,
    line: Option<LineKey>,
}

/// The line of targets of a load balancer, without numbers that depend on objects which are not in
/// the line.
#[derive(PartialEq)]
struct LineKey {
    /// Runs of nodes that are alike.
    nodes: Vec<(u32, u32)>,
    endpoints: Vec<EndpointKey>,
    nodes_here: Vec<(Name, Option<u32>, u32)>,
    endpoints_here: Vec<(IpAddr, EndpointKey)>,
    is_doubtful: bool,
}

/// An endpoint in line: the first in line that is on the same node, what it is like, and the first
/// in line that is the same client.
type EndpointKey = (Option<u32>, u32, Option<u32>);

/// Where a client stands among the targets in line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Standing {
    /// Its node's place in line; 0 where targets are not in line.
    node: u32,
    /// The first endpoint in line on its node.
    near: Option<u32>,
    /// The first endpoint in line that is this client.
    itself: Option<u32>,
}

/// The first endpoints in line of each node, and of each client.
pub(crate) struct Standings {
    near: FastMap<u32, u32>,
    itself: FastMap<u32, u32>,
}

impl Standings {
    pub(crate) fn of(line: &TargetList) -> Self {
        let (mut near, mut itself) = (FastMap::default(), FastMap::default());
        for (at, slot) in (0..).zip(line.slots_of(false).iter()) {
            if let Some(place) = slot.place {
                near.entry(place).or_insert(at);
            }
            if let Some(client) = slot.client {
                itself.entry(client).or_insert(at);
            }
        }
        Self { near, itself }
    }

    pub(crate) fn at(&self, caller: Caller) -> Standing {
        Standing {
            node: caller.place,
            near: self.near.get(&caller.place).copied(),
            itself: self.itself.get(&caller.at).copied(),
        }
    }
}

impl WeightsKey {
    pub(crate) fn of(weights: &Weights) -> Self {
        let counts = &weights.retries.counts;
        let list = weights.retries.list.as_ref();
        Self {
            endpoints: weights.endpoints.clone(),
            target_nodes: counts.nodes.clone(),
            target_endpoints: counts.endpoints.clone(),
            line: list.map(|list| LineKey::of(list, &weights.endpoints)),
        }
    }
}

impl LineKey {
    fn of(line: &TargetList, walked: &FastMap<IpAddr, f64>) -> Self {
        let standings = Standings::of(line);
        // Classes of nodes are numbered by what else is in the cluster.
        let mut likes: FastMap<AlikeId, u32> = FastMap::default();
        let mut like = |id: AlikeId| {
            let next = likes.len() as u32;
            *likes.entry(id).or_insert(next)
        };
        let rows = line.slots_of(true).rows().iter();
        let nodes = rows.map(|(range, id)| (range.end - range.start, like(*id))).collect();
        let mut nodes_here: Vec<(Name, Option<u32>, u32)> = line
            .nodes_here()
            .map(|(name, slot)| (name.clone(), slot.place, like(slot.like)))
            .collect();
        nodes_here.sort();
        let endpoint = |slot: &TargetSlot| -> EndpointKey {
            let near = slot.place.and_then(|place| standings.near.get(&place).copied());
            let itself = slot.client.and_then(|client| standings.itself.get(&client).copied());
            (near, slot.like.0, itself)
        };
        let here = line.endpoints_here().iter().filter(|(ip, _)| walked.contains_key(ip));
        let mut endpoints_here: Vec<(IpAddr, EndpointKey)> =
            here.map(|(ip, slot)| (*ip, endpoint(slot))).collect();
        endpoints_here.sort();
        Self {
            nodes,
            endpoints: line.slots_of(false).iter().map(endpoint).collect(),
            nodes_here,
            endpoints_here,
            is_doubtful: line.is_doubtful(),
        }
    }
}

/// Leaves out the versions of objects: a version changes with each write, whatever is written, and
/// what is said of a walk in brief has no places in it.
pub(crate) fn without_versions(cluster: &mut Cluster) {
    let nodes = cluster.nodes.values_mut().map(|node| &mut node.origin);
    let pods = cluster.pods.values_mut().map(|pod| &mut pod.origin);
    let services = cluster.services.values_mut().map(|service| &mut service.origin);
    let slices = cluster.endpoints.values_mut().flatten().map(|slice| &mut slice.origin);
    let ingresses = cluster.ingresses.values_mut().map(|ingress| &mut ingress.origin);
    for origin in nodes.chain(pods).chain(services).chain(slices).chain(ingresses) {
        if let Origin::Live { resource_version } = origin {
            *resource_version = "".into();
        }
    }
}
