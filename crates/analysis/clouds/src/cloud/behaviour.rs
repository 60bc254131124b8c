//! The interface of a cloud to code outside its folder.

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

/// How a cloud's controllers and load balancers behave.
pub trait CloudModel: Sync {
    /// Describes a trace that only this cloud leaves in a cluster, beyond those of its
    /// [`Markers`](super::Markers). Returns `None` if there is none.
    fn recognise(&self, observed: &Observed<'_>) -> Option<String>;

    /// Whether its controllers read annotations with this key.
    fn reads(&self, key: &str) -> bool;

    /// Whether its controller serves an Ingress.
    fn serves_ingress(&self, ingress: &Ingress, classes: &BTreeMap<Name, IngressClass>) -> bool;

    /// Which load balancer a Service or an Ingress asks for.
    fn request(&self, owner: Owner<'_>) -> BalancerRequest;

    /// The listeners that its controller makes for a Service, with their targets of a
    /// family.
    fn service_listeners(
        &self,
        cluster: &Cluster,
        service: &Service,
        family: Family,
    ) -> Vec<Listener>;

    /// The listeners that its controller makes for an Ingress, with their targets of a
    /// family.
    fn ingress_listeners(
        &self,
        cluster: &Cluster,
        ingress: &Ingress,
        family: Family,
    ) -> Vec<Listener>;

    /// The listeners that an Ingress asks for, HTTP before HTTPS.
    fn wanted_listeners<'i>(&self, ingress: &'i Ingress) -> Vec<WantedListener<'i>>;

    /// The annotations of an Ingress that cannot be read, each with what was expected.
    fn unreadable(&self, ingress: &Ingress) -> Vec<(&'static str, &'static str)>;

    /// The labels that a node must have to be a target of a Service's load balancer, as they
    /// are written. Returns `None` if the Service does not restrict its nodes by label.
    fn target_label<'s>(&self, service: &'s Service) -> Option<&'s str>;

    /// The value with which an object sets weights of single pods. Returns `None` if it sets none.
    fn pod_weights<'o>(&self, owner: Owner<'o>) -> Option<&'o str>;

    /// The weights that an object gives a pod, for each place where it names weights.
    fn weights_of_pod(&self, owner: Owner<'_>, pod: &str) -> Vec<u64>;

    /// The readiness gate of a pod that a load balancer sends to before the pod is ready. Returns
    /// `None` if there is no such gate.
    fn readiness_gate(&self) -> Option<&'static str>;

    /// Whether a node is never a target.
    fn excludes_node(&self, node: &Node) -> bool;

    /// The nodes whose NodePorts are targets of a Service's load balancer.
    fn target_nodes<'c>(&self, cluster: &'c Cluster, service: &Service) -> Vec<&'c Node>;

    /// How a load balancer of this cloud behaves of which nothing is configured.
    fn plain_profile(&self, layer: Layer) -> Profile;

    /// The range that a listener sends from when it replaces the client's address.
    fn replaced_source(&self) -> IpNet;

    /// The ranges that health checks come from when they do not come from the load balancer's
    /// own address. Security groups let them in.
    fn probe_ranges(&self) -> ProbeRanges;

    /// Where users set properties of the listeners of a Service or an Ingress.
    fn overrides_place(&self, owner: Owner<'_>) -> OverridesPlace;

    /// What users set on the listener of a Service or an Ingress with this port and protocol.
    fn listener_override<'c>(
        &self,
        cluster: &'c Cluster,
        owner: Owner<'_>,
        listener: (Port, ListenerProtocol),
    ) -> Option<&'c ListenerOverride>;

    /// The key of the annotation with which a Service or an Ingress requests a setting. Returns `None`
    /// if this cloud has no such annotation.
    fn annotation(&self, setting: Setting, of: SettingOf) -> Option<&'static str>;
}

/// The object that a load balancer is made for.
#[derive(Clone, Copy, Debug)]
pub enum Owner<'a> {
    /// A Service of type LoadBalancer.
    Service(&'a Service),
    /// An Ingress.
    Ingress(&'a Ingress),
}

impl<'a> Owner<'a> {
    /// Its name.
    pub fn name(self) -> &'a NamespacedName {
        match self {
            Self::Service(service) => &service.name,
            Self::Ingress(ingress) => &ingress.name,
        }
    }

    /// Its annotations.
    pub fn annotations(self) -> &'a Labels {
        match self {
            Self::Service(service) => &service.annotations,
            Self::Ingress(ingress) => &ingress.annotations,
        }
    }

    /// The addresses and names of its load balancer.
    pub fn status(self) -> &'a [LbIngress] {
        match self {
            Self::Service(service) => &service.load_balancer,
            Self::Ingress(ingress) => &ingress.load_balancer,
        }
    }

    /// A reference to it.
    pub fn object(self) -> ObjectRef {
        match self {
            Self::Service(service) => service.object(),
            Self::Ingress(ingress) => ingress.object(),
        }
    }

    /// Which of the two it is.
    pub fn kind(self) -> SettingOf {
        match self {
            Self::Service(_) => SettingOf::Service,
            Self::Ingress(_) => SettingOf::Ingress,
        }
    }
}

/// Which load balancer an object asks for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BalancerRequest {
    /// The existing load balancer that an annotation names.
    pub existing: Option<Text>,
    /// Whether an annotation asks for one that is reachable from the private network only.
    pub is_private: bool,
    /// The subnet that a private one gets its address from.
    pub subnet: Option<Text>,
}

/// Where users set properties of an object's listeners.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OverridesPlace {
    /// The name of the object that sets them.
    pub name: String,
    /// The annotation that enables it if set to `true`; `None` if one is set already.
    pub switch: Option<&'static str>,
}

/// What an annotation can request of a cloud's controller or its kube-proxy.
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
    /// Each rule is served where two lists name it.
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

/// The objects of a cluster on which clouds leave marks.
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
    /// The switches of a cloud's controller.
    pub controller_switches: &'a Labels,
}
