//! A cluster made ready for walking, with the state that all walks through it share.

mod balancers;
pub(crate) mod cluster_index;
pub(crate) mod header_servers;
pub(crate) mod ingress_assumptions;
mod kernels;
mod met_services;
pub(crate) mod open_questions;
mod ready_nodes;
mod supposed;
pub(crate) mod uncaptured;
pub(crate) mod walk;
pub(crate) mod work;

use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, OnceLock};

use uturn_clouds::controller::{self, IngressCall, IngressPorts};
use uturn_clouds::ingress_controller::ControllerRules;
use uturn_clouds::on_nodes::{self, OnNodes};
use uturn_model::{
    Assumption, Cluster, Destination, Ingress, LoadBalancer, NamespacedName, Node, ObjectRef,
    Origin, Pod, Protocol, Text, Version,
};
use uturn_netfilter::IpProtocol;
use uturn_netfilter::hash::{FastMap, FastSet};

use crate::error::WalkError;
use crate::names::Names;
use crate::options::Options;
use crate::origin;
use crate::population::{Individuals, Population};
use balancers::Balancers;
use cluster_index::ClusterIndex;
use header_servers::HeaderServers;
use met_services::MetServices;
pub use ready_nodes::KernelCounts;
use ready_nodes::ReadyNodes;
use walk::{ProbeCache, Walk};
use work::SharedWork;

/// A cluster made ready for walking. A node's kernel is compiled when a packet first reaches the
/// node, and is kept while there is room.
///
/// The engine can be shared between threads: the state of a walk is in [`Walk`].
pub struct Engine<'a> {
    pub(crate) cluster: &'a Cluster,
    options: Options,
    index: ClusterIndex<'a>,
    balancers: Arc<Balancers>,
    on_nodes: OnceLock<Vec<OnNodes<'a>>>,
    header_servers: OnceLock<HeaderServers>,
    nodes: ReadyNodes<'a>,
    /// The Services that packets have met, if nodes get the rules of only those.
    met: Option<MetServices<'a>>,
    names: OnceLock<Names<'a>>,
    controller_rules: OnceLock<Vec<ControllerRules>>,
    /// The listeners of each Ingress that was called.
    ingress_ports: FastMap<&'a NamespacedName, OnceLock<IngressPorts>>,
    supposed: Vec<Assumption>,
    /// Whether the frames of some bridge bypass all rules.
    blind_bridges: OnceLock<bool>,
    /// The results of probes on walks that assume nothing.
    probes: ProbeCache,
    /// The budget that all walks share.
    pub(crate) work: SharedWork,
}

const fn is_shared<T: Sync + Send>() {}
const _: () = is_shared::<Engine<'_>>();

impl<'a> Engine<'a> {
    /// Makes a cluster ready.
    ///
    /// # Errors
    /// Returns every fault that keeps a node from being walked and that can be found in advance.
    pub fn new(cluster: &'a Cluster) -> Result<Self, Vec<WalkError>> {
        let mut engine = Self::unchecked(cluster);
        engine.check()?;
        engine.supposed = supposed::of(cluster);
        Ok(engine)
    }

    /// Makes a reduced cluster ready. It is not checked and adds no assumptions: the whole cluster
    /// was checked and has them.
    pub fn reduced(cluster: &'a Cluster, population: &dyn Population) -> Self {
        let mut balancers = controller::load_balancers(cluster);
        let listeners = balancers.iter_mut().flat_map(|balancer| &mut balancer.listeners);
        for rule in listeners.flat_map(|listener| &mut listener.rules) {
            for target in &mut rule.targets {
                target.weight *= population.targets(target);
            }
            rule.targets.retain(|target| population.targets(target) > 0);
        }
        Self { balancers: Arc::new(Balancers::of(balancers)), ..Self::unchecked(cluster) }
    }

    fn unchecked(cluster: &'a Cluster) -> Self {
        Self {
            cluster,
            options: Options::default(),
            index: ClusterIndex::new(cluster),
            balancers: Arc::default(),
            on_nodes: OnceLock::new(),
            header_servers: OnceLock::new(),
            nodes: ReadyNodes::default(),
            met: None,
            names: OnceLock::new(),
            controller_rules: OnceLock::new(),
            ingress_ports: cluster.ingresses.keys().map(|name| (name, OnceLock::new())).collect(),
            supposed: Vec::new(),
            blind_bridges: OnceLock::new(),
            probes: ProbeCache::default(),
            work: SharedWork::of_cluster(cluster),
        }
    }

    /// Makes walks return every single way instead of merging those that end alike.
    #[must_use]
    pub fn with_every_way(self) -> Self {
        let options = Options { every_way: true, ..self.options };
        self.with_options(options)
    }

    /// Makes walks assume that load balancers hash clients' addresses as uturn does.
    #[must_use]
    pub fn with_known_hash(self) -> Self {
        let options = Options { knows_hash: true, ..self.options };
        self.with_options(options)
    }

    /// Replaces the options.
    #[must_use]
    pub fn with_options(self, options: Options) -> Self {
        Self { options, ..self }
    }

    /// Gives the engine the share of a scan's work that calls to `some` of `all` targets may take.
    #[must_use]
    pub fn for_targets(self, some: usize, all: usize) -> Self {
        Self { work: SharedWork::of_targets(self.cluster, some, all), ..self }
    }

    /// Returns the options of the engine's walks.
    pub fn options(&self) -> Options {
        self.options
    }

    /// Begins a walk.
    pub fn walk<'e>(&'e self, options: Options, population: &'e dyn Population) -> Walk<'e, 'a> {
        Walk::new(self, options, population)
    }

    /// Begins a walk in which each node, pod and target represents only itself.
    pub(crate) fn walk_whole(&self) -> Walk<'_, 'a> {
        self.walk(self.options, &Individuals)
    }

    /// Makes an engine of the same cluster for a few calls: nodes get only the rules of Services
    /// that packets of these calls meet, which takes a small part of the time and memory. Calls end
    /// as they do with all rules, but the rule lines that steps name are not those of the full
    /// rules.
    #[must_use]
    pub fn with_met_services(&self) -> Self {
        let engine = Self {
            options: self.options,
            balancers: Arc::clone(&self.balancers),
            met: MetServices::of(self.cluster),
            supposed: self.supposed.clone(),
            ..Self::unchecked(self.cluster)
        };
        let ready = self.nodes.all().into_iter();
        for (name, runtime) in ready.filter(|(name, _)| self.has_given_rules(name)) {
            engine.nodes.adopt(name, &runtime);
        }
        engine
    }

    /// Returns whether nodes get only the rules of Services that packets meet.
    pub(crate) fn has_met_services(&self) -> bool {
        self.met.is_some()
    }

    /// Returns the work of all walks so far, in evaluated rules or what takes as long.
    pub fn work_done(&self) -> u64 {
        self.work.done()
    }

    /// Returns the results of probes so far.
    pub fn probes(&self) -> ProbeCache {
        self.probes.clone()
    }

    /// Takes over the cache of another engine, in whose cluster probes find the same.
    pub fn adopt_probes(&mut self, probes: &ProbeCache) {
        self.probes = probes.clone();
    }

    /// Returns the release of CoreDNS that refuses to start with the Corefile, and why.
    pub fn refused_corefile(&self) -> Option<(Version, &Origin, &str)> {
        let (release, fault) = self.names().refusal()?;
        Some((release, &fault.origin, &fault.message))
    }

    pub(crate) fn names(&self) -> &Names<'a> {
        self.names.get_or_init(|| Names::new(self.cluster))
    }

    /// Returns the rules of a controller in the cluster, by the controller's place.
    pub(crate) fn controller_rules(&self, place: usize) -> &ControllerRules {
        let cluster = self.cluster;
        let of = |controller| ControllerRules::new(cluster, controller);
        &self.controller_rules.get_or_init(|| cluster.controllers.iter().map(of).collect())[place]
    }

    /// Completes a call of an Ingress of the cluster.
    pub(crate) fn ingress_call(
        &self,
        ingress: &'a Ingress,
        host: Option<&Text>,
        path: Option<&Text>,
    ) -> IngressCall {
        let ports = || {
            let known = &self.ingress_ports[&ingress.name];
            known.get_or_init(|| IngressPorts::of(self.cluster, ingress))
        };
        controller::ingress_call_at(self.cluster, ingress, host, path, ports)
    }

    /// Returns the cluster that is walked.
    pub fn cluster(&self) -> &'a Cluster {
        self.cluster
    }

    /// Returns the load balancers of the cluster, in the order of their addresses, with all their
    /// targets. In a large cluster these take gigabytes: see [`Self::listeners`].
    pub fn balancers(&self) -> &[LoadBalancer] {
        self.balancers.all(self.cluster)
    }

    /// Returns the load balancers of the cluster, in the order of their addresses. Their targets may
    /// be missing.
    pub fn listeners(&self) -> &[LoadBalancer] {
        self.balancers.listeners(self.cluster)
    }

    /// Returns the load balancer at an address, with all its targets.
    pub fn balancer_at(&self, vip: IpAddr) -> Option<&LoadBalancer> {
        self.balancers.at(self.cluster, vip)
    }

    /// Returns the load balancers that are pods on nodes.
    pub(crate) fn on_nodes(&self) -> &[OnNodes<'a>] {
        self.on_nodes.get_or_init(|| on_nodes::all(self.cluster))
    }

    /// Returns the servers behind load balancers that send a PROXY header.
    pub(crate) fn header_servers(&self) -> &HeaderServers {
        self.header_servers.get_or_init(|| HeaderServers::new(self.cluster, self.listeners()))
    }

    /// Returns the assumptions: those made when the cluster was built, and those of this engine,
    /// which does not judge everything.
    pub fn supposed(&self) -> &[Assumption] {
        &self.supposed
    }

    /// Returns the first rule of the load balancer that a call by this protocol reaches, if the
    /// destination is the address of a load balancer that listens there.
    pub fn balancer_behind(
        &self,
        to: &Destination,
        protocol: Protocol,
    ) -> Option<&uturn_model::lb::Rule> {
        self.listener(self.called_address(to)?, protocol.into())?.rules.first()
    }

    /// Returns the address and port that a destination states or names, whoever asks for the name.
    pub(crate) fn called_address(&self, to: &Destination) -> Option<SocketAddr> {
        match to {
            Destination::Address(address) => Some(*address),
            Destination::Url { host, port, .. } | Destination::Host(host, port) => {
                let ip = host.parse().ok().or_else(|| self.names().address_for_any_client(host))?;
                Some(SocketAddr::new(ip, port.number()))
            }
            Destination::Service(..) | Destination::Ingress { .. } | Destination::Pod(..) => None,
        }
    }

    /// Returns the listener at an address of a load balancer.
    pub fn listener(
        &self,
        at: SocketAddr,
        protocol: IpProtocol,
    ) -> Option<&uturn_model::lb::Listener> {
        find_listener(self.balancer_at(at.ip())?, at.port(), protocol)
    }

    /// Returns the pod outside its node's network that has this address.
    pub fn pod_at(&self, address: IpAddr) -> Option<&'a Pod> {
        self.index.pod_at(address)
    }

    /// Returns the hostNetwork pod on a node that listens on a port.
    pub(crate) fn host_pod_on<'e>(&'e self, node: &'e Node, port: u16) -> Option<&'e Pod> {
        self.index.host_pod_on(node, port)
    }

    /// Returns the node that has this address.
    pub(crate) fn node_at(&self, address: IpAddr) -> Option<&'a Node> {
        self.index.node_at(address)
    }

    /// Returns the only node that is stated to hold this address beside its own.
    pub(crate) fn holder_of(&self, address: IpAddr) -> Option<&'a Node> {
        self.index.holder_of(address)
    }

    /// Returns the endpoints of Services at addresses of nodes.
    pub(crate) fn node_endpoints(&self) -> &FastSet<(IpAddr, u16)> {
        self.index.node_endpoints()
    }

    /// Returns whether the address and port are an endpoint of a Service.
    pub(crate) fn is_service_endpoint(&self, to: SocketAddr) -> bool {
        self.index.is_endpoint(to.ip(), to.port())
    }

    /// Returns the origin of an object.
    pub fn origin_of(&self, object: &ObjectRef) -> Origin {
        origin::of(self.cluster, object)
    }
}

/// Returns the listener of a load balancer on a port, by the transport protocol.
pub(crate) fn find_listener(
    balancer: &LoadBalancer,
    port: u16,
    protocol: IpProtocol,
) -> Option<&uturn_model::lb::Listener> {
    balancer.listeners.iter().find(|listener| {
        listener.port.number() == port
            && IpProtocol::from(listener.protocol.transport()) == protocol
    })
}
