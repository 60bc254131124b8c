//! The engine: a cluster made ready for walking.

use std::cell::{OnceCell, RefCell};
use std::collections::BTreeMap;
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use uturn_kubeproxy::Unsupported;
use uturn_lb::controller;
use uturn_model::route::Place;
use uturn_model::{
    Client, Cluster, DerivedFrom, Destination, Family, Flow, LoadBalancer, Mechanism, Name,
    NamespacedName, Node, Origin, Pod, Protocol, Route, Share, Supposition, Text, Verdict,
};
use uturn_netfilter::hash::{FastMap, FastSet};
use uturn_netfilter::{Assumptions, Packet, Question};

use crate::exchange::Exchange;
use crate::ingress_assumptions;
use crate::inventory::Inventory;
use crate::journey::{PacketState, Peer, add_new};
use crate::names::{Names, Resolution};
use crate::node::NodeRuntime;
use crate::reduced_cluster::{Weights, outline_of_listeners, outline_with};
use crate::resolve::{CLIENT_PORT, Target};
use crate::scan::Atlas;
use crate::uncaptured;
use crate::unjudged::Gap;

/// A cluster made ready for walking. What a node's kernel knows is worked out when a packet
/// first comes to it.
pub struct Engine<'a> {
    pub(crate) cluster: &'a Cluster,
    pub(crate) keeps_every_way: bool,
    /// Whether nobody wants to know step by step.
    pub(crate) is_brief: bool,
    /// Whether of many ways only the likeliest that fail are told step by step.
    pub(crate) tells_worst: bool,
    /// In a small cluster that stands for a large one: how many each part stands for.
    pub(crate) weights: Option<Weights>,
    balancers: OnceCell<Vec<LoadBalancer>>,
    pub(crate) runtimes: BTreeMap<&'a Name, OnceCell<Result<Arc<NodeRuntime>, WalkError>>>,
    /// All who are there, where this is a small cluster beside captured kernels: their rules
    /// lead to whom they please.
    pub(crate) whole: Option<&'a Inventory<'a>>,
    /// What is taken for true of rules that nobody models, and which of them were met.
    pub(crate) assumed: RefCell<Assumptions>,
    pub(crate) open: RefCell<Vec<Question>>,
    supposed: Vec<Supposition>,
    /// How often a target answers probes from an address, and why not always, as far as it was
    /// asked.
    pub(crate) health: RefCell<FastMap<Probed, (f64, Vec<Mechanism>)>>,
    pods_by_address: FastMap<IpAddr, &'a NamespacedName>,
    nodes_by_address: FastMap<IpAddr, &'a Node>,
    /// Addresses of nodes with ports that are endpoints of Services.
    pub(crate) ends_on_nodes: OnceCell<FastSet<(IpAddr, u16)>>,
    /// The first pod in each node's network that listens on a port.
    host_pods: FastMap<(&'a Name, u16), &'a Pod>,
    names: OnceCell<Names<'a>>,
    /// Whether some bridge shows its frames to no rule.
    pub(crate) blind_bridges: OnceCell<bool>,
    pub(crate) atlas: OnceCell<RefCell<Atlas<'a>>>,
}

/// Who probes, what, and by which protocol.
type Probed = (IpAddr, SocketAddr, Protocol);

impl<'a> Engine<'a> {
    /// Makes a cluster ready. All that stands in the way is said at once.
    pub fn new(cluster: &'a Cluster) -> Result<Self, Vec<WalkError>> {
        let mut engine = Self::of(cluster, None);
        engine.check()?;
        engine.supposed = supposed(cluster);
        Ok(engine)
    }

    /// Makes a cluster ready, or one that stands for a larger one, of which nothing has to
    /// be checked or supposed.
    pub(crate) fn of(cluster: &'a Cluster, weights: Option<Weights>) -> Self {
        let alive = || cluster.pods.values().filter(|pod| pod.is_alive());
        let own = alive().filter(|pod| !pod.spec.host_network);
        let pods_by_address =
            own.flat_map(|pod| pod.ips.iter().map(|ip| (*ip, &pod.name))).collect();
        let mut nodes_by_address = FastMap::default();
        for node in cluster.nodes.values() {
            for ip in node.internal_ips.iter().chain(&node.external_ips).chain(&node.tunnel_ips) {
                nodes_by_address.entry(*ip).or_insert(node);
            }
        }
        let mut host_pods = FastMap::default();
        for pod in alive().filter(|pod| pod.spec.host_network) {
            let Some(node) = &pod.node else { continue };
            for port in pod.spec.ports() {
                host_pods.entry((node, port.port.number())).or_insert(pod);
            }
        }
        Self {
            cluster,
            keeps_every_way: false,
            is_brief: false,
            tells_worst: false,
            weights,
            balancers: OnceCell::new(),
            runtimes: cluster.nodes.keys().map(|name| (name, OnceCell::new())).collect(),
            whole: None,
            assumed: RefCell::default(),
            open: RefCell::default(),
            supposed: Vec::new(),
            health: RefCell::default(),
            pods_by_address,
            nodes_by_address,
            host_pods,
            ends_on_nodes: OnceCell::new(),
            names: OnceCell::new(),
            blind_bridges: OnceCell::new(),
            atlas: OnceCell::new(),
        }
    }

    /// What somebody wrote is read at once, and kube-proxy's settings are tried.
    fn check(&self) -> Result<(), Vec<WalkError>> {
        let cluster = self.cluster;
        let mut faults = Vec::new();
        let mut is_tried = false;
        for (name, cell) in &self.runtimes {
            let node = &cluster.nodes[*name];
            let is_written = cluster.captures.contains_key(*name) || node.firewall.is_some();
            let made = match is_written {
                true => NodeRuntime::new(cluster, node)
                    .map(|runtime| drop(cell.set(Ok(Arc::new(runtime))))),
                false if is_tried => continue,
                false => NodeRuntime::new(&outline_with(cluster, node), node).map(drop),
            };
            is_tried |= !is_written;
            faults.extend(made.err());
        }
        faults.dedup_by(|a, b| a.same_cause(b));
        if faults.is_empty() { Ok(()) } else { Err(faults) }
    }

    /// What a node's kernel knows.
    ///
    /// # Errors
    /// Its rules cannot be compiled or read.
    pub(crate) fn runtime(&self, node: &Name) -> Result<&Arc<NodeRuntime>, WalkError> {
        let make = || NodeRuntime::new(self.cluster, &self.cluster.nodes[node]).map(Arc::new);
        self.runtimes[node].get_or_init(make).as_ref().map_err(Clone::clone)
    }

    pub(crate) fn names(&self) -> &Names<'a> {
        self.names.get_or_init(|| Names::new(self.cluster))
    }

    /// The same engine, giving every single way instead of merging those that end alike.
    #[must_use]
    pub fn with_every_way(mut self) -> Self {
        self.keeps_every_way = true;
        self
    }

    /// The cluster that is walked.
    pub fn cluster(&self) -> &'a Cluster {
        self.cluster
    }

    /// The load balancers that the cluster has.
    pub fn balancers(&self) -> &[LoadBalancer] {
        self.balancers.get_or_init(|| {
            let mut balancers = controller::load_balancers(self.cluster);
            let many = |target: &_| self.weights.as_ref()?.of_target(target);
            let listeners = balancers.iter_mut().flat_map(|one| &mut one.listeners);
            for rule in listeners.flat_map(|one| &mut one.rules) {
                for target in &mut rule.targets {
                    target.weight *= many(target).unwrap_or(1);
                }
                // Who stands for none is not asked.
                rule.targets.retain(|target| many(target) != Some(0));
            }
            balancers
        })
    }

    /// What is taken for true: by whoever made the cluster, and by this engine, which does
    /// not judge everything.
    pub fn supposed(&self) -> &[Supposition] {
        &self.supposed
    }

    /// The load balancer's rule that a call by this protocol leads to, if the destination is the
    /// address of a load balancer that listens there.
    pub fn balancer_behind(
        &self,
        to: &Destination,
        protocol: Protocol,
    ) -> Option<&uturn_model::lb::Rule> {
        let (address, port) = match to {
            Destination::Address(address) => (address.ip(), address.port()),
            Destination::Url { host, port, .. } | Destination::Host(host, port) => {
                (host.parse().ok().or_else(|| self.names().anyone(host))?, port.number())
            }
            Destination::Service(..) | Destination::Ingress { .. } | Destination::Pod(..) => {
                return None;
            }
        };
        self.listener(SocketAddr::new(address, port), protocol.into())?.rules.first()
    }

    /// What becomes of a flow: one verdict for each reading of what is not known.
    pub fn verdicts(&self, flow: &Flow) -> Result<Vec<Verdict>, WalkError> {
        Ok(vec![self.verdict(flow)?])
    }

    fn verdict(&self, flow: &Flow) -> Result<Verdict, WalkError> {
        let clients = self.clients(&flow.from)?;
        let share = 1.0 / clients.len() as f64;
        let mut ways = Vec::new();
        let gap = self.gap_of_name(&flow.to);
        for client in clients {
            if let Some(gap) = &gap {
                ways.push(gap.exchange(self.place(client), PacketState::nowhere(flow.protocol)));
                continue;
            }
            let target = self.aim(client, &flow.to)?;
            for mut way in self.ways(client, flow, &target)? {
                way.share *= share;
                ways.push(way);
            }
        }
        Ok(self.added_up(ways))
    }

    /// What becomes of a flow whose target is known already.
    pub(crate) fn verdict_at(&self, flow: &Flow, target: &Target) -> Result<Verdict, WalkError> {
        let mut ways = Vec::new();
        for client in self.clients(&flow.from)? {
            ways.extend(self.ways(client, flow, target)?);
        }
        Ok(self.added_up(ways))
    }

    fn added_up(&self, ways: Vec<Exchange>) -> Verdict {
        let mut supposed = self.supposed.clone();
        let mut routes = Vec::new();
        for way in self.merged(ways) {
            add_new(&mut supposed, way.supposed);
            routes.push(Route {
                share: Share::new(way.share),
                outcome: way.outcome,
                late: way.late,
                mechanisms: way.mechanisms,
                chance: way.chance,
                hops: way.hops,
            });
        }
        Verdict::of(routes, Vec::new(), supposed)
    }

    fn ways(
        &self,
        client: Peer<'a>,
        flow: &Flow,
        target: &Target,
    ) -> Result<Vec<Exchange>, WalkError> {
        if let Some(resolution) = &target.resolved {
            if let Some(lost) = self.question_lost(client, resolution)? {
                return Ok(vec![lost]);
            }
            if target.addresses.is_empty() {
                if let Some(gap) = self.gap_of_resolution(resolution) {
                    return Ok(vec![self.ended_at_name(client, flow.protocol, resolution, &gap)]);
                }
                let may_be_outside = resolution.doubt.is_some();
                let gap = self.gap_of_lost_name(client, &flow.to, may_be_outside);
                let nowhere = PacketState::nowhere(flow.protocol);
                return Ok(vec![match gap {
                    Some(gap) => gap.exchange(self.place(client), nowhere),
                    None => self.unresolved(resolution.clone()),
                }]);
            }
        }
        let mut ways = Vec::new();
        for address in &target.addresses {
            let family = Family::of(address.ip());
            let source = match flow.from {
                Client::Outside(Some(own)) => {
                    (Family::of(own) == family).then_some(SocketAddr::new(own, CLIENT_PORT))
                }
                _ => self.source(client, *address, flow.protocol)?,
            };
            let source =
                source.ok_or_else(|| WalkError::NoAddress(flow.from.to_string(), family))?;
            let packet = Packet::new(flow.protocol, source, *address);
            let pace = self.pace(client);
            let mut trip = PacketState::new(packet).briefly(self.is_brief).paced(pace);
            if let Some(resolution) = &target.resolved {
                trip.supposed.clone_from(&resolution.supposed);
                for step in &resolution.steps {
                    trip.note(Place::Dns, step.clone());
                }
            }
            let asked = match self.gap_at(client, *address, flow.protocol) {
                Some(gap) => vec![gap.exchange(self.place(client), trip)],
                None => self.call(client, &target.request, trip)?,
            };
            for mut way in asked {
                way.share /= target.addresses.len() as f64;
                ways.push(way);
            }
        }
        Ok(ways)
    }

    /// The load balancer that a name leads to, where its addresses are not known.
    fn gap_of_resolution(&self, resolution: &Resolution) -> Option<Gap> {
        resolution.balancer.as_deref().and_then(|name| self.gap_of_host(name))
    }

    /// The end of a flow that cannot be judged any more once its name is resolved.
    fn ended_at_name(
        &self,
        client: Peer<'a>,
        protocol: Protocol,
        resolution: &Resolution,
        gap: &Gap,
    ) -> Exchange {
        let mut trip = PacketState::nowhere(protocol);
        for step in &resolution.steps {
            trip.note(Place::Dns, step.clone());
        }
        gap.exchange(self.place(client), trip)
    }

    /// The pod with a network of its own that has this address.
    pub(crate) fn pod_at(&self, address: IpAddr) -> Option<&'a Pod> {
        self.pods_by_address.get(&address).and_then(|name| self.cluster.pods.get(*name))
    }

    /// The hostNetwork pod on a node that listens on a port.
    pub(crate) fn host_pod_on(&self, node: &'a Node, port: u16) -> Option<&'a Pod> {
        self.host_pods.get(&(&node.name, port)).copied()
    }

    /// The node that has this address.
    pub(crate) fn node_at(&self, address: IpAddr) -> Option<&'a Node> {
        self.nodes_by_address.get(&address).copied()
    }

    /// Where a load balancer was asked for.
    pub(crate) fn balancer_origin(&self, balancer: usize) -> Origin {
        let owner = self.balancers()[balancer]
            .listeners
            .iter()
            .flat_map(|one| &one.rules)
            .map(|r| &r.owner)
            .next();
        owner.map_or_else(|| Origin::Derived(DerivedFrom::Cloud), |owner| self.origin_of(owner))
    }

    /// Where an object was written.
    pub fn origin_of(&self, object: &uturn_model::ObjectRef) -> Origin {
        let cluster = self.cluster;
        let found = object.namespaced_name().and_then(|name| match object.kind {
            uturn_model::Kind::Service => cluster.services.get(&name).map(|one| &one.origin),
            uturn_model::Kind::Ingress => cluster.ingresses.get(&name).map(|one| &one.origin),
            uturn_model::Kind::Pod => cluster.pods.get(&name).map(|one| &one.origin),
            _ => None,
        });
        found.cloned().unwrap_or_else(|| Origin::object(object.clone()))
    }
}

/// What the cluster supposes, and what nobody judges yet.
fn supposed(cluster: &Cluster) -> Vec<Supposition> {
    // Only Facts give load balancers security groups.
    let has_groups = cluster.load_balancers.iter().any(|fact| fact.security_groups.is_some());
    let balancers = match has_groups {
        true => controller::load_balancers(&outline_of_listeners(cluster)),
        false => Vec::new(),
    };
    let mut supposed = cluster.supposed.clone();
    supposed.extend(uncaptured::supposed(cluster));
    supposed.extend(ingress_assumptions::of_ingresses(cluster));
    let mut unjudged = |about: String, settle: &str| {
        supposed.push(Supposition {
            about: about.into(),
            taken: "everything passes".into(),
            because: "uturn does not judge it".into(),
            settle: settle.into(),
        });
    };
    let policies = cluster.network_policies.len();
    if policies > 0 {
        unjudged(format!("{policies} NetworkPolicy"), "look whether they allow the flow");
    }
    let mut groups: Vec<&Text> = Vec::new();
    let nodes = cluster.nodes.values().filter_map(|node| node.security_groups.as_ref());
    for name in nodes.chain(balancers.iter().map(|one| &one.security_groups)).flatten() {
        if !cluster.security_groups.contains_key(name) && !groups.contains(&name) {
            groups.push(name);
            unjudged(format!("security group {name}"), "state its rules in Facts");
        }
    }
    supposed
}

/// Why a flow cannot be walked.
#[derive(Clone, Debug, PartialEq)]
pub enum WalkError {
    /// A node's rules cannot be compiled.
    Compile(Name, Unsupported),
    /// A node's rules cannot be read.
    Read(Vec<String>),
    /// There is no such object.
    Unknown(String),
    /// The workload has no pods.
    NoPods(String),
    /// The pod is on no known node.
    NotPlaced(NamespacedName),
    /// The client has no address of the target's family.
    NoAddress(String, Family),
    /// Something is missing that uturn would need.
    Later(String),
    /// The flow depends on more than a reduced cluster can say: the whole one has to be walked.
    NeedsWhole,
}

impl WalkError {
    pub(crate) fn unknown(what: &dyn fmt::Display) -> Self {
        Self::Unknown(what.to_string())
    }

    fn same_cause(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Compile(_, a), Self::Compile(_, b)) => a == b,
            _ => self == other,
        }
    }
}

impl fmt::Display for WalkError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Compile(node, why) => write!(f, "node {node}: {why}"),
            Self::Read(faults) => f.write_str(&faults.join("\n")),
            Self::Unknown(what) => write!(f, "there is no {what} in this cluster"),
            Self::NoPods(what) => write!(f, "{what} has no pods in this cluster"),
            Self::NotPlaced(pod) => write!(f, "pod/{pod} is on no node that is known"),
            Self::NoAddress(who, family) => write!(f, "{who} has no {family} address"),
            Self::Later(what) => f.write_str(what),
            Self::NeedsWhole => f.write_str("only the whole cluster can tell"),
        }
    }
}

impl std::error::Error for WalkError {}
