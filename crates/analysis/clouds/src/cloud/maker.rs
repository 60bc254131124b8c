//! The controller that makes the load balancer of a Service: the class of the Service determines
//! it, then what Facts state, then the host name in the status, the annotations, and the cloud of
//! the cluster.

use uturn_model::cluster::Provider;
use uturn_model::lb::Listener;
use uturn_model::{Basis, Cloud, Cluster, Known, ObjectKind, Service};

use super::{ALL, CloudModel, Product, by_host_name, by_load_balancer_class, by_service_key};
use super::{entry, model_of};

/// The controller that makes a load balancer, as far as the cluster shows it.
#[derive(Clone)]
pub enum Maker {
    /// The controller of the cluster's cloud, with its model.
    Model(&'static dyn CloudModel),
    /// The controller of a product that is described, and how it was recognised.
    Product(&'static dyn Product, String),
    /// A cloud or a program whose load balancers are not described: the name of the product, if its
    /// markers name one, and how it was recognised.
    Other(String, String),
    /// A controller that nothing in the cluster shows.
    Unknown,
}

impl Maker {
    /// Returns whether the behaviour of the controller's load balancers is known.
    pub fn is_described(&self) -> bool {
        matches!(self, Self::Model(_) | Self::Product(..))
    }

    fn named(name: &str, trace: String) -> Self {
        match product_named(name) {
            Some(product) => Self::Product(product, trace),
            None => Self::Other(name.to_owned(), trace),
        }
    }
}

/// Returns the controller that makes the load balancer of a Service.
pub fn maker_of(service: &Service, provider: &Known<Provider>) -> Maker {
    let object = || service.object();
    if let Some(class) = service.load_balancer_class.as_deref() {
        let trace = format!("loadBalancerClass {class} of {}", object());
        return match by_load_balancer_class(class).or_else(|| program_of_class(class)) {
            Some(product) => Maker::named(product, trace),
            None => Maker::Other(format!("class {class}"), trace),
        };
    }
    let own = provider.value.cloud();
    let model = own.and_then(model_of);
    if let (Basis::Stated(_), Some(model)) = (&provider.basis, model) {
        return Maker::Model(model);
    }
    let is_own =
        model.is_some_and(|model| service.annotations.iter().any(|(key, _)| model.reads(key)));
    if !is_own {
        if let Some((host, product)) = by_host_name(&service.load_balancer) {
            let trace = || format!("host name {host}, of {}", object());
            // Some host names show only the cloud; the Service shows which of its products it is.
            let of_name = ALL.into_iter().find(|entry| entry.has_host_name(host));
            return match (product_named(product), of_name) {
                (None, Some(entry)) if product == entry.cloud.name() => {
                    of_cloud(entry.cloud, service, trace)
                }
                _ => Maker::named(product, trace()),
            };
        }
        if let Some((key, cloud)) = by_service_key(service, own) {
            return of_cloud(cloud, service, || format!("{key} of {}", object()));
        }
    }
    let Some(cloud) = own else { return Maker::Unknown };
    match model {
        Some(model) => Maker::Model(model),
        None if entry(cloud).is_some_and(|entry| !entry.can_write(&service.load_balancer)) => {
            let name = format!("a controller that is not {}'s", cloud.name());
            let is_named = service.load_balancer.iter().all(|entry| entry.ip.is_none());
            let what = if is_named { "name" } else { "address" };
            Maker::Other(name, format!("the {what} in the status of {}", object()))
        }
        None => of_cloud(cloud, service, || match &provider.basis {
            Basis::Derived(from) => from.to_string(),
            basis => format!("{} at {basis}", cloud.word()),
        }),
    }
}

/// Returns the product that serves a listener, and the Service that it serves there.
pub fn product_of<'c>(
    cluster: &'c Cluster,
    listener: &Listener,
) -> Option<(&'static dyn Product, &'c Service)> {
    let owner = &listener.rules.first()?.owner;
    let name = owner.namespaced_name().filter(|_| owner.kind == ObjectKind::Service)?;
    let service = cluster.services.get(&name)?;
    match maker_of(service, &cluster.provider) {
        Maker::Product(product, _) => Some((product, service)),
        Maker::Model(_) | Maker::Other(..) | Maker::Unknown => None,
    }
}

/// Returns whether nodes have no rule for the addresses in the status of a Service, although the
/// status does not state this.
pub fn is_left_to_balancer(service: &Service, provider: &Known<Provider>) -> bool {
    match maker_of(service, provider) {
        Maker::Product(product, _) => product.is_left_to_balancer(service),
        Maker::Model(_) | Maker::Other(..) | Maker::Unknown => false,
    }
}

/// Returns the controller of the product that a Service gets in a cloud.
fn of_cloud(cloud: Cloud, service: &Service, trace: impl FnOnce() -> String) -> Maker {
    let product = entry(cloud).and_then(|entry| (entry.markers.service_product)(service));
    Maker::named(product.unwrap_or(cloud.name()), trace())
}

/// Returns the product with this name, if it is described.
fn product_named(name: &str) -> Option<&'static dyn Product> {
    let mut all = ALL.into_iter().flat_map(|entry| entry.products);
    all.find(|product| product.name() == name).copied()
}

/// Values of `spec.loadBalancerClass` of programs of which only the name is known; prefixes if they
/// end with a `/`.
const CLASSES: &[(&str, &str)] =
    &[("tailscale", "Tailscale"), ("loxilb.io/", "LoxiLB"), ("purelb.io/", "PureLB")];

/// Returns the program of a `loadBalancerClass` that belongs to no cloud.
fn program_of_class(class: &str) -> Option<&'static str> {
    let is_it = |known: &str| class == known || (known.ends_with('/') && class.starts_with(known));
    CLASSES.iter().find(|(known, _)| is_it(known)).map(|(_, name)| *name)
}
