//! The interface between a cloud's folder and the code outside it.

use std::collections::BTreeMap;
use uturn_model::lb::{
    Layer, Listener, ListenerOverride, ListenerOverrides, ListenerProtocol, ProbeRanges, Profile,
};
use uturn_model::service::LbIngress;
use uturn_model::{
    Cluster, Family, Ingress, IngressClass, IpNet, Labels, Name, NamespacedName, Node, ObjectRef,
    Port, Service, Text,
};

use super::WantedListener;

/// The behaviour of a cloud's controllers and load balancers.
pub trait CloudModel: Sync {
    /// Describes a trace that only this cloud leaves in a cluster, beyond those of its
    /// [`Markers`](super::Markers). Returns `None` if there is none.
    fn recognise(&self, observed: &Observed<'_>) -> Option<String>;

    /// Returns whether the cloud's controllers read annotations with this key.
    fn reads(&self, key: &str) -> bool;

    /// Returns whether the cloud's controller serves an Ingress.
    fn serves_ingress(&self, ingress: &Ingress, classes: &BTreeMap<Name, IngressClass>) -> bool;

    /// Returns the properties of the load balancer that a Service or an Ingress asks for.
    fn request(&self, owner: Owner<'_>) -> BalancerRequest;

    /// Returns the listeners that the cloud's controller makes for a Service, with their targets of
    /// a family.
    fn service_listeners(
        &self,
        cluster: &Cluster,
        service: &Service,
        family: Family,
    ) -> Vec<Listener>;

    /// Returns the listeners that the cloud's controller makes for an Ingress, with their targets
    /// of a family.
    fn ingress_listeners(
        &self,
        cluster: &Cluster,
        ingress: &Ingress,
        family: Family,
    ) -> Vec<Listener>;

    /// Returns the listeners that an Ingress asks for, HTTP before HTTPS.
    fn wanted_listeners<'i>(&self, ingress: &'i Ingress) -> Vec<WantedListener<'i>>;

    /// Returns the annotations of an Ingress whose values cannot be read, each with a description
    /// of the expected value.
    fn unreadable(&self, ingress: &Ingress) -> Vec<(&'static str, &'static str)>;

    /// Returns the labels that a node must have to be a target of a Service's load balancer, as
    /// they are written. Returns `None` if the Service does not restrict its nodes by label.
    fn target_label<'s>(&self, service: &'s Service) -> Option<&'s str>;

    /// Returns the value of the annotation with which an object sets weights of single pods.
    /// Returns `None` if the object sets none.
    fn pod_weights<'o>(&self, owner: Owner<'o>) -> Option<&'o str>;

    /// Returns the weights that an object gives a pod, for each place where it names weights.
    fn weights_of_pod(&self, owner: Owner<'_>, pod: &str) -> Vec<u64>;

    /// Returns the readiness gate of a pod that a load balancer sends to before the pod is ready.
    /// Returns `None` if there is no such gate.
    fn readiness_gate(&self) -> Option<&'static str>;

    /// Returns whether a node is never a target.
    fn excludes_node(&self, node: &Node) -> bool;

    /// Returns the nodes whose NodePorts are targets of a Service's load balancer.
    fn target_nodes<'c>(&self, cluster: &'c Cluster, service: &Service) -> Vec<&'c Node>;

    /// Returns the behaviour of a load balancer of this cloud with the default configuration.
    fn plain_profile(&self, layer: Layer) -> Profile;

    /// Returns the range of addresses from which a listener sends if it replaces the client's
    /// address.
    fn replaced_source(&self) -> IpNet;

    /// Returns the ranges from which health checks come if they do not come from the load
    /// balancer's own address. Security groups let them in.
    fn probe_ranges(&self) -> ProbeRanges;

    /// Returns the security groups that an object gives its load balancer, as a list with commas.
    fn security_groups<'o>(&self, owner: Owner<'o>) -> Option<&'o str>;

    /// Returns the place where users set properties of the listeners of a Service or an Ingress.
    fn overrides_place(&self, owner: Owner<'_>) -> OverridesPlace;

    /// Returns the properties that users set on the listener of a Service or an Ingress with this
    /// port and protocol.
    fn listener_override<'c>(
        &self,
        cluster: &'c Cluster,
        owner: Owner<'_>,
        listener: (Port, ListenerProtocol),
    ) -> Option<&'c ListenerOverride>;

    /// Returns the key of the annotation with which a Service or an Ingress requests a setting.
    /// Returns `None` if this cloud has no such annotation.
    fn annotation(&self, setting: Setting, of: SettingOf) -> Option<&'static str>;
}

/// The object for which a load balancer is made.
#[derive(Clone, Copy, Debug)]
pub enum Owner<'a> {
    /// A Service of type LoadBalancer.
    Service(&'a Service),
    /// An Ingress.
    Ingress(&'a Ingress),
}

impl<'a> Owner<'a> {
    /// Returns the name of the object.
    pub fn name(self) -> &'a NamespacedName {
        match self {
            Self::Service(service) => &service.name,
            Self::Ingress(ingress) => &ingress.name,
        }
    }

    /// Returns the annotations of the object.
    pub fn annotations(self) -> &'a Labels {
        match self {
            Self::Service(service) => &service.annotations,
            Self::Ingress(ingress) => &ingress.annotations,
        }
    }

    /// Returns the addresses and names of the object's load balancer.
    pub fn status(self) -> &'a [LbIngress] {
        match self {
            Self::Service(service) => &service.load_balancer,
            Self::Ingress(ingress) => &ingress.load_balancer,
        }
    }

    /// Returns a reference to the object.
    pub fn object(self) -> ObjectRef {
        match self {
            Self::Service(service) => service.object(),
            Self::Ingress(ingress) => ingress.object(),
        }
    }

    /// Returns the kind of the object.
    pub fn kind(self) -> SettingOf {
        match self {
            Self::Service(_) => SettingOf::Service,
            Self::Ingress(_) => SettingOf::Ingress,
        }
    }
}

/// The properties of the load balancer that an object asks for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BalancerRequest {
    /// The existing load balancer that an annotation names.
    pub existing: Option<Text>,
    /// Whether an annotation asks for a load balancer that is reachable from the private network
    /// only.
    pub is_private: bool,
    /// The subnet from which a private load balancer gets its address.
    pub subnet: Option<Text>,
}

/// The place where users set properties of an object's listeners.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OverridesPlace {
    /// The name of the object in which the properties are set.
    pub name: String,
    /// The annotation that enables that object if set to `true`; `None` if one is set already.
    pub switch: Option<&'static str>,
}

/// A setting that an annotation can request from a cloud's controller or its kube-proxy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Setting {
    /// kube-proxy binds the load-balancer addresses.
    AddressBinding,
    /// Pods are the targets, not NodePorts.
    PodTargets,
    /// Under policy Local, only nodes with a ready pod are targets.
    NodesWithPods,
    /// Only nodes with these labels are targets.
    NodeLabels,
    /// The protocols of the listeners of a Service's ports.
    Protocols,
    /// The object in which properties of listeners are set.
    Overrides,
    /// HTTP redirects to HTTPS wherever a rule is served with HTTPS.
    RedirectToHttps,
    /// Whether redirects are made at all.
    Redirects,
    /// Every rule is served with HTTP and with HTTPS.
    BothProtocols,
    /// Each rule is served with the protocols whose lists name it: one list for HTTP, one for
    /// HTTPS.
    MixedProtocols,
    /// The rules that are served with HTTP.
    HttpRules,
    /// The rules that are served with HTTPS.
    HttpsRules,
}

/// The kind of object that has an annotation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SettingOf {
    /// A Service.
    Service,
    /// An Ingress.
    Ingress,
}

/// The objects of a cluster on which clouds leave markers.
#[derive(Clone, Copy, Debug)]
pub struct Observed<'a> {
    /// The image of kube-proxy.
    pub kube_proxy_image: Option<&'a str>,
    /// Nodes by name.
    pub nodes: &'a BTreeMap<Name, Node>,
    /// Services by name.
    pub services: &'a BTreeMap<NamespacedName, Service>,
    /// Ingresses by name.
    pub ingresses: &'a BTreeMap<NamespacedName, Ingress>,
    /// Objects in which properties of listeners are set.
    pub overrides: &'a BTreeMap<NamespacedName, ListenerOverrides>,
    /// The feature switches of a cloud's controller.
    pub controller_switches: &'a Labels,
}
