//! Assumptions about a load balancer that a flow passes.

use std::net::IpAddr;

use uturn_clouds::cloud::{self, PageCheck};
use uturn_model::lb::{BehaviourAssumption, Listener, Scheduler, Scope, Source, Target};
use uturn_model::{Assumption, AssumptionSubject, Cluster, LoadBalancer, Text};

use crate::engine::Engine;

/// Describes the behaviour of a load balancer that an assumption is about. Returns `None` if the
/// assumption is about something else.
pub fn supposed_of_balancer(supposed: &Assumption) -> Option<Text> {
    let AssumptionSubject::BalancerBehaviour(profile) = &supposed.subject else { return None };
    Some(match supposed.assumed.strip_prefix("it ") {
        Some(does) => format!("{profile} {does}").into(),
        None => format!("{profile}: {}", supposed.assumed).into(),
    })
}

/// Returns the assumptions made where a load balancer sends a client's request to a target.
pub(super) fn behaviour_assumptions(
    engine: &Engine<'_>,
    balancer: &LoadBalancer,
    listener: &Listener,
    target: &Target,
    client: IpAddr,
) -> Vec<Assumption> {
    let profile = &listener.profile;
    let mut all: Vec<Assumption> = Vec::new();
    all.extend(profile.assumption.as_ref().map(|doubt| assumed_behaviour(&profile.name, doubt)));
    let is_public = balancer.scope == Scope::Public;
    if is_public
        && profile.source == Source::Kept
        && is_public_address_of(engine.cluster, target, client)
    {
        all.push(to_itself(&profile.name, client));
    }
    all.extend(page_is_there(engine.cluster, listener));
    if profile.scheduler == Scheduler::SourceHash
        && !engine.options().knows_hash
        && listener.rules.iter().any(|rule| rule.targets.len() > 1)
    {
        all.push(any_target(&profile.name));
    }
    all
}

/// Returns whether a target is a node with this public address, or on one.
fn is_public_address_of(cluster: &Cluster, target: &Target, address: IpAddr) -> bool {
    let node = target.kind.node().and_then(|name| cluster.nodes.get(name));
    node.is_some_and(|node| {
        node.external_ips.contains(&address) && !node.internal_ips.contains(&address)
    })
}

/// Returns the page that health checks of a listener ask for, if the Service does not name it.
pub(crate) fn page_check(cluster: &Cluster, listener: &Listener) -> Option<PageCheck> {
    let (product, service) = cloud::product_of(cluster, listener)?;
    let port = service.ports.iter().find(|port| port.port == listener.port)?;
    product.page_check(service, port)
}

/// Returns the assumption that targets have the page for which health checks ask.
fn page_is_there(cluster: &Cluster, listener: &Listener) -> Option<Assumption> {
    let check = page_check(cluster, listener)?;
    let owner = &listener.rules.first()?.owner;
    let (key, path) = check.cure;
    Some(Assumption {
        subject: format!("health checks of {} :{}", owner.short(), listener.port).into(),
        assumed: format!("targets answer {} with 200", check.path).into(),
        because: format!("they ask for it if {}: {}", check.condition, check.because).into(),
        settle: format!("{key}: {path:?} names a page, if it is there").into(),
    })
}

/// Returns the assumption that health checks ask for a page that targets are known to lack.
pub(super) fn page_is_missing(cluster: &Cluster, listener: &Listener) -> Option<Assumption> {
    let check = page_check(cluster, listener)?;
    let (key, path) = check.cure;
    Some(Assumption {
        subject: AssumptionSubject::BalancerBehaviour(listener.profile.name.clone()),
        assumed: format!("it asks targets for {}, which they do not have", check.path).into(),
        because: format!("{}, and {}", check.because, check.condition).into(),
        settle: format!("{key}: {path:?} names a page that is there").into(),
    })
}

/// Returns whether an assumption is about which target a client gets.
pub(crate) fn is_pick_by_hash(supposed: &Assumption) -> bool {
    matches!(supposed.subject, AssumptionSubject::PickByHash(_))
}

/// Returns the assumption about a client whose target is chosen by a hash of its address.
fn any_target(profile: &str) -> Assumption {
    Assumption {
        subject: AssumptionSubject::PickByHash(profile.into()),
        assumed: "any, and each time the same".into(),
        because: "a hash of its address decides, and how that is computed is not known".into(),
        settle: "uturn probe calls it from a pod".into(),
    }
}

/// The way to confirm an assumption about a load balancer's behaviour.
const CONFIRM: &str = "if it is so, state measured: true of it in Facts: spec.loadBalancers";

/// Returns the assumption about a load balancer's behaviour that is not certain.
pub(super) fn assumed_behaviour(profile: &str, doubt: &BehaviourAssumption) -> Assumption {
    Assumption {
        subject: AssumptionSubject::BalancerBehaviour(profile.into()),
        assumed: doubt.assumed.clone(),
        because: doubt.because.clone(),
        settle: format!("{}; {CONFIRM}", doubt.settle).into(),
    }
}

/// Returns the assumption about a target that is sent its own call, from its public address.
fn to_itself(profile: &str, client: IpAddr) -> Assumption {
    let of_target = BehaviourAssumption::new(
        "it is answered",
        "the address is not one of its own cards; documents say so, and a report of a target with a \
         public address of its own says that such calls hang",
    );
    Assumption {
        subject: format!("a target that {profile} gives itself, called from {client}").into(),
        assumed: of_target.assumed,
        because: of_target.because,
        settle: of_target.settle,
    }
}
