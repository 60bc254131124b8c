//! Finds load balancers whose behaviour is not known.

use std::collections::BTreeMap;
use std::net::IpAddr;

use uturn_clouds::cloud::{self, Owner};
use uturn_clouds::{controller, stated};
use uturn_model::cluster::Provider;
use uturn_model::dns::Dns;
use uturn_model::ingress::Backend;
use uturn_model::service::{LbIngress, ServiceKind};
use uturn_model::unjudged::UNKNOWN_CLOUD;
use uturn_model::{Ingress, Known, NamespacedName, ObjectRef, Service, Text, Unknown};

use crate::decode::objects::Objects;
use crate::derive::ground::clouds::{self, Maker};
use crate::derive::serve::controllers::Open as OpenController;
use crate::derive::unjudged::Gaps;

/// Lists the load balancers whose behaviour is not known: those of clouds without a profile, and of
/// controllers in the cluster.
pub(super) fn find(
    objects: &Objects,
    provider: &Known<Provider>,
    in_cluster: &BTreeMap<NamespacedName, OpenController>,
    dns: &Dns,
    gaps: &mut Gaps,
) {
    find_unread_listeners(objects, provider, gaps);
    let mut open = Open::default();
    for service in objects.services.0.values() {
        // Without a provider and without a status, there is no load balancer.
        let is_there = provider.value != Provider::None || !service.load_balancer.is_empty();
        if service.kind == ServiceKind::LoadBalancer && is_there {
            if !is_stated(service, objects, dns) {
                open.add(service.object(), clouds::of_service(service, provider));
            }
            find_foreign_status(service, objects, provider, gaps);
        }
    }
    let is_settled = |ingress: &&Ingress| {
        (ingress.controller.is_some() && !in_cluster.contains_key(&ingress.name))
            || ingress.is_unserved()
    };
    for ingress in objects.ingresses.0.values().filter(|ingress| !is_settled(ingress)) {
        if let Some(product) = controller::product_of(ingress) {
            let several = |backend: &&Backend| {
                matches!(backend, Backend::Services(all)
                    if all.len() > 1 || all.iter().any(|one| one.is_granted != Some(true)))
            };
            let mut paths = ingress.rules.iter().flat_map(|rule| &rule.paths);
            if paths.any(|path| several(&&path.backend)) {
                let because = "it leads to several Services, or to one that it may not lead to";
                let unknown = Unknown::LoadBalancers(product.name().into());
                gaps.add(ingress.object(), unknown, because.into(), Text::default());
            }
            if let Some(key) = product.unread(ingress) {
                let because = format!("what {key} asks for is not modelled").into();
                let unknown = Unknown::LoadBalancers(product.name().into());
                gaps.add(ingress.object(), unknown, because, Text::default());
            }
            continue;
        }
        let maker = clouds::of_ingress(ingress, objects, provider);
        match (&maker, in_cluster.get(&ingress.name)) {
            (Maker::Controller { name, trace }, Some(why)) => gaps.add(
                ingress.object(),
                Unknown::Controller(name.as_str().into()),
                format!("{} (recognised by {trace})", why.because).into(),
                match with_its_address(ingress, objects) {
                    Some(service) if !why.settle.contains("svc/") => {
                        format!("trace to svc/{service}, whose pods serve it; or {}", why.settle)
                            .into()
                    }
                    _ => why.settle.clone(),
                },
            ),
            _ => open.add(ingress.object(), maker),
        }
    }
    for (unknown, (objects, trace)) in open.0 {
        let (because, settle) = match trace {
            None => (
                "nothing tells which cloud it is of".to_owned(),
                "state spec.provider in Facts, or for another cloud each port's snat in \
                 spec.loadBalancers"
                    .to_owned(),
            ),
            Some(trace) => match &unknown {
                Unknown::LoadBalancers(_) => (
                    format!("there is no profile of them yet (recognised by {trace})"),
                    String::new(),
                ),
                _ => (
                    format!(
                        "what its pods do with a request is not modelled (recognised by {trace})"
                    ),
                    "trace to the Service of that controller".to_owned(),
                ),
            },
        };
        for object in objects {
            gaps.add(object, unknown.clone(), because.as_str().into(), settle.as_str().into());
        }
    }
}

/// Returns whether Facts state what the load balancer of a Service does at each of its addresses.
fn is_stated(service: &Service, objects: &Objects, dns: &Dns) -> bool {
    let facts = &objects.facts.load_balancers;
    let has = |address: IpAddr| stated::of_service(facts, service, address).is_some();
    let is_known = |entry: &LbIngress| match (entry.ip, &entry.hostname) {
        (Some(address), _) => has(address),
        (None, Some(host)) => {
            let all = dns.of_balancer(host);
            !all.is_empty() && all.iter().all(|at| has(at.address))
        }
        (None, None) => false,
    };
    !service.load_balancer.is_empty() && service.load_balancer.iter().all(is_known)
}

/// Lists a Service whose status has an address that its load balancer cannot have: if load
/// balancers are pods on nodes, an address of no node belongs to something else.
fn find_foreign_status(
    service: &Service,
    objects: &Objects,
    provider: &Known<Provider>,
    gaps: &mut Gaps,
) {
    let cloud::Maker::Product(product, trace) = cloud::maker_of(service, provider) else { return };
    let is_of_node = |ip: IpAddr| objects.nodes.0.values().any(|node| node.has_address(ip));
    let mut addresses = service.load_balancer.iter().filter_map(|entry| entry.ip);
    let foreign = addresses.find(|ip| product.is_on_nodes() && !is_of_node(*ip));
    let Some(address) = foreign else { return };
    let name = product.name();
    let because = format!(
        "{address} in its status is no address of a node that is given, and {name} writes \
         addresses of nodes (recognised by {trace})"
    );
    gaps.add(
        service.object(),
        Unknown::LoadBalancers(format!("a controller that is not {name}").into()),
        because.into(),
        "give all nodes with their addresses, or state spec.provider in Facts".into(),
    );
}

/// Returns the Service whose load balancer has the address of an Ingress: that of the Ingress'
/// controller.
fn with_its_address<'o>(ingress: &Ingress, objects: &'o Objects) -> Option<&'o NamespacedName> {
    let is_same = |own: &LbIngress, other: &LbIngress| {
        (own.ip.is_some() && own.ip == other.ip)
            || (own.hostname.is_some() && own.hostname == other.hostname)
    };
    let mut services = objects.services.0.values();
    let found = services.find(|service| {
        let mut own = service.load_balancer.iter();
        service.kind == ServiceKind::LoadBalancer
            && own.any(|own| ingress.load_balancer.iter().any(|entry| is_same(own, entry)))
    });
    found.map(|service| &service.name)
}

/// Lists the Services and Ingresses whose listeners are set by an object of a kind that the API
/// server refused to list.
fn find_unread_listeners(objects: &Objects, provider: &Known<Provider>, gaps: &mut Gaps) {
    let Some(cloud) = provider.value.cloud() else { return };
    let Some(model) = cloud::model_of(cloud) else { return };
    let object = cloud::entry(cloud).and_then(|entry| entry.overrides.as_ref());
    let Some(kind) = object.map(|object| object.kind) else { return };
    let mut refused = objects.listing.unread.iter();
    let Some(unread) = refused.find(|unread| unread.what.strip_suffix('s') == Some(kind)) else {
        return;
    };
    let services = objects.services.0.values().map(Owner::Service);
    for owner in services.chain(objects.ingresses.0.values().map(Owner::Ingress)) {
        let place = model.overrides_place(owner);
        let name = NamespacedName::new(owner.name().namespace.as_str(), &place.name).ok();
        let is_known = name.is_some_and(|name| objects.listener_overrides.0.contains_key(&name));
        if place.switch.is_none() && !is_known {
            let because = format!("it names a {kind}, and {} could not be read", unread.what);
            let settle = "give yourself the rights of uturn collect --rbac";
            gaps.add(owner.object(), Unknown::Listeners, because.into(), settle.into());
        }
    }
}

/// The objects whose load balancers are not judged, by maker, with the first trace of each maker.
#[derive(Default)]
struct Open(BTreeMap<Unknown, (Vec<ObjectRef>, Option<String>)>);

impl Open {
    fn add(&mut self, object: ObjectRef, maker: Maker) {
        let (unknown, trace) = match maker {
            Maker::Modelled => return,
            Maker::Other { name, trace } => (Unknown::LoadBalancers(name.into()), Some(trace)),
            Maker::Controller { name, trace } => (Unknown::Controller(name.into()), Some(trace)),
            Maker::WithoutClass { trace } => {
                (Unknown::Controller("an unnamed controller".into()), Some(trace))
            }
            Maker::Unknown => (Unknown::LoadBalancers(UNKNOWN_CLOUD.into()), None),
        };
        let entry = self.0.entry(unknown).or_insert((Vec::new(), trace));
        entry.0.push(object);
    }
}
