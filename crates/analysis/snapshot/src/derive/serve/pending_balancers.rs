//! Completes load balancers that do not exist yet: their Services and Ingresses are still to be
//! applied, or their status is not given.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::net::IpAddr;

use uturn_clouds::cloud::{self, CloudModel, ExpectedStatus, Owner};
use uturn_model::cluster::Provider;
use uturn_model::lb::LoadBalancerFact;
use uturn_model::service::{IpMode, LbIngress, ServiceKind};
use uturn_model::{Family, IpNet, Known, NamespacedName, ObjectRef, Port, Text};

use super::balancer_names;
use super::stated_balancers::PUBLIC;
use crate::decode::objects::Objects;
use crate::derive::Assumptions;
use crate::derive::ground::Ground;
use crate::derive::ground::clouds::{self, Maker};
use crate::derive::populate::Population;
use crate::derive::populate::ranges::Ranges;

/// An object that needs a load balancer and has no address of one.
struct Waiting {
    object: ObjectRef,
    name: NamespacedName,
    is_ingress: bool,
    ports: Vec<Port>,
    /// The existing load balancer that is to be used, if an annotation names one.
    existing: Option<Text>,
    is_private: bool,
    family: Family,
    /// The form of the status that the object's controller will write.
    status: ExpectedStatus,
}

/// Gives a status to each Service and Ingress that needs a load balancer and has no status.
pub(super) fn complete(
    population: &mut Population,
    ground: &Ground,
    ranges: &mut Ranges,
    assumptions: &mut Assumptions,
) {
    let provider = &ground.provider;
    let mut all = waiting_for_products(population, provider, &ground.unapplied);
    if let Some(model) = provider.value.cloud().and_then(cloud::model_of) {
        all.extend(waiting(population, provider, model));
    }
    if all.is_empty() {
        return;
    }
    let known = known_vips(population);
    let unclaimed: Vec<LoadBalancerFact> = population
        .facts
        .load_balancers
        .iter()
        .filter(|fact| !known.contains(&fact.vip) && fact.own_listeners().next().is_none())
        .cloned()
        .collect();
    let mut shared: BTreeMap<Text, IpAddr> = BTreeMap::new();
    for waiting in all {
        let fits = |fact: &&LoadBalancerFact| {
            let mut ports = fact.listeners.iter().map(|listener| listener.port);
            fact.listeners.is_empty() || ports.any(|port| waiting.ports.contains(&port))
        };
        let mut stated = unclaimed.iter().filter(fits);
        let before = waiting.existing.as_ref().and_then(|id| shared.get(id).copied());
        let vip = match (before, stated.next(), stated.next()) {
            (Some(vip), _, _) => Some(vip),
            (None, Some(only), None) => {
                assumptions.assume(
                    format!("address of {}", waiting.object),
                    only.vip.to_string(),
                    format!(
                        "{} states this load balancer, and no other object has its address",
                        only.origin
                    ),
                    "give the object's status",
                );
                Some(only.vip)
            }
            _ => None,
        };
        let entry = match &waiting.status {
            ExpectedStatus::Name(own) => {
                let name = name(own.as_deref(), &waiting, vip, population, assumptions);
                Some(LbIngress { ip: None, hostname: Some(name), mode: IpMode::Vip })
            }
            other => {
                let mode = match other {
                    ExpectedStatus::AddressInModeProxy => IpMode::Proxy,
                    ExpectedStatus::Address | ExpectedStatus::Name(_) => IpMode::Vip,
                };
                let vip = vip.or_else(|| suppose(population, &waiting, ranges, assumptions));
                if let (Some(vip), Some(id)) = (vip, &waiting.existing) {
                    shared.insert(id.clone(), vip);
                }
                vip.map(|vip| LbIngress { ip: Some(vip), hostname: None, mode })
            }
        };
        let name = &waiting.name;
        let status = if waiting.is_ingress {
            population.serving().ingresses.get_mut(name).map(|owner| &mut owner.load_balancer)
        } else {
            population.serving().services.get_mut(name).map(|owner| &mut owner.load_balancer)
        };
        if let Some(status) = status {
            status.extend(entry);
        }
    }
}

/// Returns the host name of a future status: that of the load balancer that Facts state, the user's
/// own name, or a made-up one.
fn name(
    own: Option<&str>,
    waiting: &Waiting,
    stated: Option<IpAddr>,
    population: &mut Population,
    assumptions: &mut Assumptions,
) -> Text {
    let facts = &mut population.serving().facts.load_balancers;
    let fact = facts.iter_mut().find(|fact| Some(fact.vip) == stated);
    if let Some(name) = fact.as_ref().and_then(|fact| fact.hostname.clone()) {
        return name;
    }
    let NamespacedName { namespace, name } = &waiting.name;
    let name: Text = match own {
        Some(own) => own.into(),
        None => format!("{name}.{namespace}.lb.example").into(),
    };
    match fact {
        Some(fact) => fact.hostname = Some(name.clone()),
        None => assumptions.assume(
            format!("address of {}", waiting.object),
            name.as_ref(),
            "its status has no address, and its controller writes a name",
            "give the object's status, or state spec.loadBalancers in Facts",
        ),
    }
    name
}

/// Assumes an address: one of the VPC for a private load balancer, otherwise a public one.
fn suppose(
    objects: &Objects,
    waiting: &Waiting,
    ranges: &mut Ranges,
    assumptions: &mut Assumptions,
) -> Option<IpAddr> {
    let net = match (waiting.is_private, waiting.family) {
        (false, Family::V4) => PUBLIC.parse::<IpNet>().ok()?,
        (is_private, family) => balancer_names::network(objects, is_private, family, ranges),
    };
    let vip = ranges.address(net, 100)?;
    let scope = if waiting.is_private { "private" } else { "public" };
    assumptions.assume(
        format!("address of {}", waiting.object),
        format!("{vip} ({scope})"),
        "its status has no address",
        "give the object's status, or state spec.loadBalancers in Facts",
    );
    Some(vip)
}

/// Returns the objects that need a load balancer of the cluster's cloud and have no address of one.
fn waiting(objects: &Objects, provider: &Known<Provider>, model: &dyn CloudModel) -> Vec<Waiting> {
    let waiting = |owner: Owner<'_>, ports| {
        let request = model.request(owner);
        Waiting {
            object: owner.object(),
            name: owner.name().clone(),
            is_ingress: matches!(owner, Owner::Ingress(_)),
            ports,
            existing: request.existing,
            is_private: request.is_private,
            family: Family::V4,
            status: ExpectedStatus::Address,
        }
    };
    let services = objects.services.0.values().filter(|service| {
        service.kind == ServiceKind::LoadBalancer
            && service.load_balancer.is_empty()
            && clouds::of_service(service, provider) == Maker::Modelled
    });
    let services = services.map(|service| {
        let ports = service.ports.iter().map(|port| port.port).collect();
        waiting(Owner::Service(service), ports)
    });
    let classes = &objects.ingress_classes.0;
    let ingresses = objects.ingresses.0.values().filter(|ingress| {
        ingress.load_balancer.is_empty() && model.serves_ingress(ingress, classes)
    });
    let ingresses = ingresses.map(|ingress| {
        let ports = [80, 443].into_iter().filter_map(Port::new).collect();
        waiting(Owner::Ingress(ingress), ports)
    });
    services.chain(ingresses).collect()
}

/// Returns the Services that are still to be applied and will have a load balancer whose product is
/// described and that is not pods on nodes.
fn waiting_for_products(
    objects: &Objects,
    provider: &Known<Provider>,
    unapplied: &BTreeSet<NamespacedName>,
) -> Vec<Waiting> {
    let services = objects.services.0.values().filter(|service| {
        service.kind == ServiceKind::LoadBalancer
            && service.load_balancer.is_empty()
            && unapplied.contains(&service.name)
    });
    let waiting = services.filter_map(|service| {
        let cloud::Maker::Product(product, _) = cloud::maker_of(service, provider) else {
            return None;
        };
        let has_v4 = service.families.is_empty() || service.families.contains(&Family::V4);
        (!product.is_on_nodes()).then(|| Waiting {
            object: service.object(),
            name: service.name.clone(),
            is_ingress: false,
            ports: service.ports.iter().map(|port| port.port).collect(),
            existing: None,
            is_private: product.is_private(service).unwrap_or(product.is_announced()),
            family: if has_v4 { Family::V4 } else { Family::V6 },
            status: cloud::expected_status(product, service),
        })
    });
    waiting.collect()
}

fn known_vips(objects: &Objects) -> HashSet<IpAddr> {
    let services = objects.services.0.values().flat_map(|service| &service.load_balancer);
    let ingresses = objects.ingresses.0.values().flat_map(|ingress| &ingress.load_balancer);
    services.chain(ingresses).filter_map(|entry| entry.ip).collect()
}
