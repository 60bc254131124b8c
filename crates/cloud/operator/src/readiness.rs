//! Finds the pods with a readiness gate that their load balancers serve.
//!
//! A pod with the controllers' readiness gate is a target before it is ready. The gate opens when
//! the pod is registered at all places where it is wanted, and the load balancers have found it
//! healthy there.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use uturn_cloud_api::clb::{
    DescribeTargetHealthRequest, ListenerHealth, LoadBalancerHealth, RuleHealth, TargetHealth,
};
use uturn_cloud_api::client::CallError;
use uturn_clouds::cloud::tke::annotations::READINESS_GATE;
use uturn_model::lb::Layer;
use uturn_model::{Cluster, NamespacedName, ObjectRef, Pod, Protocol};

use crate::api::Api;
use crate::clb::{Holder, ListenerKey, RuleKey};
use crate::wanted::{self, Place, Wanted};

/// The type of the pod condition of the readiness gate.
pub const GATE: &str = READINESS_GATE;
/// The reason in the condition when it is true.
pub const REASON: &str = "LoadBalancerNetworkGroupReady";

/// The most load balancers of a request.
const MAX_IDS: usize = 30;

/// The pods that wait for load balancers, with the objects whose load balancers these are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Waiting {
    /// The pods that are registered and healthy everywhere.
    pub served: BTreeMap<NamespacedName, BTreeSet<ObjectRef>>,
    /// The other pods.
    pub pending: BTreeMap<NamespacedName, BTreeSet<ObjectRef>>,
}

/// A place where a pod is a target.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct TargetPlace {
    balancer: String,
    listener: ListenerKey,
    /// `None` on layer 4.
    rule: Option<RuleKey>,
    address: IpAddr,
    port: u16,
}

/// The places where a pod is wanted as a target, and the objects that want it.
#[derive(Clone, Debug, Default)]
struct Wait {
    owners: BTreeSet<ObjectRef>,
    places: BTreeSet<TargetPlace>,
    /// Whether one of the load balancers does not exist yet.
    is_early: bool,
}

/// Asks the API for the health of the pods whose gate is closed, which `closed` lists. Asks nothing
/// if there are none. Pods that are not targets are left out.
///
/// # Errors
///
/// Returns why the API could not be asked.
pub async fn waiting<A: Api>(
    api: &A,
    cluster: &Cluster,
    wanted: &Wanted,
    closed: &BTreeSet<NamespacedName>,
) -> Result<Waiting, CallError> {
    let mut pods: BTreeMap<IpAddr, &NamespacedName> = BTreeMap::new();
    let waits = |pod: &&Pod| pod.is_decided_by(GATE) && closed.contains(&pod.name);
    for pod in cluster.pods.values().filter(waits) {
        pods.extend(pod.ips.iter().map(|ip| (*ip, &pod.name)));
    }
    let mut all: BTreeMap<&NamespacedName, Wait> = BTreeMap::new();
    for balancer in wanted.balancers.iter().filter(|_| !pods.is_empty()) {
        add(balancer, &pods, &mut all);
    }
    let places = all.values().flat_map(|wait| &wait.places);
    let ids: BTreeSet<&String> = places.map(|place| &place.balancer).collect();
    let ids: Vec<String> = ids.into_iter().cloned().collect();
    let mut healthy = BTreeSet::new();
    for ids in ids.chunks(MAX_IDS) {
        let request = DescribeTargetHealthRequest {
            load_balancer_ids: ids.to_vec(),
            ..DescribeTargetHealthRequest::default()
        };
        let balancers = api.call(&request).await?.response.load_balancers.unwrap_or_default();
        healthy.extend(balancers.iter().flat_map(healthy_places));
    }
    let mut waiting = Waiting::default();
    for (pod, wait) in all {
        let is_served = !wait.is_early && wait.places.is_subset(&healthy);
        let group = if is_served { &mut waiting.served } else { &mut waiting.pending };
        group.insert(pod.clone(), wait.owners);
    }
    Ok(waiting)
}

/// Adds the places where a load balancer wants waiting pods as targets.
fn add<'p>(
    balancer: &wanted::Balancer,
    pods: &BTreeMap<IpAddr, &'p NamespacedName>,
    all: &mut BTreeMap<&'p NamespacedName, Wait>,
) {
    let id = match &balancer.place {
        Place::Existing(id) => Some(id.clone()),
        Place::Own(_) => balancer.owners.iter().find_map(|owner| owner.current.clone()),
    };
    for (key, wish) in &balancer.listeners {
        for (rule, targets) in wish.listener.groups() {
            for target in targets.keys() {
                let Holder::Interface(address) = target.holder else { continue };
                let Some(pod) = pods.get(&address) else { continue };
                let wait = all.entry(pod).or_default();
                wait.owners.insert(wish.owner.clone());
                let Some(id) = &id else {
                    wait.is_early = true;
                    continue;
                };
                wait.places.insert(TargetPlace {
                    balancer: id.clone(),
                    listener: *key,
                    rule: rule.clone(),
                    address,
                    port: target.port,
                });
            }
        }
    }
}

/// Returns the places at which targets of a load balancer are healthy, or not probed.
fn healthy_places(balancer: &LoadBalancerHealth) -> Vec<TargetPlace> {
    let id = balancer.load_balancer_id.clone().unwrap_or_default();
    let mut places = Vec::new();
    for listener in balancer.listeners.iter().flatten() {
        let Some((key, layer)) = key_of(listener) else { continue };
        for health in listener.rules.iter().flatten() {
            let rule = (layer == Layer::L7).then(|| rule_of(health));
            let targets = health.targets.iter().flatten().filter(|target| is_healthy(target));
            places.extend(targets.filter_map(|target| {
                Some(TargetPlace {
                    balancer: id.clone(),
                    listener: key,
                    rule: rule.clone(),
                    address: target.ip.as_deref()?.parse().ok()?,
                    port: u16::try_from(target.port?).ok()?,
                })
            }));
        }
    }
    places
}

fn key_of(listener: &ListenerHealth) -> Option<(ListenerKey, Layer)> {
    let (transport, layer) = match listener.protocol.as_deref()? {
        "HTTP" | "HTTPS" => (Protocol::Tcp, Layer::L7),
        "UDP" => (Protocol::Udp, Layer::L4),
        "TCP" | "TCP_SSL" => (Protocol::Tcp, Layer::L4),
        _ => return None,
    };
    Some((ListenerKey { port: u16::try_from(listener.port?).ok()?, transport }, layer))
}

/// Returns the key of a rule. Its domain is empty if it is the load balancer's own address.
fn rule_of(health: &RuleHealth) -> RuleKey {
    let domain = health.domain.clone().unwrap_or_default();
    let is_address = domain.parse::<IpAddr>().is_ok();
    RuleKey {
        domain: if is_address { String::new() } else { domain },
        url: health.url.clone().unwrap_or_default(),
    }
}

fn is_healthy(target: &TargetHealth) -> bool {
    let detail = target.health_status_detail.as_ref().or(target.health_status_detial.as_ref());
    detail.is_some_and(|detail| detail == "Alive" || detail == "Close")
}
