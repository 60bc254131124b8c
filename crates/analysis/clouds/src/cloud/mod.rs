//! Clouds: how each is recognised, and how its controllers and load balancers behave.
//!
//! A cloud is a folder here and a line in [`ALL`]. No code outside its folder names it: what other
//! code needs to know about a cloud is a field of its [`CloudEntry`] or a method of its
//! [`CloudModel`]. `cargo xtask lint` checks that for the clouds that are modelled.
//!
//! If an entry does not describe a cloud's load balancers, they are recognised and named, but flows
//! through them are not judged.

pub mod alibaba;
mod annotation;
pub mod antrea;
pub mod aws;
pub mod azure;
mod behaviour;
pub mod cilium;
pub mod digitalocean;
mod entry;
pub mod exoscale;
pub mod f5;
pub mod gcp;
pub mod hetzner;
pub mod huawei;
pub mod ibm;
mod ingress_product;
pub mod k3s;
pub mod kube_vip;
pub mod linode;
pub(crate) mod made;
pub(crate) mod made_ingress;
mod maker;
mod markers;
pub mod metallb;
mod open_end;
pub mod openelb;
pub mod openstack;
pub mod oracle;
mod product;
mod programs;
mod remedy;
pub mod scaleway;
mod status;
pub mod tke;
mod values;
pub mod vultr;
mod wanted;
mod words;

use std::collections::BTreeMap;
use std::net::IpAddr;

use uturn_model::lb::ProbeRanges;
use uturn_model::network::{CloudNetwork, NetworkMode, Plugin};
use uturn_model::{
    AddressBinding, Cloud, Cluster, Ingress, IngressClass, Name, Node, ProxySettings, Variant,
    Version,
};

pub use annotation::{Annotation, ValueKind, annotation};
pub use behaviour::{
    BalancerRequest, CloudModel, Observed, OverridesPlace, Owner, Setting, SettingOf,
};
pub use entry::{
    Annotations, AnnouncementMap, AnnouncementObjects, ClassParameters, CloudEntry,
    KubeProxyBuilds, Network, OverridesField, OverridesObject, ProgramArgument, StatusShape,
};
pub use ingress_product::{IngressProduct, ingress_product};
pub use maker::{Maker, is_left_to_balancer, maker_of, product_of};
pub use markers::{
    Markers, by_distribution_id, by_gateway_class, by_host_name, by_ingress_class,
    by_ingress_controller, by_ingress_key, by_load_balancer_class, by_node_key, by_object_kind,
    by_own_node_key, by_placeholder_endpoint, by_provider_id, by_service_key, by_service_workload,
    cloud_of_program,
};
pub use open_end::{AskedPage, ByDefault, ClosedBy, OpenEnd, Opening};
pub use product::{
    Announcing, Leases, NewObject, NewValue, NoAddress, OtherCheck, PageCheck, PortPlan, Probers,
    Product, SourceRanges, StatusEntry, Targets, UnansweredCheck, Undelivered, UnservedPort,
    ZoneAnswers, stand_in, stands_for_balancer,
};
pub(crate) use product::{own_address, question_by_policy, replaced, send_from, unnamed};
pub(crate) use programs::runs;
pub use programs::{is_id_without_cloud, may_assign_addresses, names_of_programs};
pub use remedy::{Need, NewStatus, Remedies, Remedy, Want};
pub use status::{ExpectedStatus, expected_status};
pub(crate) use wanted::{HTTP, HTTPS, aimed, of_route, plain as plain_listeners, rules};
pub use wanted::{RuleAction, WantedListener, WantedRule};
pub use words::{Expected, Words};

/// Every cloud: those with a model first, in the order in which they are recognised.
pub static ALL: [&CloudEntry; 23] = [
    &tke::ENTRY,
    &aws::ENTRY,
    &azure::ENTRY,
    &gcp::ENTRY,
    &alibaba::ENTRY,
    &huawei::ENTRY,
    &openstack::OVH,
    &openstack::ENTRY,
    &digitalocean::ENTRY,
    &hetzner::ENTRY,
    &linode::ENTRY,
    &scaleway::ENTRY,
    &vultr::ENTRY,
    &exoscale::ENTRY,
    &oracle::ENTRY,
    &ibm::ENTRY,
    &metallb::ENTRY,
    &kube_vip::ENTRY,
    &k3s::ENTRY,
    &cilium::ENTRY,
    &openelb::ENTRY,
    &antrea::ENTRY,
    &f5::ENTRY,
];

/// Returns the addresses from which a cloud asks targets for their health, if this is one of them.
pub fn probers_at(address: IpAddr) -> Option<Probers> {
    let mut all = ALL.iter().filter_map(|entry| entry.probers);
    all.find(|probers| probers.ranges.contains(address))
}

/// Returns the remedies for a product's load balancers. Returns `None` if no cloud has the product.
pub fn remedies_of(product: &dyn Product) -> Option<Remedies> {
    let mut entries = ALL.into_iter();
    let makes =
        |entry: &CloudEntry| entry.products.iter().any(|known| known.name() == product.name());
    Some(entries.find(|entry| makes(entry))?.remedies)
}

/// The expected values that error messages about Facts state.
pub const EXPECTED: Expected = tke::EXPECTED;

/// The ranges from which health checks come if the cloud is not known.
pub const USUAL_PROBE_RANGES: ProbeRanges = tke::PROBE_RANGES;

/// Returns the entry of a cloud. Returns `None` if no folder and no row describes the cloud.
pub fn entry(cloud: Cloud) -> Option<&'static CloudEntry> {
    ALL.into_iter().find(|entry| entry.cloud == cloud)
}

/// Returns whether a node's public address is translated to its own by the cloud whose machine it is.
/// `false` if that is not known.
pub fn translates_public_address(cluster: &Cluster, node: &Node) -> bool {
    let own = node.provider_id.as_deref().and_then(by_provider_id).map(|(_, cloud)| cloud);
    let cloud = own.or_else(|| cluster.provider.value.cloud());
    cloud.and_then(entry).is_some_and(|entry| entry.translates_public_addresses)
}

/// Returns the value of an argument of a cloud's program that its entry lists. Returns `None` if
/// the argument is not given.
pub fn argument<'c>(cluster: &'c Cluster, cloud: Cloud, name: &str) -> Option<&'c str> {
    cluster.balancer_arguments.get(&argument_key(cloud, name))
}

/// The name under which the version of a program is kept among its arguments.
pub const VERSION: &str = "version";

/// Returns the key of an argument in [`Cluster::balancer_arguments`].
pub fn argument_key(cloud: Cloud, name: &str) -> String {
    format!("{}/{name}", cloud.word())
}

/// Returns the model of a cluster's cloud. Returns `None` if there is no cloud, or if it is not
/// known or not modelled.
pub fn model(cluster: &Cluster) -> Option<&'static dyn CloudModel> {
    model_of(cluster.provider.value.cloud()?)
}

/// Returns the model of a cloud. Returns `None` if the cloud is not modelled.
pub fn model_of(cloud: Cloud) -> Option<&'static dyn CloudModel> {
    entry(cloud)?.model
}

/// Returns the clouds that are modelled.
pub fn modelled() -> impl Iterator<Item = (&'static CloudEntry, &'static dyn CloudModel)> {
    ALL.into_iter().filter_map(|entry| Some((entry, entry.model?)))
}

/// Returns whether the controller of any modelled cloud would serve an Ingress in that cloud.
pub fn any_serves(ingress: &Ingress, classes: &BTreeMap<Name, IngressClass>) -> bool {
    modelled().any(|(_, model)| model.serves_ingress(ingress, classes))
}

/// Returns the description of the objects of this kind, if a class of Ingresses may name them as
/// its parameters.
pub fn class_parameters(kind: &str) -> Option<&'static ClassParameters> {
    let mut all = ALL.into_iter().filter_map(|entry| entry.class_parameters.as_ref());
    all.find(|parameters| parameters.kind == kind)
}

/// Returns the description of the objects that state which nodes announce addresses, if a kind is
/// one of them.
pub fn announcement_objects(kind: &str) -> Option<&'static AnnouncementObjects> {
    let mut all = ALL.into_iter().filter_map(|entry| entry.announcements.as_ref());
    all.find(|objects| objects.kinds().any(|own| own == kind))
}

/// Iterates over the ConfigMaps that older releases read in place of such objects.
pub fn announcement_maps() -> impl Iterator<Item = &'static AnnouncementMap> {
    ALL.into_iter().filter_map(|entry| entry.announcements.as_ref()?.before.as_ref())
}

/// Iterates over the switches of agents that enforce NetworkPolicies.
pub fn policy_switches() -> impl Iterator<Item = (&'static str, &'static str)> {
    ALL.into_iter().filter_map(|entry| entry.policy_switch)
}

/// Returns the terms of checklists and cures for a cluster's cloud.
pub fn words(cluster: &Cluster) -> &'static Words {
    let entry = cluster.provider.value.cloud().and_then(entry);
    entry.map_or(&Words::NEUTRAL, |entry| &entry.words)
}

/// Returns the builds of kube-proxy that clouds ship themselves.
pub fn kube_proxy_builds() -> impl Iterator<Item = (Cloud, &'static KubeProxyBuilds)> {
    ALL.into_iter().filter_map(|entry| Some((entry.cloud, entry.kube_proxy?)))
}

/// Returns the builds to which a variant of kube-proxy belongs. Returns `None` for upstream.
pub fn builds_of(variant: Variant) -> Option<&'static KubeProxyBuilds> {
    match variant {
        Variant::Upstream => None,
        Variant::Cloud(cloud) => entry(cloud)?.kube_proxy,
    }
}

/// Returns the cloud whose own build of kube-proxy a version names.
pub fn builder_of(version: Version) -> Option<Cloud> {
    let build = version.vendor_build?;
    kube_proxy_builds().find(|(_, builds)| builds.vendor == build.vendor).map(|(cloud, _)| cloud)
}

/// Returns the version without its vendor build if that build is not known.
pub fn with_known_build(version: Version) -> Version {
    let is_known = builder_of(version).is_some();
    Version { vendor_build: version.vendor_build.filter(|_| is_known), ..version }
}

/// Returns every variant of kube-proxy, upstream first.
pub fn variants() -> impl Iterator<Item = Variant> {
    let of_clouds = kube_proxy_builds().map(|(cloud, _)| Variant::Cloud(cloud));
    std::iter::once(Variant::Upstream).chain(of_clouds)
}

/// Sets which load-balancer addresses kube-proxy binds, from its variant and its version. Callers
/// must call it after either changes.
pub fn set_address_binding(proxy: &mut ProxySettings) {
    proxy.address_binding = match builds_of(proxy.variant.value) {
        None => AddressBinding::All,
        Some(builds) => (builds.binding)(proxy.version.value),
    };
}

/// Returns the pod networks that clouds provide.
pub fn networks() -> impl Iterator<Item = &'static Network> {
    ALL.into_iter().flat_map(|entry| entry.networks)
}

/// Returns the plugin to assume if only the mode of the pod network is known: the first network of
/// a cloud that has this mode.
pub fn usual_network(mode: NetworkMode) -> Plugin {
    let of_mode = |network: &CloudNetwork| network.mode == mode;
    let found = networks().map(|network| network.network).find(of_mode);
    found.map_or(Plugin::Unknown, Plugin::OfCloud)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_cloud_has_a_word_and_a_name_of_its_own() {
        let words: BTreeSet<&str> = ALL.iter().map(|entry| entry.cloud.word()).collect();
        let names: BTreeSet<&str> = ALL.iter().map(|entry| entry.cloud.name()).collect();
        assert_eq!((words.len(), names.len()), (ALL.len(), ALL.len()));
        assert!(!words.contains("none") && !words.contains("unknown"));
    }

    #[test]
    fn modelled_clouds_come_first() {
        let has_model: Vec<bool> = ALL.iter().map(|entry| entry.model.is_some()).collect();
        assert!(has_model.is_sorted_by(|earlier, later| earlier >= later), "{has_model:?}");
    }

    #[test]
    fn only_known_builds_are_kept() {
        for (text, kept) in [
            ("v1.22.5-tke.13", "v1.22.5-tke.13"),
            ("v1.28.3-gke.1067004", "v1.28.3"),
            ("v1.36.0-rc.1", "v1.36.0"),
        ] {
            assert_eq!(with_known_build(text.parse().unwrap()).to_string(), kept);
        }
    }
}
