//! Selects the endpoints of a Service port that a node uses, and for which traffic.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::net::IpAddr;

use uturn_model::{Endpoint, EndpointSlice, Family, Node, Port, Protocol};

use super::PortPlan;

/// The endpoints to which this node may send, sorted as kube-proxy sorts them: by text.
#[derive(Default)]
pub(crate) struct Backends {
    /// The endpoints. Each serves traffic under policy Cluster, under policy Local, or under both.
    pub(crate) all: Vec<Backend>,
    /// Whether any endpoint anywhere could serve; if not, clients are refused.
    pub(crate) any: bool,
    /// Every endpoint on this node, whatever its state.
    pub(crate) here: Vec<(IpAddr, Port)>,
}

/// One endpoint.
pub(crate) struct Backend {
    /// `address:port`, or `[address]:port`.
    pub(crate) text: String,
    pub(crate) ip: IpAddr,
    pub(crate) port: Port,
    /// The end of the address in `text`.
    colon: usize,
    cluster: bool,
    local: bool,
}

impl Backends {
    /// Returns whether any endpoint serves under policy Local.
    pub(crate) fn any_local(&self) -> bool {
        self.all.iter().any(Backend::serves_local)
    }
}

impl Backend {
    fn new(address: IpAddr, port: Port) -> Self {
        let mut text = String::with_capacity(24);
        let written = match address {
            IpAddr::V4(address) => write!(text, "{address}"),
            IpAddr::V6(address) => write!(text, "[{address}]"),
        };
        let colon = text.len();
        let written = written.and_then(|()| write!(text, ":{port}"));
        debug_assert!(written.is_ok(), "a string takes all");
        Self { text, ip: address, port, colon, cluster: false, local: false }
    }

    /// Returns whether the endpoint accepts traffic under policy Cluster.
    pub(crate) fn serves_cluster(&self) -> bool {
        self.cluster
    }

    /// Returns whether the endpoint accepts traffic under policy Local: it is on this node.
    pub(crate) fn serves_local(&self) -> bool {
        self.local
    }

    /// Returns the address without brackets.
    pub(crate) fn address(&self) -> &str {
        self.text[..self.colon].trim_start_matches('[').trim_end_matches(']')
    }
}

/// The slices of a Service by the name and protocol of their ports, each with the number of the port.
pub(super) struct SlicesByPort<'e>(HashMap<(&'e str, Protocol), Vec<(&'e EndpointSlice, Port)>>);

impl<'e> SlicesByPort<'e> {
    /// Groups the slices, in the order in which their endpoints are considered.
    pub(super) fn of(slices: &[&'e EndpointSlice]) -> Self {
        let mut by_port: HashMap<_, Vec<_>> = HashMap::new();
        for slice in slices {
            for port in &slice.ports {
                let key = (port.name.as_deref().unwrap_or_default(), port.protocol);
                by_port.entry(key).or_default().push((*slice, port.port));
            }
        }
        Self(by_port)
    }

    fn of_port<'k>(&'k self, name: &'k str, protocol: Protocol) -> &'k [(&'e EndpointSlice, Port)] {
        self.0.get(&(name, protocol)).map_or(&[], Vec::as_slice)
    }
}

impl PortPlan<'_> {
    /// Adds the endpoints that serve. Returns the number of endpoints, ready or not.
    pub(super) fn add_backends(&mut self, slices: &SlicesByPort<'_>, node: &Node) -> usize {
        let mut found = self.endpoints_in(slices, node);
        let count = found.len();
        let here = found.iter().filter(|(_, endpoint)| is_on(endpoint, node));
        self.backends.here = here.map(|(backend, _)| (backend.ip, backend.port)).collect();
        self.decide(&mut found, node);
        self.backends.all = found
            .into_iter()
            .map(|(backend, _)| backend)
            .filter(|backend| backend.cluster || backend.local)
            .collect();
        count
    }

    /// Returns every endpoint of the port once. Of several entries for one address the first is
    /// used, unless a later one is on this node or, in newer versions, is not terminating.
    fn endpoints_in<'e>(&self, slices: &SlicesByPort<'e>, node: &Node) -> Vec<Found<'e>> {
        let mut found: Vec<Found<'e>> = Vec::new();
        for (slice, port) in slices.of_port(self.key, self.protocol) {
            let of_family = |endpoint: &&Endpoint| Family::of(endpoint.address) == slice.family;
            found.extend(
                slice
                    .endpoints
                    .iter()
                    .filter(of_family)
                    .map(|endpoint| (Backend::new(endpoint.address, *port), endpoint)),
            );
        }
        found.sort_by(|(a, _), (b, _)| a.text.cmp(&b.text));
        found.dedup_by(|(backend, later), (kept, earlier)| {
            let same = backend.text == kept.text;
            let counts =
                if self.planning.prefers_running { !later.terminating } else { is_on(later, node) };
            if same && counts {
                *earlier = later;
            }
            same
        });
        found
    }

    /// Decides for each endpoint which traffic it serves.
    fn decide(&mut self, found: &mut [Found<'_>], node: &Node) {
        if !self.planning.policies_are_apart {
            return self.decide_at_once(found, node);
        }
        let has_last_resort = self.planning.last_resort;
        let is_last_resort = |endpoint: &Endpoint| has_last_resort && is_going(endpoint);
        if self.uses_cluster() {
            let topology = self.topology(found, node);
            for (backend, endpoint) in &mut *found {
                backend.cluster = endpoint.ready && topology.admits(endpoint, node);
            }
            if !found.iter().any(|(backend, _)| backend.cluster) {
                for (backend, endpoint) in &mut *found {
                    backend.cluster = is_last_resort(endpoint);
                }
            }
            self.backends.any = found.iter().any(|(backend, _)| backend.cluster);
        }
        if self.uses_local() {
            let is_ready_here = |endpoint: &Endpoint| endpoint.ready && is_on(endpoint, node);
            let some_ready = found.iter().any(|(_, endpoint)| is_ready_here(endpoint));
            for (backend, endpoint) in &mut *found {
                self.backends.any |= endpoint.ready || is_last_resort(endpoint);
                backend.local = if some_ready {
                    is_ready_here(endpoint)
                } else {
                    is_last_resort(endpoint) && is_on(endpoint, node)
                };
            }
        }
    }

    /// Does the same for versions that decide both policies at once.
    fn decide_at_once(&mut self, found: &mut [Found<'_>], node: &Node) {
        let only_here = self.internal_local && !self.external_local;
        for (backend, endpoint) in found {
            backend.cluster = endpoint.ready && (!only_here || is_on(endpoint, node));
            backend.local = endpoint.ready && is_on(endpoint, node);
            self.backends.any |= backend.cluster;
        }
    }

    /// Returns the restriction that hints put on traffic. Hints are used only if every ready
    /// endpoint has some, and one of them names this node (or, failing that, its zone).
    fn topology(&self, found: &[Found<'_>], node: &Node) -> Topology {
        let ready =
            || found.iter().map(|(_, endpoint)| *endpoint).filter(|endpoint| endpoint.ready);
        let holds = |mode: Topology| {
            ready().all(|endpoint| mode.is_hinted(endpoint))
                && ready().any(|endpoint| mode.admits(endpoint, node))
        };
        let modes = [
            (self.planning.node_hints, Topology::SameNode),
            (self.heeds_zone_hints, Topology::SameZone),
        ];
        let mut heeded = modes.into_iter().filter_map(|(heeds, mode)| heeds.then_some(mode));
        heeded.find(|mode| holds(*mode)).unwrap_or(Topology::Anywhere)
    }
}

type Found<'e> = (Backend, &'e Endpoint);

fn is_on(endpoint: &Endpoint, node: &Node) -> bool {
    endpoint.node.as_ref() == Some(&node.name)
}

/// Returns whether an endpoint is terminating but still serves.
fn is_going(endpoint: &Endpoint) -> bool {
    endpoint.serving && endpoint.terminating
}

/// The endpoints to which hints restrict traffic.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Topology {
    SameNode,
    SameZone,
    Anywhere,
}

impl Topology {
    fn is_hinted(self, endpoint: &Endpoint) -> bool {
        match self {
            Self::SameNode => !endpoint.node_hints.is_empty(),
            Self::SameZone => !endpoint.zone_hints.is_empty(),
            Self::Anywhere => true,
        }
    }

    fn admits(self, endpoint: &Endpoint, node: &Node) -> bool {
        match self {
            Self::SameNode => endpoint.node_hints.contains(&node.name),
            Self::SameZone => {
                let zone = node.zone().unwrap_or_default();
                endpoint.zone_hints.iter().any(|hint| &**hint == zone)
            }
            Self::Anywhere => true,
        }
    }
}
