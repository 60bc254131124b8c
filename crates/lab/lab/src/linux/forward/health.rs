//! The results of health checks, and their timing.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::time::Duration;

use uturn_lb::event::{Event, ProbeResult};
use uturn_model::lb::{Listener, Scheduler};
use uturn_model::{LoadBalancer, Protocol};

use crate::{ProbeEnd, TargetHealth};

/// The factor by which the lab speeds health checks up: with an interval of 5 s and a timeout of 2
/// s, the lab probes every second and waits 0.4 s. The thresholds stay as they are.
const SPEED_UP: u32 = 5;

/// A target that counts as dead.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct DeadTarget {
    pub(crate) listener: SocketAddr,
    pub(crate) protocol: Protocol,
    pub(crate) target: SocketAddr,
    pub(crate) latest: ProbeEnd,
}

/// A target of a rule of a listener.
type Key = (SocketAddr, Protocol, usize, SocketAddr);

/// The decided health of targets.
#[derive(Debug, Default)]
pub(crate) struct TargetHealths(BTreeMap<Key, (bool, ProbeResult)>);

impl TargetHealths {
    /// Records a health event. Returns whether it changed the health of a target.
    pub(crate) fn record(&mut self, event: &Event) -> bool {
        let Event::Health { listener, protocol, rule, target, alive, result } = event else {
            return false;
        };
        let key = (*listener, transport(protocol), *rule, *target);
        let before = self.0.insert(key, (*alive, *result));
        before.is_none_or(|(was, _)| was != *alive)
    }

    /// Returns whether the health of every probed target is decided.
    pub(crate) fn are_decided(&self, all: &[LoadBalancer]) -> bool {
        probed(all).iter().all(|key| self.0.contains_key(key))
    }

    /// Returns for each target of a rule whether it may be picked.
    pub(crate) fn alive(&self, lb: &LoadBalancer, listener: &Listener, rule: usize) -> Vec<bool> {
        let keys = keys(lb, listener, rule);
        keys.map(|key| self.0.get(&key).is_none_or(|(alive, _)| *alive)).collect()
    }

    /// Returns the decided health of a rule's targets, sorted by address.
    pub(crate) fn report(
        &self,
        lb: &LoadBalancer,
        listener: &Listener,
        rule: usize,
    ) -> Vec<TargetHealth> {
        let decided = keys(lb, listener, rule).filter_map(|key| Some((key.3, *self.0.get(&key)?)));
        let mut all: Vec<TargetHealth> = decided
            .map(|(target, (alive, result))| TargetHealth { target, alive, latest: end_of(result) })
            .collect();
        all.sort_unstable_by_key(|target| target.target);
        all
    }

    /// Returns the dead targets, once for each listener.
    pub(crate) fn dead(&self) -> BTreeSet<DeadTarget> {
        let dead = self.0.iter().filter(|(_, (alive, _))| !alive);
        dead.map(|((listener, protocol, _, target), (_, result))| DeadTarget {
            listener: *listener,
            protocol: *protocol,
            target: *target,
            latest: end_of(*result),
        })
        .collect()
    }
}

/// Returns the load balancers with faster health checks, without passive checks and without counts
/// of open connections.
///
/// With passive checks, failures of one flow would change the shares of the next, and how many
/// connections fail before that would depend on the speed of this machine. So would the target with
/// the fewest connections: a flow opens all of its connections at once, and those to a target that
/// does not answer stay open. The prediction is for targets with equal counts, which take turns;
/// and on layer 4 it is for packets that are forwarded, while the process itself serves a TCP
/// listener that counts.
pub(crate) fn accelerated(all: &[LoadBalancer]) -> Vec<LoadBalancer> {
    let mut all = all.to_vec();
    for listener in all.iter_mut().flat_map(|lb| &mut lb.listeners) {
        listener.profile.passive_check = None;
        if listener.profile.scheduler == Scheduler::LeastConnections {
            listener.profile.scheduler = Scheduler::WeightedRoundRobin;
        }
        if let Some(check) = &mut listener.profile.health_check {
            check.interval /= SPEED_UP;
            check.timeout /= SPEED_UP;
        }
    }
    all
}

/// Returns the transport protocol that an event names.
pub(crate) fn transport(protocol: &str) -> Protocol {
    let all = [Protocol::Tcp, Protocol::Udp, Protocol::Sctp];
    all.into_iter().find(|known| known.lower() == protocol).unwrap_or(Protocol::Tcp)
}

fn end_of(result: ProbeResult) -> ProbeEnd {
    match result {
        ProbeResult::Answered => ProbeEnd::Answered,
        ProbeResult::TimedOut => ProbeEnd::TimedOut,
        // The lab's probes only connect, so both results mean the same.
        ProbeResult::Refused | ProbeResult::Unexpected => ProbeEnd::Refused,
        ProbeResult::Unreachable => ProbeEnd::Unreachable,
    }
}

/// Returns the time until every target has been probed once more. A probe that is under way when
/// the time begins may be lost, so the next one counts.
pub(crate) fn probe_round(all: &[LoadBalancer]) -> Duration {
    let accelerated = accelerated(all);
    let checks = accelerated.iter().flat_map(|lb| &lb.listeners);
    let checks = checks.filter_map(|listener| listener.profile.health_check.as_ref());
    checks.map(|check| check.interval + check.timeout * 2).max().unwrap_or_default()
}

/// Returns whether any target is probed.
pub(crate) fn are_any(all: &[LoadBalancer]) -> bool {
    !probed(all).is_empty()
}

fn probed(all: &[LoadBalancer]) -> BTreeSet<Key> {
    all.iter()
        .flat_map(|lb| lb.listeners.iter().map(move |listener| (lb, listener)))
        .filter(|(_, listener)| listener.profile.health_check.is_some())
        .flat_map(|(lb, listener)| {
            (0..listener.rules.len()).flat_map(move |rule| keys(lb, listener, rule))
        })
        .collect()
}

fn keys<'a>(
    lb: &LoadBalancer,
    listener: &'a Listener,
    rule: usize,
) -> impl Iterator<Item = Key> + use<'a> {
    let address = SocketAddr::new(lb.vip, listener.port.number());
    let transport = listener.protocol.transport();
    let targets = listener.rules.get(rule).map_or(&[][..], |rule| &rule.targets);
    targets.iter().map(move |target| (address, transport, rule, target.address))
}
