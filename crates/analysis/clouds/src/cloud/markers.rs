//! Markers that clouds leave on objects, and lookups over all clouds.

use std::net::IpAddr;

use uturn_model::service::LbIngress;
use uturn_model::{Cloud, Labels, Service};

use super::{ALL, CloudEntry};

/// The markers that a cloud and its controllers leave on objects. Each entry is a prefix unless its
/// field states otherwise.
pub struct Markers {
    /// providerIDs of nodes.
    pub provider_ids: &'static [&'static str],
    /// A function that returns the part of a providerID that shows the cloud, for providerIDs
    /// without a fixed prefix.
    pub provider_id_part: fn(&str) -> Option<&str>,
    /// Labels and annotations of nodes.
    pub node_keys: &'static [&'static str],
    /// Labels and annotations of nodes of a cloud that runs the software of another, whose providerIDs
    /// its nodes have.
    pub own_node_keys: &'static [&'static str],
    /// Annotations of Services.
    pub service_keys: &'static [&'static str],
    /// A function that returns the product of a Service's load balancer, if the cloud has several.
    pub service_product: fn(&Service) -> Option<&'static str>,
    /// Values of `spec.loadBalancerClass` with the product; prefixes if they end with a `/`.
    pub load_balancer_classes: &'static [(&'static str, &'static str)],
    /// Suffixes of the host names of load balancers, with the product.
    pub host_names: &'static [(&'static str, &'static str)],
    /// Controllers of Ingress classes, with the product.
    pub ingress_controllers: &'static [(&'static str, &'static str)],
    /// Full names of Ingress classes, with the product, for the case that no IngressClass names
    /// their controller.
    pub ingress_classes: &'static [(&'static str, &'static str)],
    /// Annotations of Ingresses that only this cloud reads, with the product.
    pub ingress_keys: &'static [(&'static str, &'static str)],
    /// Prefixes of the controllers of GatewayClasses, or of the names of such classes, with the
    /// product.
    pub gateway_classes: &'static [(&'static str, &'static str)],
    /// The product of an Ingress that names no class, if the cluster has no default class.
    pub ingress_default: Option<&'static str>,
    /// Full names of namespaces of a program that announces addresses.
    pub namespaces: &'static [&'static str],
    /// Workloads and pods of a program that announces addresses.
    pub program_names: &'static [&'static str],
    /// Workloads that the cloud's controller makes for Services.
    pub service_workloads: &'static [&'static str],
    /// providerIDs of a distribution that includes the program, unless another program replaces it.
    pub distribution_ids: &'static [&'static str],
    /// Objects of a program that announces addresses, as `apiVersion/kind`.
    pub object_kinds: &'static [&'static str],
    /// The unused address that the controller writes as the endpoint of Services which it serves by
    /// its own program on nodes.
    pub placeholder_endpoint: Option<IpAddr>,
}

impl Markers {
    /// No markers.
    pub const NONE: Self = Self {
        provider_ids: &[],
        provider_id_part: |_| None,
        node_keys: &[],
        own_node_keys: &[],
        service_keys: &[],
        service_product: |_| None,
        load_balancer_classes: &[],
        host_names: &[],
        ingress_controllers: &[],
        ingress_classes: &[],
        ingress_keys: &[],
        gateway_classes: &[],
        ingress_default: None,
        namespaces: &[],
        program_names: &[],
        service_workloads: &[],
        distribution_ids: &[],
        object_kinds: &[],
        placeholder_endpoint: None,
    };
}

/// Returns the cloud of a providerID, with the part of the providerID that shows it.
pub fn by_provider_id(id: &str) -> Option<(&str, Cloud)> {
    ALL.iter().find_map(|entry| {
        let begins = entry.markers.provider_ids.iter().find(|begins| id.starts_with(**begins));
        let part = begins.copied().or_else(|| (entry.markers.provider_id_part)(id))?;
        Some((part, entry.cloud))
    })
}

/// Returns the cloud whose controllers write this unused address as an endpoint.
pub fn by_placeholder_endpoint(address: IpAddr) -> Option<Cloud> {
    let mut all = ALL.iter();
    all.find(|entry| entry.markers.placeholder_endpoint == Some(address)).map(|entry| entry.cloud)
}

/// Returns the cloud that wrote one of a node's labels or annotations, with the key.
pub fn by_node_key(labels: &Labels) -> Option<(&str, Cloud)> {
    by_key(labels, |markers| markers.node_keys)
}

/// Returns the cloud that wrote one of a node's labels or annotations and runs the software of
/// another, with the key.
pub fn by_own_node_key(labels: &Labels) -> Option<(&str, Cloud)> {
    by_key(labels, |markers| markers.own_node_keys)
}

/// Returns the cloud whose annotations a Service has, with a key.
///
/// Manifests are written for several clouds, and copied from one to another. In a cluster of `own`,
/// whose machines or program are visible, nothing reads the annotations of another cloud's
/// controllers, as these serve their own machines only. Annotations of a cloud do not count either
/// if its controllers cannot have written the status, or if the Service also has annotations of
/// another cloud.
pub fn by_service_key(service: &Service, own: Option<Cloud>) -> Option<(&str, Cloud)> {
    let can_serve = |entry: &CloudEntry| {
        let serves = own.is_none_or(|own| own == entry.cloud) || !entry.has_machines();
        serves && entry.can_write(&service.load_balancer)
    };
    let named = service
        .annotations
        .iter()
        .filter_map(|(key, _)| Some((key, entry_by_key(key, |markers| markers.service_keys)?)));
    let able: Vec<_> = named.filter(|(_, entry)| can_serve(entry)).collect();
    // A program on the machines of a cloud, or a cloud that runs another's software, serves a
    // Service only if an annotation names it.
    let programs: Vec<_> = able.iter().filter(|(_, entry)| !entry.has_machines()).collect();
    let own: Vec<_> = able.iter().filter(|(_, entry)| Some(entry.cloud) == own).collect();
    let mut named = [programs, own, able.iter().collect()].into_iter().filter(|of| !of.is_empty());
    let named = named.next()?;
    let (key, entry) = named.first()?;
    named.iter().all(|(_, other)| other.cloud == entry.cloud).then_some((key, entry.cloud))
}

fn by_key(
    labels: &Labels,
    known: fn(&Markers) -> &'static [&'static str],
) -> Option<(&str, Cloud)> {
    ALL.iter().find_map(|entry| {
        let is_of = |key: &&str| known(&entry.markers).iter().any(|begins| key.starts_with(begins));
        Some((labels.iter().map(|(key, _)| key).find(is_of)?, entry.cloud))
    })
}

/// Returns the cloud of a label or annotation.
fn entry_by_key(
    key: &str,
    known: fn(&Markers) -> &'static [&'static str],
) -> Option<&'static CloudEntry> {
    let is_of = |markers: &Markers| known(markers).iter().any(|begins| key.starts_with(begins));
    ALL.into_iter().find(|entry| is_of(&entry.markers))
}

/// Returns the product of a `loadBalancerClass`.
pub fn by_load_balancer_class(class: &str) -> Option<&'static str> {
    let is_it = |known: &str| class == known || (known.ends_with('/') && class.starts_with(known));
    product(|markers| markers.load_balancer_classes, is_it)
}

/// Returns the product whose load balancer has a host name of a status, with that name.
pub fn by_host_name(status: &[LbIngress]) -> Option<(&str, &'static str)> {
    status.iter().find_map(|entry| {
        let host = entry.hostname.as_deref()?.trim_end_matches('.');
        Some((host, product(|markers| markers.host_names, |ends| host.ends_with(ends))?))
    })
}

/// Returns the product of a cloud that an IngressClass names as its controller.
pub fn by_ingress_controller(controller: &str) -> Option<&'static str> {
    product(|markers| markers.ingress_controllers, |begins| controller.starts_with(begins))
}

/// Returns the product of a cloud that usually serves an Ingress class of this name.
pub fn by_ingress_class(class: &str) -> Option<&'static str> {
    product(|markers| markers.ingress_classes, |name| name == class)
}

/// Returns the product of a cloud that serves Gateways of a class. The name of the class is looked
/// up before its controller.
pub fn by_gateway_class(class: &str, controller: Option<&str>) -> Option<&'static str> {
    let of =
        |text: &str| product(|markers| markers.gateway_classes, |begins| text.starts_with(begins));
    of(class).or_else(|| of(controller?))
}

/// Returns the product of a cloud that reads an annotation of an Ingress.
pub fn by_ingress_key(key: &str) -> Option<&'static str> {
    product(|markers| markers.ingress_keys, |begins| key.starts_with(begins))
}

fn product(
    known: fn(&Markers) -> &'static [(&'static str, &'static str)],
    is_it: impl Fn(&str) -> bool,
) -> Option<&'static str> {
    let mut all = ALL.iter().flat_map(|entry| known(&entry.markers));
    all.find(|(trace, _)| is_it(trace)).map(|(_, product)| *product)
}

/// Returns the program that announces addresses to which a workload or a pod belongs.
pub fn cloud_of_program(namespace: &str, name: &str) -> Option<Cloud> {
    let is_of = |markers: &Markers| {
        markers.namespaces.contains(&namespace)
            || markers.program_names.iter().any(|begins| name.starts_with(begins))
    };
    ALL.iter().find(|entry| is_of(&entry.markers)).map(|entry| entry.cloud)
}

/// Returns the cloud whose controller makes a workload of this name for a Service.
pub fn by_service_workload(name: &str) -> Option<Cloud> {
    let is_of =
        |markers: &Markers| markers.service_workloads.iter().any(|begins| name.starts_with(begins));
    ALL.iter().find(|entry| is_of(&entry.markers)).map(|entry| entry.cloud)
}

/// Returns the program that a distribution whose nodes have such providerIDs includes, with the
/// prefix that shows it.
pub fn by_distribution_id(id: &str) -> Option<(&'static str, Cloud)> {
    ALL.iter().find_map(|entry| {
        let mut begins = entry.markers.distribution_ids.iter();
        Some((*begins.find(|begins| id.starts_with(**begins))?, entry.cloud))
    })
}

/// Returns the program that has objects of this kind, given as `apiVersion/kind`.
pub fn by_object_kind(kind: &str) -> Option<Cloud> {
    let is_of =
        |markers: &Markers| markers.object_kinds.iter().any(|begins| kind.starts_with(begins));
    ALL.iter().find(|entry| is_of(&entry.markers)).map(|entry| entry.cloud)
}

#[cfg(test)]
mod tests {
    use super::super::{alibaba, aws, hetzner, oracle};
    use super::*;

    #[test]
    fn provider_ids_with_and_without_a_scheme() {
        let of = |id| by_provider_id(id).map(|(_, cloud)| cloud);
        assert_eq!(of("aws:///eu-west-1a/i-0123"), Some(aws::ENTRY.cloud));
        assert_eq!(of("cn-hangzhou.i-bp1d4k"), Some(alibaba::ENTRY.cloud));
        assert_eq!(of("alicloud://cn-hangzhou.i-bp1d4k"), Some(alibaba::ENTRY.cloud));
        assert_eq!(of("ocid1.instance.oc1.iad.anuwc"), Some(oracle::ENTRY.cloud));
        assert_eq!(of("hcloud://bm-17"), Some(hetzner::ENTRY.cloud));
        for none in ["kind://docker/kind/kind-worker", "rke2://n1", "3f2c8e1a-0000-4b1c-9d7e", ""] {
            assert_eq!(of(none), None, "{none}");
        }
    }
}
