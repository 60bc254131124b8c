//! The description of a cloud, as data.

use uturn_model::network::CloudNetwork;
use uturn_model::service::LbIngress;
use uturn_model::{AddressBinding, AnnouncedBy, Cloud, Vendor, Version};

use super::{Annotation, CloudModel, IngressProduct, Markers, Probers, Product, Remedies, Words};

/// A cloud, or a program that provides load balancers in place of one.
pub struct CloudEntry {
    /// The word that Facts use for the cloud, and its name.
    pub cloud: Cloud,
    /// The markers that the cloud leaves on objects, by which it is recognised.
    pub markers: Markers,
    /// Whether the cloud's controllers serve Services only: none of its load balancers belongs to
    /// an Ingress.
    pub serves_services_only: bool,
    /// The form of a Service's status as the cloud's controllers write it.
    pub writes: StatusShape,
    /// The cloud's terms in checklists and cures.
    pub words: Words,
    /// Whether the cloud translates public addresses of nodes: no interface of a node has one.
    pub translates_public_addresses: bool,
    /// The builds of kube-proxy that the cloud ships itself.
    pub kube_proxy: Option<&'static KubeProxyBuilds>,
    /// The prefix of the label of nodes on which the cloud starts kube-proxy with the range of all
    /// pods (`--cluster-cidr`), if no object shows the arguments.
    pub label_with_cluster_cidr: Option<&'static str>,
    /// The pod networks that the cloud provides.
    pub networks: &'static [Network],
    /// The objects in which users set properties of listeners.
    pub overrides: Option<OverridesObject>,
    /// The objects in which users set properties of all Ingresses of a class.
    pub class_parameters: Option<ClassParameters>,
    /// The objects that state which nodes announce addresses.
    pub announcements: Option<AnnouncementObjects>,
    /// The images of the program that announces addresses, if it runs on some nodes only.
    pub announcer_images: &'static [&'static str],
    /// The ConfigMap of `kube-system` with the feature switches of the cloud's controller.
    pub switches_config_map: Option<&'static str>,
    /// The switch of the cloud's agent that enforces NetworkPolicies: a ConfigMap of `kube-system`, and
    /// its key.
    pub policy_switch: Option<(&'static str, &'static str)>,
    /// The images of the program whose version determines how the cloud's load balancers behave.
    pub versions_of: &'static [&'static str],
    /// The arguments of the cloud's programs that determine how its load balancers behave.
    pub arguments: &'static [ProgramArgument],
    /// The load balancers that the cloud makes for Services, if their products describe them
    /// completely.
    pub products: &'static [&'static dyn Product],
    /// The layer 7 load balancers that the cloud makes for Ingresses.
    pub ingress_products: &'static [&'static dyn IngressProduct],
    /// The addresses from which the cloud asks targets for their health, whichever load balancer it
    /// asks for.
    pub probers: Option<Probers>,
    /// The annotations of Services that change how these load balancers behave.
    pub remedies: Remedies,
    /// The annotations that the cloud's controllers read, and the kinds of their values.
    pub annotations: &'static [&'static [Annotation]],
    /// Annotations of Services for random clusters: each set asks for a load balancer that behaves
    /// differently.
    pub samples: &'static [Annotations],
    /// The behaviour of the cloud's controllers and load balancers, if its products do not describe
    /// all of it.
    pub model: Option<&'static dyn CloudModel>,
}

/// The form of a Service's status as a controller writes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StatusShape {
    /// Addresses, names, or both.
    Any,
    /// Names, never addresses.
    Names,
    /// Addresses, never a name alone.
    Addresses,
}

impl CloudEntry {
    /// Makes the entry of a cloud of which only the markers are known.
    pub const fn recognised(word: &'static str, name: &'static str, markers: Markers) -> Self {
        Self {
            cloud: Cloud::new(word, name),
            markers,
            serves_services_only: false,
            writes: StatusShape::Any,
            words: Words::NEUTRAL,
            translates_public_addresses: false,
            kube_proxy: None,
            label_with_cluster_cidr: None,
            networks: &[],
            overrides: None,
            class_parameters: None,
            announcements: None,
            announcer_images: &[],
            versions_of: &[],
            switches_config_map: None,
            policy_switch: None,
            arguments: &[],
            products: &[],
            ingress_products: &[],
            probers: None,
            remedies: |_, _, _| Vec::new(),
            annotations: &[],
            samples: &[],
            model: None,
        }
    }

    /// Returns whether the cloud's controllers also serve an Ingress that names no class, if no
    /// class is the default one.
    pub fn serves_every_ingress(&self) -> bool {
        self.model.is_some() || self.markers.ingress_default.is_some()
    }

    /// Returns whether the cloud has machines of its own. The controllers of such a cloud only
    /// serve nodes that are its machines.
    pub(crate) fn has_machines(&self) -> bool {
        !self.markers.provider_ids.is_empty()
    }

    /// Returns whether the cloud's controllers can have written a status.
    pub(crate) fn can_write(&self, status: &[LbIngress]) -> bool {
        match self.writes {
            StatusShape::Any => true,
            StatusShape::Names => status.iter().all(|entry| entry.ip.is_none()),
            StatusShape::Addresses => status.iter().all(|entry| entry.ip.is_some()),
        }
    }

    /// Returns whether a host name belongs to one of the cloud's load balancers.
    pub(crate) fn has_host_name(&self, host: &str) -> bool {
        self.markers.host_names.iter().any(|(ends, _)| host.ends_with(ends))
    }
}

/// Annotations of an object, with their values.
pub type Annotations = &'static [(&'static str, &'static str)];

/// An argument with which a program of a cloud is started, or a variable of its environment.
pub struct ProgramArgument {
    /// The names of the program's images, without registry and tag.
    pub images: &'static [&'static str],
    /// The name of the argument, without dashes.
    pub name: &'static str,
}

/// A cloud's own builds of kube-proxy.
pub struct KubeProxyBuilds {
    /// The vendor's part of its versions: `vendor` in `v1.34.4-vendor.13`.
    pub vendor: Vendor,
    /// The owner, as in `kube-proxy is VENDOR's`.
    pub owner: &'static str,
    /// The name of such a build, to distinguish it from an upstream build.
    pub name: &'static str,
    /// The annotation with which a Service requests that its load-balancer addresses are bound.
    pub request: &'static str,
    /// A function that returns which load-balancer addresses a version binds.
    pub binding: fn(Version) -> AddressBinding,
    /// A function that returns the first build of a version's line that honours the request.
    /// Returns `None` if the history of that line is not known.
    pub first_honouring: fn(Version) -> Option<Version>,
    /// Versions that differ from each other, for random clusters.
    pub samples: &'static [&'static str],
}

/// A pod network that a cloud provides, and how to recognise it.
pub struct Network {
    /// The network.
    pub network: CloudNetwork,
    /// The names of the network's DaemonSets.
    pub agents: &'static [&'static str],
    /// Annotations of pods that ask for the network, each with a part of its value.
    pub pod_annotations: &'static [(&'static str, &'static str)],
}

/// The kind of the objects that a class of Ingresses names as its parameters.
pub struct ClassParameters {
    /// The `kind` of the objects.
    pub kind: &'static str,
    /// The `apiVersion`s that are read.
    pub versions: &'static [&'static str],
    /// Fields of the `spec`, each with the annotation of Ingresses that it overrides. Lists are
    /// joined with commas.
    pub fields: &'static [(&'static str, &'static str)],
}

/// The kinds of objects that state which nodes announce which addresses. `uturn-snapshot` reads
/// their fields.
pub struct AnnouncementObjects {
    /// The `apiVersion`s that are read.
    pub versions: &'static [&'static str],
    /// The `kind` of pools of addresses.
    pub pool: &'static str,
    /// The `kind`s of announcements, each with the protocol of the announcement.
    pub announcements: &'static [(&'static str, AnnouncedBy)],
    /// The ConfigMap that older releases read in place of these objects.
    pub before: Option<AnnouncementMap>,
}

/// A ConfigMap with pools of addresses, each with the protocol by which it is announced.
pub struct AnnouncementMap {
    /// Its usual namespace, and its name.
    pub name: (&'static str, &'static str),
    /// The key of the configuration.
    pub key: &'static str,
    /// The list of pools in it.
    pub pools: &'static str,
    /// The names of protocols.
    pub protocols: &'static [(&'static str, AnnouncedBy)],
    /// The first release that does not read it.
    pub until: Version,
}

impl AnnouncementObjects {
    /// Returns the `kind`s of pools and announcements.
    pub fn kinds(&self) -> impl Iterator<Item = &'static str> {
        std::iter::once(self.pool).chain(self.announcements.iter().map(|(kind, _)| *kind))
    }
}

/// The kind of the objects in which users set properties of listeners. `uturn-snapshot` reads
/// their fields.
pub struct OverridesObject {
    /// The `kind` of the objects.
    pub kind: &'static str,
    /// The group of the `apiVersion`.
    pub group: &'static str,
    /// The `apiVersion`s that are read; the first is written.
    pub versions: &'static [&'static str],
    /// The name of the list of layer 4 listeners in `spec.loadBalancer`.
    pub layer_4: &'static str,
    /// The name of the list of layer 7 listeners.
    pub layer_7: &'static str,
    /// The field that, if 1, makes a layer 7 listener replace the source.
    pub replaced_source: OverridesField,
    /// The field that, if 1, makes the health checks of a listener come from the reserved range; on
    /// layer 4, the field is in the listener's `healthCheck`.
    pub reserved_probes: OverridesField,
    /// The setting of the console to use if no field makes the health checks of a layer 7 listener
    /// come from that range.
    pub reserved_probes_in_console: &'static str,
}

/// A field that a cure sets in an [`OverridesObject`].
pub struct OverridesField {
    /// The name of the field.
    pub name: &'static str,
    /// The permission that the account needs, and how to get it.
    pub condition: (&'static str, &'static str),
    /// The side effects of setting the field in this cloud.
    pub costs: &'static [&'static str],
}
