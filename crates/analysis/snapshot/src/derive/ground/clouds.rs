//! Determines the cloud or program that makes a load balancer, from traces that clouds and
//! controllers leave on nodes, Services and Ingresses.

mod gateway;
mod traces;

use uturn_clouds::cloud::{self, cilium};
use uturn_model::cluster::Provider;
use uturn_model::{Basis, Cloud, Ingress, Known, Labels, Service};

use crate::decode::objects::Objects;
use traces::{CONTROLLERS, INGRESS_KEYS, USUAL_CLASSES};

/// The maker of a load balancer, as far as there is a trace of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::derive) enum Maker {
    /// A controller whose load balancers are modelled.
    Modelled,
    /// A cloud or a program without a model, or its product if the traces name one.
    Other {
        /// The name as the vendor spells it.
        name: String,
        /// The trace that names it.
        trace: String,
    },
    /// A controller in the cluster serves an Ingress with pods behind a Service of its own.
    Controller {
        /// The name of the controller.
        name: String,
        /// The trace that names it.
        trace: String,
    },
    /// The Ingress names no class, and the cloud's own controllers serve only classes of their own.
    WithoutClass {
        /// The reason why the cloud does not serve the Ingress.
        trace: String,
    },
    /// No trace names the maker.
    Unknown,
}

impl Maker {
    fn other(name: impl Into<String>, trace: String) -> Self {
        Self::Other { name: name.into(), trace }
    }
}

/// Returns the cloud of the cluster, or the program that makes load balancers in place of one, and
/// its trace.
pub(super) fn by_trace(objects: &Objects) -> Option<(Cloud, String)> {
    let traces =
        [by_own_node_key, by_provider_id, by_node_key, by_program, by_distribution, by_service_key];
    traces.iter().find_map(|find| find(objects))
}

fn by_provider_id(objects: &Objects) -> Option<(Cloud, String)> {
    objects.nodes.0.values().find_map(|node| {
        let (shown, cloud) = cloud::by_provider_id(node.provider_id.as_deref()?)?;
        Some((cloud, format!("providerID {shown} of Node {}", node.name)))
    })
}

fn by_own_node_key(objects: &Objects) -> Option<(Cloud, String)> {
    by_key_of_node(objects, cloud::by_own_node_key)
}

fn by_node_key(objects: &Objects) -> Option<(Cloud, String)> {
    by_key_of_node(objects, cloud::by_node_key)
}

fn by_key_of_node(
    objects: &Objects,
    known: fn(&Labels) -> Option<(&str, Cloud)>,
) -> Option<(Cloud, String)> {
    objects.nodes.0.values().find_map(|node| {
        let both = [&node.labels, &node.annotations];
        let (key, cloud) = both.into_iter().find_map(|labels| known(labels))?;
        Some((cloud, format!("{key} of Node {}", node.name)))
    })
}

fn by_service_key(objects: &Objects) -> Option<(Cloud, String)> {
    objects.services.0.values().find_map(|service| {
        let (key, cloud) = cloud::by_service_key(service, None)?;
        Some((cloud, format!("{key} of {}", service.object())))
    })
}

/// Recognises programs that announce addresses from within the cluster, by their namespace,
/// workload, own objects or configuration.
fn by_program(objects: &Objects) -> Option<(Cloud, String)> {
    let by_workload = objects.workloads.0.values().find_map(|workload| {
        let name = &workload.name;
        let cloud = cloud::cloud_of_program(name.namespace.as_str(), name.name.as_str())?;
        Some((cloud, workload.object().to_string()))
    });
    let by_pod = || {
        objects.pods.0.values().find_map(|pod| {
            let name = &pod.name;
            let cloud = cloud::cloud_of_program(name.namespace.as_str(), name.name.as_str())?;
            Some((cloud, format!("Pod {name}")))
        })
    };
    let by_own_object = || {
        cloud::ALL.into_iter().find_map(|entry| {
            let known = entry.announcements.as_ref()?;
            let kind = known.kinds().find(|kind| objects.seen.contains_key(*kind))?;
            Some((entry.cloud, format!("an object of {}/{kind}", known.versions[0])))
        })
    };
    let by_kind = || {
        objects.skipped().into_iter().find_map(|skipped| {
            let cloud = cloud::by_object_kind(&skipped.kind)?;
            Some((cloud, format!("an object of {}", skipped.kind)))
        })
    };
    let by_config = || {
        const SWITCHES: [&str; 2] = ["enable-l2-announcements", "enable-bgp-control-plane"];
        let (config, origin) = objects.cilium_config.as_ref()?;
        let switch = SWITCHES.iter().find(|switch| config.is(switch, "true"))?;
        Some((cilium::ENTRY.cloud, format!("{switch} of cilium-config at {origin}")))
    };
    by_workload.or_else(by_pod).or_else(by_own_object).or_else(by_kind).or_else(by_config)
}

/// Recognises the load balancers that a distribution has, by the workload that is made for a
/// Service, or else by a node's providerID.
fn by_distribution(objects: &Objects) -> Option<(Cloud, String)> {
    let by_workload = objects.workloads.0.values().find_map(|workload| {
        let cloud = cloud::by_service_workload(workload.name.name.as_str())?;
        Some((cloud, workload.object().to_string()))
    });
    let by_pod = || {
        objects.pods.0.values().find_map(|pod| {
            let cloud = cloud::by_service_workload(pod.name.name.as_str())?;
            Some((cloud, format!("Pod {}", pod.name)))
        })
    };
    let by_node = || {
        objects.nodes.0.values().find_map(|node| {
            let (shown, cloud) = cloud::by_distribution_id(node.provider_id.as_deref()?)?;
            Some((cloud, format!("providerID {shown} of Node {}", node.name)))
        })
    };
    by_workload.or_else(by_pod).or_else(by_node)
}

/// Returns the maker of a Service's load balancer.
pub(in crate::derive) fn of_service(service: &Service, provider: &Known<Provider>) -> Maker {
    match cloud::maker_of(service, provider) {
        cloud::Maker::Model(_) | cloud::Maker::Product(..) => Maker::Modelled,
        cloud::Maker::Other(name, trace) => Maker::Other { name, trace },
        cloud::Maker::Unknown => Maker::Unknown,
    }
}

/// Returns the maker of an Ingress's load balancer: the controller of its class, or of the
/// cluster's default class, then annotations, the status, and the cloud of the cluster.
pub(in crate::derive) fn of_ingress(
    ingress: &Ingress,
    objects: &Objects,
    provider: &Known<Provider>,
) -> Maker {
    if ingress.route.is_some() {
        return gateway::maker_of(ingress, objects);
    }
    let object = ingress.object();
    let classes = &objects.ingress_classes.0;
    let model = provider.value.cloud().and_then(cloud::model_of);
    if model.is_some_and(|model| model.serves_ingress(ingress, classes)) {
        return Maker::Modelled;
    }
    let class = match ingress.class.as_deref() {
        Some(class) => classes.get(class),
        None => classes.values().find(|class| class.is_default),
    };
    if let Some(class) = class {
        let trace = format!("controller {} of IngressClass {}", class.controller, class.name);
        // A cloud may serve classes of several names alike.
        if let (Some(_), Some(product)) = (
            cloud::by_ingress_controller(&class.controller),
            cloud::by_ingress_class(class.name.as_str()),
        ) {
            return Maker::other(product, trace);
        }
        return of_controller(&class.controller, &trace)
            .unwrap_or(Maker::Controller { name: class.controller.to_string(), trace });
    }
    if let Some(class) = ingress.class.as_deref() {
        let trace = format!("class {class} of {object}");
        if let Some(product) = cloud::by_ingress_class(class) {
            return Maker::other(product, trace);
        }
        let usual = USUAL_CLASSES.iter().find(|(name, _)| *name == class);
        let known = usual.and_then(|(_, controller)| of_controller(controller, &trace));
        let name = format!("the controller of class {class}");
        return known.unwrap_or(Maker::Controller { name, trace });
    }
    let by_key = ingress.annotations.iter().find_map(|(key, _)| {
        let trace = format!("{key} of {object}");
        if let Some(product) = cloud::by_ingress_key(key) {
            return Some(Maker::other(product, trace));
        }
        let (_, controller) = INGRESS_KEYS.iter().find(|(begins, _)| key.starts_with(begins))?;
        of_controller(controller, &trace)
    });
    if let Some(maker) = by_key {
        return maker;
    }
    if let Some((host, product)) = cloud::by_host_name(&ingress.load_balancer) {
        return Maker::other(product, format!("host name {host}, of {object}"));
    }
    let entry = provider.value.cloud().and_then(cloud::entry);
    match entry {
        Some(entry) if entry.serves_services_only => Maker::Unknown,
        Some(entry) if !entry.serves_every_ingress() => Maker::WithoutClass {
            trace: format!(
                "{object} itself: it names no class, no IngressClass is the default one, and load \
                 balancers of {} serve only classes of their own",
                entry.cloud.name()
            ),
        },
        Some(entry) => of_cluster(entry.markers.ingress_default, provider),
        None => of_cluster(None, provider),
    }
}

fn of_cluster(product: Option<&str>, provider: &Known<Provider>) -> Maker {
    let Some(cloud) = provider.value.cloud() else { return Maker::Unknown };
    if cloud::model_of(cloud).is_some() {
        return Maker::Modelled;
    }
    let trace = match &provider.basis {
        Basis::Derived(from) => from.to_string(),
        basis => format!("{} at {basis}", cloud.word()),
    };
    Maker::other(product.unwrap_or(cloud.name()), trace)
}

/// Returns the product of the controller in the cluster that an IngressClass names.
pub(in crate::derive) fn product_of_controller(controller: &str) -> Option<&'static str> {
    let mut known = CONTROLLERS.iter();
    known.find(|(begins, _)| controller.starts_with(begins)).map(|(_, product)| *product)
}

/// Returns the cloud's product, or the controller in the cluster, that an IngressClass names.
fn of_controller(controller: &str, trace: &str) -> Option<Maker> {
    if let Some(product) = cloud::by_ingress_controller(controller) {
        return Some(Maker::other(product, trace.to_owned()));
    }
    let (_, name) = CONTROLLERS.iter().find(|(begins, _)| controller.starts_with(begins))?;
    Some(Maker::Controller { name: (*name).to_owned(), trace: trace.to_owned() })
}
