//! The key of a walk's result: everything on which walking the clients of a target depends.

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

/// Everything on which walking the clients of a target depends, except the target itself.
#[derive(PartialEq)]
pub(crate) struct WalkInputs {
    pub(crate) clients: Vec<WalkedClient>,
    pub(crate) cluster: Cluster,
    pub(crate) weights: Option<WeightsKey>,
    pub(crate) asked: AskedKey,
    pub(crate) options: Options,
}

/// A client that is walked, and its position among the targets in order.
#[derive(PartialEq, Eq)]
pub(crate) struct WalkedClient {
    pub(crate) pod: NamespacedName,
    pub(crate) standing: Standing,
}

/// The request.
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

/// The number of objects that each object of the reduced cluster represents.
#[derive(PartialEq)]
pub(crate) struct WeightsKey {
    endpoints: FastMap<IpAddr, f64>,
    target_nodes: FastMap<Name, u32>,
    target_endpoints: FastMap<IpAddr, u32>,
    line: Option<LineKey>,
}

/// The list of targets of a load balancer, without numbers that depend on objects outside the list.
#[derive(PartialEq)]
struct LineKey {
    /// Runs of equal nodes.
    nodes: Vec<(u32, u32)>,
    endpoints: Vec<EndpointKey>,
    nodes_here: Vec<(Name, Option<u32>, u32)>,
    endpoints_here: Vec<(IpAddr, EndpointKey)>,
    is_doubtful: bool,
}

/// An endpoint in the list: the first endpoint on the same node, its kind, and the first endpoint
/// that is the same client.
type EndpointKey = (Option<u32>, u32, Option<u32>);

/// The position of a client among the targets in order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Standing {
    /// The position of its node in the list; 0 without a list.
    node: u32,
    /// The first endpoint of the list on its node.
    near: Option<u32>,
    /// The first endpoint of the list that is this client.
    itself: Option<u32>,
}

/// The first endpoint of the list on each node, and of each client.
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
        // The numbers of node classes depend on other objects of the cluster.
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

/// Removes the versions of objects: a version changes with each write, whatever is written, and
/// results of a brief walk do not refer to places in objects.
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
