//! Resolves a flow to an address and a request, and finds the load balancer rule that serves it.

mod addresses;
mod request;

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use uturn_clouds::controller::BalancerCall;
use uturn_lb::decide::Choice;
use uturn_lb::rules;
use uturn_model::lb::{Layer, Listener, Scope};
use uturn_model::{Cluster, Destination, Family, Flow, LoadBalancer, Protocol};

use self::addresses::{balancer_addresses, client_address, resolved_addresses, sources, to_family};
use self::request::request_spec;
use super::client::{ClientProtocol, RequestSpec};
use crate::linux::forward::call_counters::Call;
use crate::linux::forward::health::TargetHealths;
use crate::linux::forward::layer_4::{is_in_kernel, turns};
use crate::linux::serve::names::Found;

use crate::{LabError, TargetHealth};

/// The time limit of a connect without load balancer retries, after which the connect counts as
/// hanging. A SYN is retransmitted after 1 s, and again after 2 or 3 s.
const CONNECT_LIMIT: Duration = Duration::from_millis(2500);

/// Extra time for a slow machine.
const SLACK: Duration = Duration::from_millis(1500);

/// A flow, ready to be measured.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    pub(crate) spec: RequestSpec,
    /// The number of connections that make a whole turn of the scheduler.
    pub(crate) turns: u64,
    /// The longest time of a connection.
    pub(crate) limit: Duration,
    /// The part that picks the flow's target.
    pub(crate) picked_by: PickedBy,
    /// The scope of the load balancer that the flow calls, if it calls one.
    pub(crate) scope: Option<Scope>,
    /// The rule that serves the flow: the indices of the load balancer, the listener and the rule.
    place: Option<[usize; 3]>,
    /// The source addresses that a load balancer may see for the flow's connections.
    sources: Vec<IpAddr>,
}

/// The part that picks a flow's targets, if its packets reach a load balancer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PickedBy {
    /// No load balancer.
    NoBalancer,
    /// The kernel (layer 4), whose connection tracking reports each pick.
    Kernel,
    /// The load balancer process (layer 7, and listeners that terminate TLS), which reports each
    /// pick.
    Process,
}

impl Target {
    pub(crate) fn of(
        cluster: &Cluster,
        load_balancers: &[LoadBalancer],
        flow: &Flow,
        found: &Found,
    ) -> Result<Self, LabError> {
        if flow.protocol == Protocol::Sctp {
            let protocol = flow.protocol;
            return Err(LabError::Plan(format!("flows over {protocol} cannot be measured")));
        }
        let to = BalancerCall::of(cluster, &flow.from, &flow.to)
            .and_then(BalancerCall::address)
            .map_or_else(|| flow.to.clone(), Destination::Address);
        let named = balancer_addresses(cluster, flow);
        let resolved =
            resolved_addresses(flow, found).or((!named.is_empty()).then_some(&named[..]));
        let family = match resolved {
            Some([]) => return Ok(Self::nameless()),
            Some([first, ..]) => Some(Family::of(*first)),
            None => to_family(cluster, load_balancers, &to),
        };
        let client = client_address(cluster, &flow.from, family)?;
        let family = Family::of(client);
        let own = |ip: &IpAddr| Family::of(*ip) == family;
        let resolved: Vec<IpAddr> =
            resolved.unwrap_or_default().iter().copied().filter(own).collect();
        let mut spec =
            request_spec(cluster, load_balancers, &to, family, resolved.first().copied())?;
        spec.others.extend(resolved.iter().skip(1));
        if flow.protocol == Protocol::Udp {
            spec.protocol = ClientProtocol::Datagram;
        }
        let lb = load_balancers.iter().position(|lb| lb.vip == spec.address.ip());
        let scope = lb.map(|lb| load_balancers[lb].scope);
        let sources = sources(cluster, &flow.from, client, scope);
        let mut target = Self {
            spec,
            turns: 1,
            limit: CONNECT_LIMIT,
            picked_by: PickedBy::NoBalancer,
            scope,
            place: None,
            sources,
        };
        target.turns = target.spec.others.len() as u64 + 1;
        let Some(lb) = lb else { return Ok(target) };
        let port = target.spec.address.port();
        let listeners = &load_balancers[lb].listeners;
        let serves = |listener: &Listener| {
            listener.protocol.transport() == flow.protocol && listener.port.number() == port
        };
        let Some(listener) = listeners.iter().position(serves) else { return Ok(target) };
        target.picked_by = picked_by(&listeners[listener]);
        if let ClientProtocol::Any { tls } = &mut target.spec.protocol {
            *tls = listeners[listener].protocol.ends_tls();
        }
        target.place = rule(&listeners[listener], &target.spec).map(|rule| [lb, listener, rule]);
        target.follow(load_balancers);
        target.update(load_balancers, &TargetHealths::default());
        Ok(target)
    }

    /// Follows a redirect rule to the rule of the same load balancer that the redirect leads to.
    fn follow(&mut self, load_balancers: &[LoadBalancer]) {
        let Some([lb, listener, rule_place]) = self.place else { return };
        let balancer = &load_balancers[lb];
        let rule_met = &balancer.listeners[listener].rules[rule_place];
        let Some(redirect) = &rule_met.redirect else { return };
        let url = redirect.location(&self.spec.host, &self.spec.path);
        let (host, path) = redirect.aim(&self.spec.host, &self.spec.path);
        let usual = if redirect.tls { 443 } else { 80 };
        let next = RequestSpec {
            address: SocketAddr::new(self.spec.address.ip(), redirect.port.number()),
            others: Vec::new(),
            host: match redirect.port.number() {
                port if port == usual => host.to_owned(),
                port => format!("{host}:{port}"),
            },
            path: path.to_owned(),
            protocol: if redirect.tls { ClientProtocol::Https } else { ClientProtocol::Http },
            redirected: None,
        };
        let there = balancer.listeners.iter().position(|listener| {
            listener.port == redirect.port && listener.protocol.transport() == Protocol::Tcp
        });
        self.place = there.and_then(|there| {
            let place = rule(&balancer.listeners[there], &next)?;
            Some([lb, there, place])
        });
        if let Some(there) = there {
            self.picked_by = picked_by(&balancer.listeners[there]);
        }
        self.spec.redirected = Some((url, Box::new(next)));
    }

    /// Returns a flow whose name has no address, and which makes no connections.
    fn nameless() -> Self {
        let spec = RequestSpec {
            address: SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), 0),
            others: Vec::new(),
            host: String::new(),
            path: String::new(),
            protocol: ClientProtocol::Any { tls: false },
            redirected: None,
        };
        Self {
            spec,
            turns: 1,
            limit: CONNECT_LIMIT,
            picked_by: PickedBy::NoBalancer,
            scope: None,
            place: None,
            sources: Vec::new(),
        }
    }

    /// Returns whether there is an address to call.
    pub(crate) fn has_address(&self) -> bool {
        self.spec.address.port() > 0
    }

    /// Computes turns and limit for the targets that are alive now.
    pub(crate) fn update(&mut self, load_balancers: &[LoadBalancer], healths: &TargetHealths) {
        let Some((lb, listener, place)) = self.place(load_balancers) else { return };
        let alive = healths.alive(lb, listener, place);
        let targets = &listener.rules[place].targets;
        let choices: Vec<Choice<'_>> = self
            .sources
            .iter()
            .map(|source| Choice::new(&listener.profile, targets, &alive, *source))
            .collect();
        let addresses = self.spec.others.len() as u64 + 1;
        self.turns = choices.iter().map(turns).fold(addresses, least_common_multiple);
        // A listener that forwards packets, or only adds a header to them, does not try other
        // targets.
        let protocol = listener.protocol;
        let gives_up = match protocol.layer() {
            Layer::L7 => true,
            Layer::L4 => protocol.ends_tls() || listener.profile.ends_connections,
        };
        if gives_up {
            let most = choices.iter().map(|choice| choice.candidates().len() as u32).max();
            let tries = if listener.profile.next_target { most.unwrap_or(1) } else { 1 };
            self.limit = listener.profile.connect_timeout * tries.max(1) + SLACK;
        }
    }

    /// Returns the health of the flow's targets.
    pub(crate) fn health(
        &self,
        load_balancers: &[LoadBalancer],
        healths: &TargetHealths,
    ) -> Vec<TargetHealth> {
        self.place(load_balancers)
            .map_or_else(Vec::new, |(lb, listener, place)| healths.report(lb, listener, place))
    }

    fn place<'a>(
        &self,
        load_balancers: &'a [LoadBalancer],
    ) -> Option<(&'a LoadBalancer, &'a Listener, usize)> {
        let [lb, listener, rule] = self.place?;
        let lb = &load_balancers[lb];
        Some((lb, &lb.listeners[listener], rule))
    }

    /// Returns the calls that the flow's connections are counted as, one for each source address.
    pub(crate) fn calls(&self) -> impl Iterator<Item = Call> {
        let of_family = |ip: &&IpAddr| Family::of(**ip) == Family::of(self.spec.address.ip());
        self.sources.iter().filter(of_family).map(|source| (*source, self.spec.address))
    }
}

fn picked_by(listener: &Listener) -> PickedBy {
    if is_in_kernel(listener) { PickedBy::Kernel } else { PickedBy::Process }
}

fn rule(listener: &Listener, spec: &RequestSpec) -> Option<usize> {
    match listener.protocol.layer() {
        Layer::L4 => (!listener.rules.is_empty()).then_some(0),
        Layer::L7 => rules::routed(listener, &spec.host, &spec.path).ok()?.rule,
    }
}

fn least_common_multiple(a: u64, b: u64) -> u64 {
    let (mut high, mut low) = (a, b);
    while low > 0 {
        (high, low) = (low, high % low);
    }
    a / high.max(1) * b
}
