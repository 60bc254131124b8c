//! Derives the controllers in the cluster whose pods serve Ingresses: their workloads, the
//! Ingresses that each of them serves, and the addresses.
//!
//! The class of an Ingress, and what controllers are told to watch, decide which controller serves
//! it. Calls of the Ingress itself are judged if its address leads to the controller's pods. If two
//! controllers could serve it, or the address belongs to neither a Service of the controller nor a
//! node, it is not judged, and the finding states what would settle it.

mod address;
mod arguments;
mod candidate;
mod entry_points;
mod gateway;
mod gateway_header;
mod istio;
mod ports;
mod products;
mod server;
mod settings;

use std::collections::BTreeMap;

use uturn_clouds::cloud;
use uturn_model::gateway::AttachedRoute;
use uturn_model::ingress::Unserved;
use uturn_model::service::{LbIngress, ServiceKind};
use uturn_model::{
    Ingress, IngressController, Labels, NamespacedName, ObjectKind, ObjectRef, Selector, Service,
};

use crate::decode::gateway::Gateway;
use crate::decode::objects::Objects;
use crate::derive::Assumptions;
use crate::derive::ground::Ground;
use crate::derive::ground::clouds::{self, Maker};
use crate::derive::populate::Population;
use arguments::Arguments;
pub(in crate::derive) use arguments::value as argument_value;
use candidate::Candidate;
pub(in crate::derive) use candidate::Open;
use gateway::Pods;
use products::Ask;
use server::{NotServed, may_ignore, server};
use settings::Settings;

/// The labels that differ between pods of one workload.
const OF_ONE_POD: [&str; 5] = [
    "pod-template-hash",
    "controller-revision-hash",
    "pod-template-generation",
    "statefulset.kubernetes.io/pod-name",
    "apps.kubernetes.io/pod-index",
];

/// The controllers of a cluster, and the Ingresses that they serve.
pub(super) struct Found {
    pub(in crate::derive) controllers: Vec<IngressController>,
    /// The Ingresses that are not judged.
    pub(in crate::derive) open: BTreeMap<NamespacedName, Open>,
}

/// Finds the controllers, and sets on each Ingress the controller that serves it.
pub(super) fn derive(
    population: &mut Population,
    ground: &Ground,
    assumptions: &mut Assumptions,
) -> Found {
    let objects: &Objects = population;
    let provider = &ground.provider;
    let are_all_given = ground.extent.pods;
    let mut served: BTreeMap<NamespacedName, usize> = BTreeMap::new();
    let mut open: BTreeMap<NamespacedName, Open> = BTreeMap::new();
    let mut possible: BTreeMap<NamespacedName, Vec<ObjectRef>> = BTreeMap::new();
    let mut unserved: BTreeMap<NamespacedName, Unserved> = BTreeMap::new();
    let mut ignored: Vec<(NamespacedName, usize)> = Vec::new();
    let all = candidates(objects);
    let may_serve_any = may_serve_any(objects);
    let mut controllers: Vec<(IngressController, Option<NamespacedName>)> = Vec::new();
    let mut servers: BTreeMap<_, Server> = BTreeMap::new();
    let mut gateways: BTreeMap<ObjectRef, Result<usize, Open>> = BTreeMap::new();
    for ingress in objects.ingresses.0.values() {
        let maker = clouds::of_ingress(ingress, objects, provider);
        let product = match &maker {
            Maker::Controller { name, .. } => Some(name.clone()),
            _ => None,
        };
        if let Some(route) = &ingress.route {
            let Some(product) = product else { continue };
            let found = gateways.entry(route.gateway.clone()).or_insert_with(|| {
                server_of_gateway(&all, objects, route, &product, &mut controllers, assumptions)
            });
            match found {
                // The Gateway's proxies answer for its hosts.
                _ if route.listeners.is_empty() => {}
                Ok(place) => drop(served.insert(ingress.name.clone(), *place)),
                Err(why) => drop(open.insert(ingress.name.clone(), why.clone())),
            }
            continue;
        }
        // An Ingress with a class is served only by that class's controller.
        if product.is_none() && ingress.class.is_some() {
            continue;
        }
        let namespace = &ingress.name.namespace;
        let are_all_known = are_all_given && (ingress.class.is_some() || !may_serve_any);
        let is_without_cloud = maker == Maker::Unknown && are_all_known && shows_no_cloud(objects);
        let key = (product, ingress.class.as_deref(), namespace, is_without_cloud);
        let found = servers.entry(key).or_insert_with_key(|key| {
            let (product, class_name, _, is_without_cloud) = key;
            let classes = &objects.ingress_classes.0;
            let class = match class_name {
                Some(class) => classes.get(*class),
                None => classes.values().find(|class| class.is_default),
            };
            let ask = Ask { class, name: *class_name, namespace };
            let mut place = |candidate: &Candidate<'_>| {
                let mut known = controllers.iter();
                let known = known.position(|(known, _)| known.workload == candidate.workload);
                known.unwrap_or_else(|| {
                    controllers.push(controller(candidate, objects, assumptions));
                    controllers.len() - 1
                })
            };
            let found = match product {
                Some(product) => server(&all, product, &ask, (objects, are_all_known)),
                None if *is_without_cloud => NotServed::without_cloud(&all, &ask, objects),
                None => NotServed::beside_the_cloud(&all, &ask, objects),
            };
            match found {
                Ok(candidate) => {
                    Server::Known(place(candidate), may_ignore(candidate, &ask, objects))
                }
                Err(NotServed { why, possible, unserved, ignoring }) => {
                    // They answer for the hosts of what they ignore.
                    let ignoring = ignoring.into_iter().map(&mut place).collect();
                    let named = possible.iter().map(|candidate| {
                        place(candidate);
                        candidate.workload.clone()
                    });
                    let unserved = unserved.map(|own| *own);
                    Server::Open { may: named.collect(), why, unserved, ignoring }
                }
            }
        });
        match found {
            Server::Known(place, doubt) => {
                served.insert(ingress.name.clone(), *place);
                if let Some(doubt) = doubt {
                    unserved.insert(ingress.name.clone(), doubt.clone());
                }
            }
            Server::Open { may, why, unserved: none, ignoring } => {
                possible.insert(ingress.name.clone(), may.clone());
                if let Some(none) = none {
                    unserved.insert(ingress.name.clone(), none.clone());
                }
                if let Some(first) = ignoring.first() {
                    ignored.push((ingress.name.clone(), *first));
                }
                if let Some(why) = why {
                    open.insert(ingress.name.clone(), why.clone());
                }
            }
        }
    }
    drop(servers);
    if ground.extent.pods && ground.extent.services || objects.complete {
        // A controller answers requests for any host, whether or not it serves an Ingress.
        for candidate in all.iter().filter(|candidate| candidate.product.listens_always) {
            if !controllers.iter().any(|(known, _)| known.workload == candidate.workload) {
                let (mut own, published) = controller(candidate, objects, assumptions);
                if !gives_all_ingresses(objects) {
                    own.other_rules.get_or_insert_with(|| "Ingress".into());
                }
                controllers.push((own, published));
            }
        }
    }
    for (name, workloads) in possible {
        if let Some(ingress) = population.serving().ingresses.get_mut(&name) {
            ingress.possible_controllers = workloads;
        }
    }
    for (name, why) in unserved {
        if let Some(ingress) = population.serving().ingresses.get_mut(&name) {
            ingress.unserved = Some(why);
        }
    }
    for (name, place) in ignored {
        // Clients call the hosts where a controller answers for them. Where that is, is not needed.
        let (controller, published) = &controllers[place];
        let published = published.as_ref();
        drop(address::settle(population, provider, controller, published, &name, assumptions));
    }
    for (name, place) in served {
        let (controller, published) = &controllers[place];
        // The pods serve the Ingress wherever they are called, even if its own address is not known
        // to lead to them.
        if let Some(ingress) = population.serving().ingresses.get_mut(&name) {
            ingress.controller = Some(controller.workload.clone());
            if let Some(route) = &mut ingress.route {
                gateway::call_by_service(route, controller);
            }
        }
        let settled = address::settle(
            population,
            provider,
            controller,
            published.as_ref(),
            &name,
            assumptions,
        );
        if let Err(why) = settled {
            open.insert(name, why);
        }
    }
    let mut controllers: Vec<IngressController> =
        controllers.into_iter().map(|(controller, _)| controller).collect();
    let ingresses: Vec<&Ingress> = population.ingresses.0.values().collect();
    for controller in controllers.iter_mut().filter(|own| opens_on_demand(own, &ingresses)) {
        let with_tls = controller.listeners.iter().filter(|listener| listener.tls);
        controller.shut = with_tls.map(|listener| listener.port).collect();
    }
    Found { controllers, open }
}

/// Returns whether a controller does not open its ports for TLS, since nothing that it may serve asks
/// for TLS: Contour gives Envoy a listener only once there is a host for it.
fn opens_on_demand(controller: &IngressController, ingresses: &[&Ingress]) -> bool {
    let may_serve = |ingress: &&&Ingress| {
        ingress.controller.as_ref() == Some(&controller.workload)
            || ingress.possible_controllers.contains(&controller.workload)
    };
    let mut served = ingresses.iter().filter(may_serve).peekable();
    &*controller.product == "Contour"
        && controller.other_rules.is_none()
        && served.peek().is_some()
        && served.all(|ingress| ingress.tls.is_empty() && ingress.route.is_none())
}

/// Returns whether an input with all pods and Services of a cluster has all Ingresses too.
fn gives_all_ingresses(objects: &Objects) -> bool {
    // `kubectl get all` lists no Ingresses.
    objects.complete || !objects.ingresses.0.is_empty() || !objects.ingress_classes.0.is_empty()
}

/// Returns whether a controller that is not known may serve Ingresses without a class: one of an
/// IngressClass, or the router of a distribution.
fn may_serve_any(objects: &Objects) -> bool {
    let mut classes = objects.ingress_classes.0.values();
    let is_open = classes.any(|class| {
        let product = clouds::product_of_controller(&class.controller);
        !product.is_some_and(products::is_known)
    });
    let is_routed = |name: &NamespacedName| name.namespace.as_str().starts_with("openshift-");
    is_open || objects.pods.0.keys().any(is_routed)
}

/// Returns whether no node shows by its providerID that a cloud made it.
fn shows_no_cloud(objects: &Objects) -> bool {
    let mut ids = objects.nodes.0.values().filter_map(|node| node.provider_id.as_deref());
    ids.all(cloud::is_id_without_cloud)
}

/// The controller that serves the Ingresses of a class.
enum Server {
    /// The controller at this index, and why it may ignore the Ingresses.
    Known(usize, Option<Unserved>),
    /// The controller is not known.
    Open {
        /// The workloads whose pods may serve the Ingresses.
        may: Vec<ObjectRef>,
        /// The reason why the controller is not known, if one in the cluster serves the Ingresses.
        why: Option<Open>,
        /// The reason why nothing serves the Ingresses.
        unserved: Option<Unserved>,
        /// The indices of controllers that certainly ignore the Ingresses.
        ignoring: Vec<usize>,
    },
}

/// Returns the index of the controller whose pods take the requests of a Gateway.
fn server_of_gateway(
    all: &[Candidate<'_>],
    objects: &Objects,
    route: &AttachedRoute,
    product: &str,
    controllers: &mut Vec<(IngressController, Option<NamespacedName>)>,
    assumptions: &mut Assumptions,
) -> Result<usize, Open> {
    let Some(behaviour) = products::of_gateways(product) else {
        return Err(Open::new(
            "what its proxies do with a request is not modelled",
            "trace to the Services behind its routes",
        ));
    };
    let name = route.gateway.namespaced_name();
    let given = name.and_then(|name| objects.gateways.0.get(&name));
    let Some(given) = given else {
        return Err(Open::new("its Gateway is not given", "give the Gateway"));
    };
    let services = match gateway::services(objects, given) {
        Ok(services) => services,
        // Controllers that create no Service for each Gateway have one for all.
        Err(why) => match shared(all, objects, product, given) {
            Some(service) => vec![service],
            None => return Err(why),
        },
    };
    let found = services
        .iter()
        .find_map(|service| Some((Pods::of(objects, service)?, &service.name.namespace)));
    let Some((pods, namespace)) = found else {
        return Err(Open::new(
            format!("no pods are given that Service {} selects", services[0].name),
            "give what runs the Gateway's pods",
        ));
    };
    let known = controllers.iter().position(|(known, _)| known.workload == pods.object);
    let place = match known {
        Some(place) => place,
        None => {
            let candidate = all.iter().find(|candidate| candidate.workload == pods.object);
            let made = match candidate.filter(|candidate| candidate.product.name == product) {
                Some(candidate) => (controller(candidate, objects, assumptions).0, None),
                None => {
                    let made = IngressController {
                        product: product.into(),
                        workload: pods.object.clone(),
                        namespace: namespace.clone(),
                        pods: pods.selector.clone(),
                        settings: None,
                        listeners: Vec::new(),
                        shut: Vec::new(),
                        behaviour,
                        other_rules: None,
                        origin: pods.origin.clone(),
                    };
                    (made, None)
                }
            };
            controllers.push(made);
            controllers.len() - 1
        }
    };
    for service in &services {
        gateway::add_listeners(objects, &mut controllers[place].0, service, pods.template, given);
    }
    Ok(place)
}

/// Returns the only LoadBalancer Service of a product's pods, or else their only Service, if the
/// Gateway names no addresses, or those of nodes.
fn shared<'o>(
    all: &[Candidate<'_>],
    objects: &'o Objects,
    product: &str,
    gateway: &Gateway,
) -> Option<&'o Service> {
    let is_of_node = |entry: &LbIngress| {
        let has = |ip| objects.nodes.0.values().any(|node| node.has_address(ip));
        entry.ip.is_some_and(has)
    };
    if !gateway.addresses.iter().all(is_of_node) {
        return None;
    }
    let of_product = all.iter().filter(|candidate| candidate.product.name == product);
    let services: Vec<&Service> =
        of_product.flat_map(|candidate| ports::services(candidate, objects)).collect();
    let balanced = services.iter().copied();
    let balanced: Vec<&Service> =
        balanced.filter(|service| service.kind == ServiceKind::LoadBalancer).collect();
    match (balanced.as_slice(), services.as_slice()) {
        ([only], _) | ([], [only]) => Some(only),
        _ => None,
    }
}

/// Returns all workloads that run pods of a known controller.
fn candidates(objects: &Objects) -> Vec<Candidate<'_>> {
    let mut all: Vec<Candidate<'_>> = Vec::new();
    for workload in objects.workloads.0.values() {
        let Some(product) = products::of(&workload.template) else { continue };
        if crate::derive::populate::owners::is_made_by_another(
            objects,
            workload.kind,
            &workload.name,
        ) {
            continue;
        }
        all.push(Candidate {
            product,
            workload: workload.object(),
            namespace: workload.name.namespace.clone(),
            pods: workload.selector.clone(),
            template: &workload.template,
            origin: workload.origin.clone(),
        });
    }
    for pod in objects.pods.0.values().filter(|pod| pod.is_alive()) {
        let Some(product) = products::of(&pod.spec) else { continue };
        let is_known = all.iter().any(|known| {
            known.namespace == pod.name.namespace && known.pods.matches(&pod.spec.labels)
        });
        if is_known {
            continue;
        }
        let of_all = pod.spec.labels.iter().filter(|(key, _)| !OF_ONE_POD.contains(key));
        let labels: Labels = of_all.collect();
        if labels.is_empty() {
            continue;
        }
        let own = || ObjectRef::namespaced(ObjectKind::Pod, &pod.name);
        all.push(Candidate {
            product,
            workload: pod.owner.clone().unwrap_or_else(own),
            namespace: pod.name.namespace.clone(),
            pods: Selector::labels(labels),
            template: &pod.spec,
            origin: pod.origin.clone(),
        });
    }
    all
}

/// Derives a controller from a candidate, and the Service whose address the controller publishes.
fn controller(
    candidate: &Candidate<'_>,
    objects: &Objects,
    assumptions: &mut Assumptions,
) -> (IngressController, Option<NamespacedName>) {
    let arguments = Arguments::of(candidate, objects);
    let settings = Settings::of(candidate.product, &arguments, objects);
    let mut behaviour = (candidate.product.behaviour)(&arguments, &settings);
    match &settings {
        Settings::Given(labels) => products::set(&mut behaviour, candidate.product, labels),
        Settings::Missing(name) => assumptions.assume(
            format!("time-outs, retries and redirects of {}", candidate.workload),
            "the defaults",
            format!("its arguments name ConfigMap {name}, which is not given"),
            format!("give ConfigMap {name}"),
        ),
        Settings::None => {}
    }
    let kinds = candidate.product.other_kinds;
    let other = objects.skipped().into_iter().find(|skipped| {
        kinds.iter().any(|(group, kind)| {
            skipped.kind.starts_with(group) && skipped.kind.ends_with(&format!("/{kind}"))
        })
    });
    let published = candidate.product.publishes.and_then(|argument| arguments.object(argument));
    let found = IngressController {
        product: candidate.product.name.into(),
        workload: candidate.workload.clone(),
        namespace: candidate.namespace.clone(),
        pods: candidate.pods.clone(),
        settings: settings.name(candidate.product, &arguments),
        listeners: ports::listeners(candidate, objects, &arguments, &settings),
        shut: Vec::new(),
        behaviour,
        other_rules: other.map(|skipped| skipped.kind),
        origin: candidate.origin.clone(),
    };
    (found, published)
}
