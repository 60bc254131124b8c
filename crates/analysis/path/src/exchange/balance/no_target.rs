//! The end of a request for which the load balancer picks no target.

use uturn_model::lb::Profile;
use uturn_model::route::{Step, StepKind};
use uturn_model::{Cluster, Evidence, LoadBalancer, Mechanism, NamespacedName, Outcome};

use crate::exchange::health::Health;
use crate::packet::{Exchange, PacketState, Peer, ended};

/// The reason why a load balancer picks no target.
#[derive(Clone, Copy)]
pub(super) enum NotPicked {
    /// No target is registered.
    NoTarget,
    /// No target is registered, since the Service has no endpoint.
    NoEndpoint,
    /// No target passes its health checks.
    NoneAlive,
    /// No target passes its health checks, because none of them has an endpoint.
    NoneWithEndpoint,
    /// No target is eligible.
    NoCandidate,
}

impl NotPicked {
    /// Returns the reason where no target is registered for a Service.
    pub(super) fn unregistered(cluster: &Cluster, service: Option<&NamespacedName>) -> Self {
        let slices = service.map_or(&[][..], |service| cluster.slices(service)).iter();
        let mut with_ports = slices.filter(|slice| !slice.ports.is_empty());
        let is_there =
            with_ports.any(|slice| slice.endpoints.iter().any(|own| own.ready || own.serving));
        if is_there { Self::NoTarget } else { Self::NoEndpoint }
    }

    pub(super) fn of(profile: &Profile, health: &[Health]) -> Self {
        // A load balancer that takes all targets for alive if none is has targets, but none that it
        // may pick.
        let takes_all = profile.panic_threshold.is_some();
        let lacks_endpoint = |target: &Health| target.mechanisms == [Mechanism::NoEndpoint];
        match takes_all || health.iter().any(|target| target.alive) {
            true => Self::NoCandidate,
            false if health.iter().all(lacks_endpoint) => Self::NoneWithEndpoint,
            false => Self::NoneAlive,
        }
    }
}

/// Returns the end of a request for which the load balancer picks no target.
pub(super) fn end(
    cluster: &Cluster,
    mut state: PacketState,
    balancer: &LoadBalancer,
    outcome: Outcome,
    (reason, health): (NotPicked, &[Health]),
) -> Vec<Exchange> {
    let (why, mechanism) = match reason {
        NotPicked::NoTarget => {
            ("has no target: no node and no pod is registered", Mechanism::NoTarget)
        }
        NotPicked::NoEndpoint => {
            ("has no target: no node and no pod is registered", Mechanism::NoEndpoint)
        }
        NotPicked::NoneAlive => {
            ("has no target that answers its health checks", Mechanism::NoCandidate)
        }
        NotPicked::NoneWithEndpoint => (
            "has no target that answers its health checks: none has an endpoint",
            Mechanism::NoEndpoint,
        ),
        NotPicked::NoCandidate => (
            "has no target that it may pick: it avoids the client's own address",
            Mechanism::NoCandidate,
        ),
    };
    let is_of_groups = |step: &&Step| matches!(step.by, Evidence::SecurityGroups { .. });
    let mut stops = health.iter().filter_map(|target| target.stop.as_ref());
    let stop = stops.find(is_of_groups).filter(|_| matches!(reason, NotPicked::NoneAlive));
    let why = match stop {
        Some(stop) => format!("{why}: {}", stop.why),
        None => why.to_owned(),
    };
    let peer = Peer::Balancer(balancer);
    state.note(peer.place(), Step::new(StepKind::Drop, why, peer.evidence(cluster)));
    vec![ended(state, outcome, Some(mechanism))]
}
