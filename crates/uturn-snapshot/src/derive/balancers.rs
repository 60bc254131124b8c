//! Addresses of load balancers that are not there yet.

use std::collections::{BTreeMap, HashSet};
use std::net::IpAddr;

use uturn_lb::controller;
use uturn_model::cluster::Provider;
use uturn_model::service::{IpMode, LbIngress, ServiceKind};
use uturn_model::unjudged::UNKNOWN_CLOUD;
use uturn_model::{Ingress, IpNet, Known, Labels, NamespacedName, ObjectRef, Port, Text, Unknown};

use super::Said;
use super::clouds::{self, Maker};
use super::ranges::Ranges;
use super::unjudged::Gaps;
use crate::objects::Objects;

/// Where supposed public load balancers are: a range that documentation may use freely.
const PUBLIC: &str = "203.0.113.0/24";

/// Whether the cloud's controller serves this Ingress.
pub(super) fn is_of_cloud(ingress: &Ingress, objects: &Objects) -> bool {
    controller::is_of_cloud(ingress, &objects.ingress_classes.0)
}

/// Finds the load balancers of which it is not known how they behave: those of clouds without a
/// profile, and of controllers in the cluster.
pub(super) fn find_unjudged(objects: &Objects, provider: &Known<Provider>, gaps: &mut Gaps) {
    let mut open = Open::default();
    for service in objects.services.0.values() {
        // None is made where nothing makes them and none is there.
        let is_there = provider.value != Provider::None || !service.load_balancer.is_empty();
        if service.kind == ServiceKind::LoadBalancer && is_there {
            open.add(service.object(), clouds::of_service(service, provider), None);
        }
    }
    for ingress in objects.ingresses.0.values() {
        let maker = clouds::of_ingress(ingress, objects, provider);
        let behind = match maker {
            Maker::Controller { .. } => controllers_service(ingress, objects),
            _ => None,
        };
        open.add(ingress.object(), maker, behind);
    }
    for ((unknown, behind), (objects, trace)) in open.0 {
        let (because, settle) = match (trace, behind) {
            (None, _) => (
                "nothing tells which cloud it is of".to_owned(),
                "state spec.provider in Facts".to_owned(),
            ),
            (Some(trace), Some(service)) => (
                format!("{trace}; its address is that of Service {service}"),
                format!("trace to svc/{service}, whose pods serve it"),
            ),
            (Some(trace), None) => match &unknown {
                Unknown::LoadBalancers(_) => {
                    (format!("there is no profile of them yet (told by {trace})"), String::new())
                }
                _ => (
                    format!("what its pods do with a request is not modelled (told by {trace})"),
                    "trace to the Service of that controller".to_owned(),
                ),
            },
        };
        for object in objects {
            gaps.add(object, unknown.clone(), because.as_str().into(), settle.as_str().into());
        }
    }
}

/// Objects whose load balancers are not judged, with the first trace, by who makes them and by
/// the Service that has the same address.
#[derive(Default)]
struct Open(BTreeMap<Cause, (Vec<ObjectRef>, Option<String>)>);

/// Who makes a load balancer, and the Service that has its address.
type Cause = (Unknown, Option<NamespacedName>);

impl Open {
    fn add(&mut self, object: ObjectRef, maker: Maker, behind: Option<NamespacedName>) {
        let (unknown, trace) = match maker {
            Maker::Judged => return,
            Maker::Other { name, trace } => (Unknown::LoadBalancers(name.into()), Some(trace)),
            Maker::Controller { name, trace } => (Unknown::Controller(name.into()), Some(trace)),
            Maker::Unknown => (Unknown::LoadBalancers(UNKNOWN_CLOUD.into()), None),
        };
        let entry = self.0.entry((unknown, behind)).or_insert((Vec::new(), trace));
        entry.0.push(object);
    }
}

/// The Service whose load balancer an Ingress has its address of: its controller's.
fn controllers_service(ingress: &Ingress, objects: &Objects) -> Option<NamespacedName> {
    let is_same = |one: &LbIngress, other: &LbIngress| {
        (one.ip.is_some() && one.ip == other.ip)
            || (one.hostname.is_some() && one.hostname == other.hostname)
    };
    let has_it = |service: &&uturn_model::Service| {
        service.kind == ServiceKind::LoadBalancer
            && service
                .load_balancer
                .iter()
                .any(|own| ingress.load_balancer.iter().any(|one| is_same(own, one)))
    };
    objects.services.0.values().find(has_it).map(|service| service.name.clone())
}

/// Something that wants a load balancer and has no address of one.
struct Waiting {
    object: ObjectRef,
    name: NamespacedName,
    is_ingress: bool,
    ports: Vec<Port>,
    /// The load balancer that is to be used, where an annotation names one.
    existing: Option<Text>,
    private: bool,
}

/// Gives an address to every Service and Ingress whose load balancer has none.
pub(super) fn complete(
    objects: &mut Objects,
    provider: &Known<Provider>,
    ranges: &mut Ranges,
    said: &mut Said,
) {
    if provider.value != Provider::Tke {
        return;
    }
    let waiting = waiting(objects, provider);
    let known = known_vips(objects);
    let unclaimed: Vec<_> = objects
        .facts
        .load_balancers
        .iter()
        .filter(|one| !known.contains(&one.vip))
        .cloned()
        .collect();
    let mut shared: BTreeMap<Text, IpAddr> = BTreeMap::new();
    for one in waiting {
        let fits =
            |ports: &[Port]| ports.is_empty() || ports.iter().any(|port| one.ports.contains(port));
        let listed = |fact: &&uturn_model::lb::LoadBalancerFact| {
            let ports: Vec<Port> = fact.listeners.iter().map(|one| one.port).collect();
            fits(&ports)
        };
        let mut stated = unclaimed.iter().filter(listed);
        let before = one.existing.as_ref().and_then(|id| shared.get(id).copied());
        let vip = match (before, stated.next(), stated.next()) {
            (Some(vip), _, _) => Some(vip),
            (None, Some(only), None) => {
                said.suppose(
                    format!("address of {}", one.object),
                    only.vip.to_string(),
                    format!("{} states this load balancer, and it has nobody else's", only.origin),
                    "give the object's status",
                );
                Some(only.vip)
            }
            _ => suppose(objects, &one, ranges, said),
        };
        let Some(vip) = vip else { continue };
        if let Some(id) = &one.existing {
            shared.insert(id.clone(), vip);
        }
        let entry = LbIngress { ip: Some(vip), hostname: None, mode: IpMode::Vip };
        let list = match one.is_ingress {
            true => objects.ingresses.0.get_mut(&one.name).map(|to| &mut to.load_balancer),
            false => objects.services.0.get_mut(&one.name).map(|to| &mut to.load_balancer),
        };
        list.into_iter().for_each(|list| list.push(entry.clone()));
    }
}

fn suppose(
    objects: &Objects,
    one: &Waiting,
    ranges: &mut Ranges,
    said: &mut Said,
) -> Option<IpAddr> {
    let net = if one.private { ranges.vpc(objects) } else { PUBLIC.parse::<IpNet>().ok()? };
    let vip = ranges.address(net, 100)?;
    let scope = if one.private { "private" } else { "public" };
    said.suppose(
        format!("address of {}", one.object),
        format!("{vip} ({scope})"),
        "its status has no address",
        "give the object's status, or state spec.loadBalancers in Facts",
    );
    Some(vip)
}

fn waiting(objects: &Objects, provider: &Known<Provider>) -> Vec<Waiting> {
    let services = objects.services.0.values().filter(|one| {
        one.kind == ServiceKind::LoadBalancer
            && one.load_balancer.is_empty()
            && clouds::of_service(one, provider) == Maker::Judged
    });
    let services = services.map(|one| Waiting {
        object: one.object(),
        name: one.name.clone(),
        is_ingress: false,
        ports: one.ports.iter().map(|port| port.port).collect(),
        existing: existing(&one.annotations, "service.kubernetes.io/tke-existed-lbid"),
        private: one
            .annotations
            .get("service.kubernetes.io/qcloud-loadbalancer-internal-subnetid")
            .is_some(),
    });
    let ingresses = objects.ingresses.0.values();
    let ingresses =
        ingresses.filter(|one| one.load_balancer.is_empty() && is_of_cloud(one, objects));
    let ingresses = ingresses.map(|one| Waiting {
        object: one.object(),
        name: one.name.clone(),
        is_ingress: true,
        ports: [80, 443].into_iter().filter_map(Port::new).collect(),
        existing: existing(&one.annotations, "kubernetes.io/ingress.existLbId"),
        private: one.annotations.get("kubernetes.io/ingress.subnetId").is_some(),
    });
    services.chain(ingresses).collect()
}

fn existing(annotations: &Labels, key: &str) -> Option<Text> {
    annotations.get(key).map(Text::from)
}

fn known_vips(objects: &Objects) -> HashSet<IpAddr> {
    let services = objects.services.0.values().flat_map(|one| &one.load_balancer);
    let ingresses = objects.ingresses.0.values().flat_map(|one| &one.load_balancer);
    services.chain(ingresses).filter_map(|one| one.ip).collect()
}
