//! The description of a cloud, as data.

use uturn_model::network::CloudNetwork;
use uturn_model::service::LbIngress;
use uturn_model::{AddressBinding, AnnouncedBy, Cloud, Vendor, Version};

use super::{Annotation, CloudModel, IngressProduct, Markers, Product, Remedies, Words};

/// A cloud, or a program that provides load balancers in place of one.
pub struct CloudEntry {
    /// Its word in Facts and its name.
    pub cloud: Cloud,
    /// What it leaves on objects, by which it is recognised.
    pub markers: Markers,
    /// Whether its controllers serve Services only: an Ingress never has one of its load
    /// balancers for itself.
    pub serves_services_only: bool,
    /// What its controllers write into the status of a Service.
    pub writes: StatusShape,
    /// Its terms in checklists and cures.
    pub words: Words,
    /// The builds of kube-proxy that it ships itself.
    pub kube_proxy: Option<&'static KubeProxyBuilds>,
    /// How a label begins of nodes on which it starts kube-proxy with the range of all pods
    /// (`--cluster-cidr`), where no object shows the arguments.
    pub label_with_cluster_cidr: Option<&'static str>,
    /// The pod networks that it provides.
    pub networks: &'static [Network],
    /// The objects in which users set properties of listeners.
    pub overrides: Option<OverridesObject>,
    /// The objects in which users set what holds for all Ingresses of a class.
    pub class_parameters: Option<ClassParameters>,
    /// The objects that say which nodes announce addresses.
    pub announcements: Option<AnnouncementObjects>,
    /// The images of the program that announces addresses, where that runs on some nodes only.
    pub announcer_images: &'static [&'static str],
    /// The ConfigMap of `kube-system` with the switches of its controller.
    pub switches_config_map: Option<&'static str>,
    /// The images of the program whose version decides what its load balancers do.
    pub versions_of: &'static [&'static str],
    /// The arguments of its programs that decide what its load balancers do.
    pub arguments: &'static [ProgramArgument],
    /// The load balancers that it makes for Services, where they are described by their products
    /// alone.
    pub products: &'static [&'static dyn Product],
    /// The load balancers on layer 7 that it makes for Ingresses.
    pub ingress_products: &'static [&'static dyn IngressProduct],
    /// The annotations of Services that change how these load balancers behave.
    pub remedies: Remedies,
    /// The annotations that its controllers read, and the form of their values.
    pub annotations: &'static [&'static [Annotation]],
    /// Annotations of Services for random clusters: each set asks for a load balancer that behaves
    /// differently.
    pub samples: &'static [Annotations],
    /// How its controllers and load balancers behave, if its products do not describe all of it.
    pub model: Option<&'static dyn CloudModel>,
}

/// What a controller writes into the status of a Service.
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
    /// A cloud of which nothing is known but what it leaves behind.
    pub const fn recognised(word: &'static str, name: &'static str, markers: Markers) -> Self {
        Self {
            cloud: Cloud::new(word, name),
            markers,
            serves_services_only: false,
            writes: StatusShape::Any,
            words: Words::NEUTRAL,
            kube_proxy: None,
            label_with_cluster_cidr: None,
            networks: &[],
            overrides: None,
            class_parameters: None,
            announcements: None,
            announcer_images: &[],
            versions_of: &[],
            switches_config_map: None,
            arguments: &[],
            products: &[],
            ingress_products: &[],
            remedies: |_, _, _| Vec::new(),
            annotations: &[],
            samples: &[],
            model: None,
        }
    }

    /// Whether its controllers serve an Ingress too that names no class, where no class is the
    /// default one.
    pub fn serves_every_ingress(&self) -> bool {
        self.model.is_some() || self.markers.ingress_default.is_some()
    }

    /// Whether it has machines of its own. Its controllers serve nodes that are such machines.
    pub(crate) fn has_machines(&self) -> bool {
        !self.markers.provider_ids.is_empty()
    }

    /// Whether its controllers can have written a status.
    pub(crate) fn can_write(&self, status: &[LbIngress]) -> bool {
        match self.writes {
            StatusShape::Any => true,
            StatusShape::Names => status.iter().all(|entry| entry.ip.is_none()),
            StatusShape::Addresses => status.iter().all(|entry| entry.ip.is_some()),
        }
    }

    /// Whether this is a host name of one of its load balancers.
    pub(crate) fn has_host_name(&self, host: &str) -> bool {
        self.markers.host_names.iter().any(|(ends, _)| host.ends_with(ends))
    }
}

/// Annotations of an object, with their values.
pub type Annotations = &'static [(&'static str, &'static str)];

/// An argument that a program of a cloud is started with, or a variable of its environment.
pub struct ProgramArgument {
    /// The program: the names of its images, without registry and tag.
    pub images: &'static [&'static str],
    /// The argument, without its dashes.
    pub name: &'static str,
}

/// A cloud's own builds of kube-proxy.
pub struct KubeProxyBuilds {
    /// The vendor's part of its versions: `vendor` in `v1.34.4-vendor.13`.
    pub vendor: Vendor,
    /// The owner, as in `kube-proxy is VENDOR's`.
    pub owner: &'static str,
    /// The name of such a build, to distinguish it from upstream's.
    pub name: &'static str,
    /// The annotation with which a Service requests that its load-balancer addresses are bound.
    pub request: &'static str,
    /// Which load-balancer addresses a version binds.
    pub binding: fn(Version) -> AddressBinding,
    /// The first build of a version's line that honours the request. Returns `None` if the
    /// history of that line is not known.
    pub first_honouring: fn(Version) -> Option<Version>,
    /// Versions that differ from each other, for random clusters.
    pub samples: &'static [&'static str],
}

/// A pod network that a cloud provides, and how to recognise it.
pub struct Network {
    /// The network.
    pub network: CloudNetwork,
    /// Its DaemonSets.
    pub agents: &'static [&'static str],
    /// Annotations of pods that ask for it, each with a part of its value.
    pub pod_annotations: &'static [(&'static str, &'static str)],
}

/// The kind of the objects that a class of Ingresses names as its parameters.
pub struct ClassParameters {
    /// `kind`.
    pub kind: &'static str,
    /// The `apiVersion`s that are read.
    pub versions: &'static [&'static str],
    /// Fields of its `spec`, each with the annotation of Ingresses that it overrides. Lists are joined
    /// with commas.
    pub fields: &'static [(&'static str, &'static str)],
}

/// The kinds of objects that say which nodes announce which addresses. `uturn-snapshot` reads their
/// fields.
pub struct AnnouncementObjects {
    /// The `apiVersion`s that are read.
    pub versions: &'static [&'static str],
    /// The `kind` of pools of addresses.
    pub pool: &'static str,
    /// The `kind`s of announcements, and how those announce.
    pub announcements: &'static [(&'static str, AnnouncedBy)],
}

impl AnnouncementObjects {
    /// Each `kind`.
    pub fn kinds(&self) -> impl Iterator<Item = &'static str> {
        std::iter::once(self.pool).chain(self.announcements.iter().map(|(kind, _)| *kind))
    }
}

/// The kind of the objects in which users set properties of listeners. `uturn-snapshot` reads
/// their fields.
pub struct OverridesObject {
    /// `kind`.
    pub kind: &'static str,
    /// The group of its `apiVersion`.
    pub group: &'static str,
    /// The `apiVersion`s that are read; the first is written.
    pub versions: &'static [&'static str],
    /// The list of listeners on layer 4 in `spec.loadBalancer`.
    pub layer_4: &'static str,
    /// The list of listeners on layer 7.
    pub layer_7: &'static str,
    /// The field that makes a listener on layer 7 replace the source if it is 1.
    pub replaced_source: OverridesField,
    /// The field that makes the health checks of a listener come from the reserved range if it is 1; on
    /// layer 4, it is in the listener's `healthCheck`.
    pub reserved_probes: OverridesField,
    /// What to set in the console if no field makes the health checks of a listener on layer 7 come
    /// from that range.
    pub reserved_probes_in_console: &'static str,
}

/// A field that a cure sets in an [`OverridesObject`].
pub struct OverridesField {
    /// Its name.
    pub name: &'static str,
    /// What the account must be permitted to do, and how to get the permission.
    pub condition: (&'static str, &'static str),
    /// Its costs in this cloud.
    pub costs: &'static [&'static str],
}
