//! The cluster: everything that is known about it.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::cloud::Cloud;
use crate::dns::Dns;
use crate::lb::{ListenerOverrides, LoadBalancerFact};
use crate::network::{Network, SecurityGroup};
use crate::network_policy::NetworkPolicies;
use crate::{
    Announcements, ApiServerCalls, Assumption, Capture, EndpointSlice, Extent, Ingress,
    IngressClass, IngressController, Known, Labels, MeshGateway, MeshRoute, Name, NamespacedName,
    Node, ObjectKind, ObjectRef, Pod, ProxyExpectation, ProxySettings, Service, Text, Unjudged,
    VolumeServer, Workload, WorkloadKind,
};

/// Everything that is known about a cluster.
#[derive(Clone, Debug, PartialEq)]
pub struct Cluster {
    /// The cloud that it runs in.
    pub provider: Known<Provider>,
    /// Nodes by name.
    pub nodes: BTreeMap<Name, Node>,
    /// Pods by name.
    pub pods: BTreeMap<NamespacedName, Pod>,
    /// Workloads by kind and name.
    pub workloads: BTreeMap<(WorkloadKind, NamespacedName), Workload>,
    /// Services by name.
    pub services: BTreeMap<NamespacedName, Service>,
    /// Slices by the Service they belong to.
    pub endpoints: BTreeMap<NamespacedName, Vec<EndpointSlice>>,
    /// Ingresses by name.
    pub ingresses: BTreeMap<NamespacedName, Ingress>,
    /// Ingress classes by name.
    pub ingress_classes: BTreeMap<Name, IngressClass>,
    /// The controllers whose pods serve Ingresses.
    pub controllers: Vec<IngressController>,
    /// Objects in which users set properties of listeners, by name.
    pub listener_overrides: BTreeMap<NamespacedName, ListenerOverrides>,
    /// The load balancers that Facts state.
    pub load_balancers: Vec<LoadBalancerFact>,
    /// The network around the nodes.
    pub network: Network,
    /// Security groups by name.
    pub security_groups: BTreeMap<Text, SecurityGroup>,
    /// Its DNS configuration.
    pub dns: Dns,
    /// The settings of kube-proxy.
    pub proxy: ProxySettings,
    /// The feature switches of the cloud's controller, from its ConfigMap.
    pub controller_switches: Labels,
    /// The arguments of programs that make load balancers, if they affect the load balancers'
    /// behaviour: the cloud's word, a slash and the argument's name.
    pub balancer_arguments: Labels,
    /// The nodes that announce addresses, if objects state it.
    pub announcements: Announcements,
    /// The Gateways of a service mesh.
    pub mesh_gateways: Vec<MeshGateway>,
    /// The routes of a service mesh.
    pub mesh_routes: Vec<MeshRoute>,
    /// The NetworkPolicies.
    pub network_policies: Arc<NetworkPolicies>,
    /// The objects because of which the API server calls Services.
    pub api_server_calls: Vec<ApiServerCalls>,
    /// The servers of PersistentVolumes.
    pub volume_servers: Vec<VolumeServer>,
    /// The captures by node.
    pub captures: BTreeMap<Name, Capture>,
    /// The kinds of objects that are given completely.
    pub extent: Extent,
    /// Namespaces with custom resources that are still to be applied: their operators may create
    /// Services and pods there.
    pub awaited: BTreeSet<Name>,
    /// The reasons why flows cannot be judged, by cause.
    pub unjudged: Vec<Unjudged>,
    /// The assumptions about what is not stated.
    pub supposed: Vec<Assumption>,
    /// The kinds of objects that were read but not used, with their counts.
    pub skipped: Vec<Skipped>,
    /// The objects that an API server did not return.
    pub unread: Vec<Unread>,
    /// The time at which an API server returned the objects. `None` if it is not known.
    pub read_at: Option<ReadTime>,
}

impl Cluster {
    /// Makes a cluster without objects.
    pub fn new(provider: Known<Provider>, network: Network, proxy: ProxySettings) -> Self {
        Self {
            provider,
            nodes: BTreeMap::new(),
            pods: BTreeMap::new(),
            workloads: BTreeMap::new(),
            services: BTreeMap::new(),
            endpoints: BTreeMap::new(),
            ingresses: BTreeMap::new(),
            ingress_classes: BTreeMap::new(),
            controllers: Vec::new(),
            listener_overrides: BTreeMap::new(),
            load_balancers: Vec::new(),
            network,
            security_groups: BTreeMap::new(),
            dns: Dns::default(),
            proxy,
            controller_switches: Labels::new(),
            balancer_arguments: Labels::new(),
            announcements: Announcements::default(),
            mesh_gateways: Vec::new(),
            mesh_routes: Vec::new(),
            network_policies: Arc::new(NetworkPolicies::none()),
            api_server_calls: Vec::new(),
            volume_servers: Vec::new(),
            captures: BTreeMap::new(),
            extent: Extent::default(),
            awaited: BTreeSet::new(),
            unjudged: Vec::new(),
            supposed: Vec::new(),
            skipped: Vec::new(),
            unread: Vec::new(),
            read_at: None,
        }
    }

    /// Returns whether a Service that is not given may exist, or will.
    pub fn may_have_service(&self, name: &NamespacedName) -> bool {
        !self.extent.services || self.awaited.contains(&name.namespace)
    }

    /// Returns the cluster as a node's kube-proxy sees it: complete, unless Facts state that
    /// Services are not programmed.
    pub fn programmed_on(&self, node: &Node) -> Cow<'_, Self> {
        if node.unprogrammed.is_empty() {
            return Cow::Borrowed(self);
        }
        let mut cluster = self.clone();
        cluster.services.retain(|name, _| !node.unprogrammed.contains(name));
        Cow::Owned(cluster)
    }

    /// Returns the pods that a Service selects and that have not ended.
    pub fn selected(&self, service: &Service) -> Vec<&Pod> {
        let Some(selector) = &service.selector else { return Vec::new() };
        let pods = self.pods.values().filter(|pod| pod.is_alive());
        pods.filter(|pod| pod.name.namespace == service.name.namespace)
            .filter(|pod| selector.matches(&pod.spec.labels))
            .collect()
    }

    /// Returns the controller to which a pod belongs, if the pod accepts requests for one.
    pub fn controller_of(&self, pod: &Pod) -> Option<&IngressController> {
        self.controllers.iter().find(|controller| controller.has_pod(pod))
    }

    /// Returns the Ingress that owns a rule; of a route, the first that represents it.
    pub fn ingress_of(&self, owner: &ObjectRef) -> Option<&Ingress> {
        match owner.kind {
            ObjectKind::Ingress => self.ingresses.get(&owner.namespaced_name()?),
            kind if kind.is_route() => {
                let is_it = |ingress: &&Ingress| {
                    ingress.route.as_ref().is_some_and(|route| route.object == *owner)
                };
                self.ingresses.values().find(is_it)
            }
            _ => None,
        }
    }

    /// Returns the controller in the cluster whose pods serve an Ingress.
    pub fn controller_for(&self, ingress: &Ingress) -> Option<&IngressController> {
        let workload = ingress.controller.as_ref()?;
        self.controllers.iter().find(|controller| controller.workload == *workload)
    }

    /// Returns whether a pod expects a PROXY header on one of its ports. Returns `None` if this is
    /// not known: the pod is no controller's, or accepts no requests there.
    pub fn proxy_expectation(&self, pod: &Pod, port: u16) -> Option<&ProxyExpectation> {
        Some(&self.controller_of(pod)?.listener(port)?.proxy_header)
    }

    /// Returns the name of the API server's own Service.
    pub fn api_server() -> NamespacedName {
        NamespacedName::new("default", "kubernetes").expect("a constant name")
    }

    /// Returns the slices of the API server's own Service.
    pub fn api_server_slices(&self) -> &[EndpointSlice] {
        self.slices(&Self::api_server())
    }

    /// Returns every slice of a Service.
    pub fn slices(&self, service: &NamespacedName) -> &[EndpointSlice] {
        self.endpoints.get(service).map_or(&[], Vec::as_slice)
    }

    /// Estimates the number of rules that lead to the endpoints of a Service, on all nodes
    /// together.
    pub fn rules_to(&self, service: &NamespacedName) -> usize {
        let slices = self.slices(service).iter();
        let endpoints: usize = slices.map(|slice| slice.endpoints.len() * slice.ports.len()).sum();
        self.nodes.len().saturating_mul(endpoints)
    }

    /// Estimates the number of rules that lead to the endpoints of all Services.
    pub fn rules_to_endpoints(&self) -> usize {
        let rules = self.endpoints.keys().map(|service| self.rules_to(service));
        rules.fold(0, usize::saturating_add)
    }

    /// Returns every pod on a node.
    pub fn pods_on<'a>(&'a self, node: &'a Name) -> impl Iterator<Item = &'a Pod> {
        self.pods.values().filter(move |pod| pod.node.as_ref() == Some(node))
    }
}

/// The cloud of a cluster. It determines how load balancers behave unless a more specific statement
/// does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Provider {
    /// A cloud, or a program in place of one.
    Cloud(Cloud),
    /// Not known: something in the cluster needs a load balancer, and nothing names a cloud.
    Unknown,
    /// None: nothing makes load balancers, or nothing needs one.
    None,
}

impl Provider {
    /// Returns the cloud's name. Returns `None` if the cloud is not known or there is none.
    pub fn name(self) -> Option<&'static str> {
        self.cloud().map(Cloud::name)
    }

    /// Returns the cloud. Returns `None` if it is not known or there is none.
    pub fn cloud(self) -> Option<Cloud> {
        match self {
            Self::Cloud(cloud) => Some(cloud),
            Self::Unknown | Self::None => None,
        }
    }
}

impl std::fmt::Display for Provider {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Cloud(cloud) => cloud.word(),
            Self::Unknown => "unknown",
            Self::None => "none",
        })
    }
}

/// The time at which objects were read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadTime {
    /// The beginning, as RFC 3339.
    pub begun: Text,
    /// The end, as RFC 3339.
    pub ended: Text,
}

/// Objects that an API server did not return: it is not even known whether there are any.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Unread {
    /// The objects: `Pods`, `ConfigMap kube-system/coredns`.
    pub what: Text,
    /// The objects that are known nevertheless: `none`, `only those of namespace shop`.
    pub known: Text,
    /// The reason why they could not be read, in the API server's words.
    pub why: Text,
}

impl Unread {
    /// Returns whether the reader lacks the permission, by the API server's words.
    pub fn is_forbidden(&self) -> bool {
        self.why.contains(" is forbidden: ")
    }

    /// Merges kinds that the API server forbids and of which the same is known.
    pub fn grouped(all: &[Self]) -> Vec<Self> {
        let is_refused = Self::is_forbidden;
        let mut groups: Vec<Vec<&Self>> = Vec::new();
        for unread in all {
            let alike = groups.iter_mut().find(|group| {
                group[0].known == unread.known && is_refused(group[0]) && is_refused(unread)
            });
            match alike {
                Some(group) => group.push(unread),
                None => groups.push(vec![unread]),
            }
        }
        let joined = |group: Vec<&Self>| match group.as_slice() {
            [only] => (*only).clone(),
            several => {
                let what: Vec<&str> = several.iter().map(|unread| &*unread.what).collect();
                let what = what.join(", ").into();
                let why = format!("{}; the others likewise", several[0].why).into();
                Self { what, known: several[0].known.clone(), why }
            }
        };
        groups.into_iter().map(joined).collect()
    }
}

impl std::fmt::Display for Unread {
    /// Formats the objects: `Pods could not be read (none are known): pods is forbidden`
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} could not be read ({}): {}", self.what, self.known, self.why)
    }
}

/// Objects that were read but not used, and documents that are not objects.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Skipped {
    /// `apiVersion/kind`, or a description if it is not an object.
    pub kind: Text,
    /// The number of such objects.
    pub count: usize,
    /// The files of documents that are not objects.
    pub files: Vec<Text>,
}
