//! Addresses of load balancers that are not there yet.

use std::collections::{BTreeMap, HashSet};
use std::net::IpAddr;

use uturn_model::cluster::Provider;
use uturn_model::service::{IpMode, LbIngress, ServiceKind};
use uturn_model::{Ingress, IpNet, Known, Labels, NamespacedName, ObjectRef, Port, Text, Unknown};

use super::ranges::Ranges;
use super::unjudged::Gaps;
use super::{Said, provider};
use crate::objects::Objects;

/// Where supposed public load balancers are: a range that documentation may use freely.
const PUBLIC: &str = "203.0.113.0/24";

/// Whether the cloud's controller serves this Ingress.
pub(super) fn is_of_cloud(ingress: &Ingress, objects: &Objects) -> bool {
    let classes = &objects.ingress_classes.0;
    let ours = |controller: &str| controller.contains("qcloud") || controller.contains("tencent");
    match ingress.class.as_deref() {
        Some("qcloud") => true,
        Some(class) => classes.get(class).is_some_and(|class| ours(&class.controller)),
        None => classes.values().find(|one| one.is_default).is_none_or(|one| ours(&one.controller)),
    }
}

/// Finds the load balancers of which nobody knows how they behave: those of clouds without a
/// profile.
pub(super) fn find_unjudged(objects: &Objects, provider: &Known<Provider>, gaps: &mut Gaps) {
    let cloud = provider::elsewhere(objects);
    let kind: Text = match &cloud {
        Some((cloud, _)) => (*cloud).into(),
        None => "another cloud".into(),
    };
    let because: Text = match &cloud {
        Some((_, trace)) => format!("{trace}: its load balancers have no profile here").into(),
        None => "no profile says how it behaves".into(),
    };
    let settle: Text = "state spec.provider: tke in Facts if they behave as Tencent's do".into();
    let mut add = |object: ObjectRef| {
        let unknown = Unknown::LoadBalancers(kind.clone());
        gaps.add(object, unknown, because.clone(), settle.clone());
    };
    let is_cloud_judged = provider.value != Provider::None;
    for service in objects.services.0.values() {
        let is_ours = is_cloud_judged && service.load_balancer_class.is_none();
        if service.kind == ServiceKind::LoadBalancer && !is_ours {
            add(service.object());
        }
    }
    for ingress in objects.ingresses.0.values().filter(|one| !one.load_balancer.is_empty()) {
        if !(is_cloud_judged && is_of_cloud(ingress, objects)) {
            add(ingress.object());
        }
    }
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
    if provider.value == Provider::None {
        return;
    }
    let waiting = waiting(objects);
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

fn waiting(objects: &Objects) -> Vec<Waiting> {
    let services = objects.services.0.values().filter(|one| {
        one.kind == ServiceKind::LoadBalancer
            && one.load_balancer.is_empty()
            && one.load_balancer_class.is_none()
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
