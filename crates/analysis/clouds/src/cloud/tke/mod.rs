//! Tencent Kubernetes Engine and its load balancers (CLB).
//!
//! | file | what it says |
//! | --- | --- |
//! | `annotations` | the keys that controllers and kube-proxy read |
//! | `markers` | the markers by which the cloud is recognised |
//! | `listeners` | the listeners and targets that its controllers make |
//! | `ingress_rules` | the listeners that serve the rules of an Ingress |
//! | `overrides` | the effects of a TkeServiceConfig |
//! | [`pod_weights`] | the weights that users give single pods |
//! | [`profile`] | the behaviour of a CLB |
//! | [`kube_proxy`] | the builds of its kube-proxy that bind load-balancer addresses |
//! | `words` | its terms in checklists, and its pod networks |

pub mod annotations;
mod ingress_rules;
pub mod kube_proxy;
mod listeners;
mod markers;
mod overrides;
pub mod pod_weights;
pub mod profile;
mod words;

use std::collections::BTreeMap;

use uturn_model::lb::{Layer, Listener, ListenerOverride, ListenerProtocol, ProbeRanges, Profile};
use uturn_model::{
    Cloud, Cluster, Family, Ingress, IngressClass, IpNet, Name, Node, Port, Service, Text,
};

use super::{
    BalancerRequest, CloudEntry, CloudModel, Observed, OverridesPlace, Owner, Setting, SettingOf,
    StatusShape, WantedListener,
};

pub use profile::PROBE_RANGES;
pub use words::EXPECTED;

/// Tencent Cloud, by the word of its Kubernetes Engine.
pub const TKE: Cloud = Cloud::new("tke", "Tencent Cloud");

/// The description of TKE.
pub static ENTRY: CloudEntry = CloudEntry {
    cloud: TKE,
    markers: super::Markers::NONE,
    serves_services_only: false,
    writes: StatusShape::Any,
    words: words::WORDS,
    translates_public_addresses: true,
    kube_proxy: Some(&kube_proxy::BUILDS),
    label_with_cluster_cidr: None,
    networks: &words::NETWORKS,
    overrides: Some(overrides::OBJECT),
    class_parameters: None,
    announcements: None,
    announcer_images: &[],
    versions_of: &[],
    arguments: &[],
    switches_config_map: Some(markers::SWITCHES),
    policy_switch: None,
    products: &[],
    ingress_products: &[],
    probers: None,
    remedies: |_, _, _| Vec::new(),
    annotations: &[annotations::READ],
    samples: &[],
    model: Some(&Tke),
};

struct Tke;

impl CloudModel for Tke {
    fn recognise(&self, observed: &Observed<'_>) -> Option<String> {
        markers::find(observed)
    }

    fn reads(&self, key: &str) -> bool {
        annotations::is_own(key)
    }

    fn serves_ingress(&self, ingress: &Ingress, classes: &BTreeMap<Name, IngressClass>) -> bool {
        listeners::serves(ingress, classes)
    }

    fn request(&self, owner: Owner<'_>) -> BalancerRequest {
        let (existing, subnet) = match owner {
            Owner::Service(_) => (annotations::EXISTING, annotations::SUBNET),
            Owner::Ingress(_) => (annotations::INGRESS_EXISTING, annotations::INGRESS_SUBNET),
        };
        let written = owner.annotations();
        BalancerRequest {
            existing: written.get(existing).map(Text::from),
            is_private: written.get(subnet).is_some(),
            subnet: written.get(subnet).map(Text::from),
        }
    }

    fn service_listeners(
        &self,
        cluster: &Cluster,
        service: &Service,
        family: Family,
    ) -> Vec<Listener> {
        listeners::of_service(cluster, service, family)
    }

    fn ingress_listeners(
        &self,
        cluster: &Cluster,
        ingress: &Ingress,
        family: Family,
    ) -> Vec<Listener> {
        listeners::of_ingress(cluster, ingress, family)
    }

    fn wanted_listeners<'i>(&self, ingress: &'i Ingress) -> Vec<WantedListener<'i>> {
        ingress_rules::wanted(ingress)
    }

    fn unreadable(&self, ingress: &Ingress) -> Vec<(&'static str, &'static str)> {
        ingress_rules::unreadable(ingress)
    }

    fn target_label<'s>(&self, service: &'s Service) -> Option<&'s str> {
        service.annotations.get(annotations::BACKENDS_LABEL)
    }

    fn pod_weights<'o>(&self, owner: Owner<'o>) -> Option<&'o str> {
        owner.annotations().get(pod_weights::key(owner))
    }

    fn weights_of_pod(&self, owner: Owner<'_>, pod: &str) -> Vec<u64> {
        pod_weights::PodWeights::of(owner).everywhere(pod)
    }

    fn readiness_gate(&self) -> Option<&'static str> {
        Some(annotations::READINESS_GATE)
    }

    fn excludes_node(&self, node: &Node) -> bool {
        listeners::excludes(node)
    }

    fn target_nodes<'c>(&self, cluster: &'c Cluster, service: &Service) -> Vec<&'c Node> {
        listeners::target_nodes(cluster, service)
    }

    fn plain_profile(&self, layer: Layer) -> Profile {
        profile::clb(layer)
    }

    fn replaced_source(&self) -> IpNet {
        profile::snat_range()
    }

    fn probe_ranges(&self) -> ProbeRanges {
        PROBE_RANGES
    }

    fn security_groups<'o>(&self, owner: Owner<'o>) -> Option<&'o str> {
        let key = match owner {
            Owner::Service(_) => annotations::SECURITY_GROUPS,
            Owner::Ingress(_) => annotations::INGRESS_SECURITY_GROUPS,
        };
        owner.annotations().get(key)
    }

    fn overrides_place(&self, owner: Owner<'_>) -> OverridesPlace {
        overrides::place(owner)
    }

    fn listener_override<'c>(
        &self,
        cluster: &'c Cluster,
        owner: Owner<'_>,
        (port, protocol): (Port, ListenerProtocol),
    ) -> Option<&'c ListenerOverride> {
        overrides::listener(cluster, owner, port, protocol)
    }

    fn annotation(&self, setting: Setting, of: SettingOf) -> Option<&'static str> {
        annotations::key(setting, of)
    }
}
