//! The decoded objects by kind and name, before anything is derived from them.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::net::IpAddr;
use std::sync::Arc;

use uturn_document::Note;
use uturn_model::announcement::{AddressPool, Announcement};
use uturn_model::dns::{Corefile, CorefileFile};
use uturn_model::endpoints::Endpoint;
use uturn_model::lb::ListenerOverrides;
use uturn_model::network_policy::NetworkPolicy;
use uturn_model::pod::{CalledName, PodSpec};
use uturn_model::{
    ApiServerCalls, EndpointSlice, Ingress, IngressClass, IpNet, Labels, MeshGateway, MeshRoute,
    Name, NamespacedName, Node, ObjectKind, ObjectRef, Origin, Pod, Service, Skipped, Text,
    VolumeServer, Workload, WorkloadKind,
};

use super::client_traffic::ClientTrafficPolicy;
use super::cni::BridgeConfig;
use super::facts::Facts;
use super::gateway::{Gateway, GatewayClass, ReferenceGrant};
use super::gateway_route::Route;
use super::istio::ProxyFilter;
use super::nginx_proxy::NginxProxy;
use super::proxy_config::ProxyConfig;
use super::workload::{Autoscaling, Reference};
use super::{Doc, announcement};
use crate::listing::Listing;

/// All decoded objects and facts.
#[derive(Clone, Debug, Default)]
pub(crate) struct Objects {
    pub(crate) nodes: Table<Name, Node>,
    pub(crate) pods: Table<NamespacedName, Pod>,
    /// The spec that was read last of each owner's pods.
    pub(super) specs: HashMap<ObjectRef, Arc<PodSpec>>,
    /// Pods without a status, which no cluster has run yet.
    pub(crate) written_pods: Vec<NamespacedName>,
    /// The addresses of nodes, taken from the status of pods that run on them.
    pub(crate) host_addresses: BTreeMap<Name, Vec<IpAddr>>,
    pub(crate) workloads: Table<(WorkloadKind, NamespacedName), Workload>,
    /// Workloads whose manifests do not state a number of replicas.
    pub(crate) unscaled: BTreeSet<(WorkloadKind, NamespacedName)>,
    /// The minimum number of pods that an autoscaler keeps for a workload.
    pub(crate) autoscaled: BTreeMap<(WorkloadKind, NamespacedName), Autoscaling>,
    /// Jobs with indexed completion, whose pods are numbered.
    pub(crate) indexed: BTreeSet<(WorkloadKind, NamespacedName)>,
    /// The ordinal of a StatefulSet's first pod, unless it is zero.
    pub(crate) first_numbers: BTreeMap<NamespacedName, u32>,
    /// Workloads that take their pod template from another workload.
    pub(crate) references: Vec<Reference>,
    pub(crate) services: Table<NamespacedName, Service>,
    /// Services from manifests, which no API server returned.
    pub(crate) written_services: BTreeSet<NamespacedName>,
    /// The namespaces of custom resources from manifests, which no API server returned.
    pub(crate) awaited: BTreeSet<Name>,
    pub(crate) slices: Table<NamespacedName, EndpointSlice>,
    pub(crate) endpoints: Table<NamespacedName, OldEndpoints>,
    pub(crate) ingresses: Table<NamespacedName, Ingress>,
    pub(crate) ingress_classes: Table<Name, IngressClass>,
    /// The settings of classes as labels, named like the annotations that have the same effect.
    pub(crate) class_parameters: BTreeMap<(&'static str, Name), Labels>,
    /// The holders of Leases whose holder identity is a name.
    pub(crate) leases: BTreeMap<NamespacedName, Name>,
    /// The pools of addresses. [`Self::announcements`] has the nodes that announce them.
    pub(crate) pools: Table<announcement::Key, AddressPool>,
    pub(crate) announcements: Table<announcement::Key, Announcement>,
    pub(crate) gateway_classes: Table<Name, GatewayClass>,
    pub(crate) gateways: Table<NamespacedName, Gateway>,
    /// HTTPRoutes and TCPRoutes.
    pub(crate) routes: Table<(ObjectKind, NamespacedName), Route>,
    pub(crate) reference_grants: Table<NamespacedName, ReferenceGrant>,
    pub(crate) client_traffic_policies: Table<NamespacedName, ClientTrafficPolicy>,
    pub(crate) nginx_proxies: Table<NamespacedName, NginxProxy>,
    pub(crate) listener_overrides: Table<NamespacedName, ListenerOverrides>,
    pub(crate) network_policies: Table<NamespacedName, NetworkPolicy>,
    pub(crate) namespaces: Table<Name, Namespace>,
    /// The objects because of which the API server calls Services.
    pub(crate) api_server_calls: Table<(ObjectKind, Name), ApiServerCalls>,
    pub(crate) volume_servers: Table<Name, VolumeServer>,
    /// Every ConfigMap that was read, to detect duplicates.
    pub(crate) config_maps: Table<NamespacedName, ConfigMap>,
    /// The texts of ConfigMaps that may be configurations of nginx.
    pub(crate) configurations: BTreeMap<NamespacedName, Vec<(Text, Text)>>,
    /// The data of ConfigMaps that may hold the settings of a controller. The field below has the
    /// names of all other ConfigMaps.
    pub(crate) controller_settings: BTreeMap<NamespacedName, Labels>,
    pub(crate) other_config_maps: BTreeSet<NamespacedName>,
    /// The names that entries of ConfigMaps call, by key.
    pub(crate) called_in_maps: BTreeMap<NamespacedName, Vec<(Text, Vec<CalledName>)>>,
    /// The entries of ConfigMaps that have a Corefile or parts of one.
    pub(crate) corefiles: BTreeMap<NamespacedName, Vec<ConfigEntry>>,
    pub(crate) corefile: Option<Corefile>,
    /// The ConfigMap that CoreDNS mounts, and the key of its Corefile.
    pub(crate) mounted_corefile: Option<(NamespacedName, Text)>,
    pub(crate) corefile_custom: Vec<CorefileFile>,
    pub(crate) node_local: Option<Corefile>,
    /// The name servers that configurations of kubelets give to pods, in the order of their names.
    pub(crate) kubelet_dns: BTreeMap<NamespacedName, Vec<IpAddr>>,
    pub(crate) proxy_config: Option<ProxyConfig>,
    /// The settings of the pods' bridge in configurations of CNI plugins.
    pub(crate) bridges: Vec<BridgeConfig>,
    /// The backend that flannel's configuration names.
    pub(crate) flannel_backend: Option<(Text, Origin)>,
    /// The data of Cilium's ConfigMap, and its place.
    pub(crate) cilium_config: Option<(Labels, Origin)>,
    /// The place of the setting that has Calico serve Services by eBPF.
    pub(crate) calico_ebpf: Option<Origin>,
    /// The Gateways of a service mesh.
    pub(crate) mesh_gateways: Table<NamespacedName, MeshGateway>,
    /// The hosts of a service mesh's routes, and the Gateways that read them.
    pub(crate) mesh_routes: Table<NamespacedName, MeshRoute>,
    /// EnvoyFilters that decide whether a gateway expects PROXY headers.
    pub(crate) proxy_filters: Vec<ProxyFilter>,
    /// Whether the settings of a mesh make all of its gateways expect a PROXY header.
    pub(crate) gateways_expect_header: bool,
    pub(crate) non_masquerade: Option<(Vec<IpNet>, Origin)>,
    pub(crate) controller_switches: Labels,
    /// Whether the cloud's agent is asked to enforce NetworkPolicies, and where.
    pub(crate) policy_switch: Option<(bool, Origin)>,
    pub(crate) facts: Facts,
    /// Oddities of the texts, and how they were read.
    pub(crate) notes: Vec<Note>,
    /// Whether the input is stated to describe the whole cluster.
    pub(crate) complete: bool,
    /// The kinds that an API server returned in full, and the objects that it did not return.
    pub(crate) listing: Listing,
    pub(super) skipped: BTreeMap<Text, usize>,
    /// Documents that are not objects, by description: their number and their files.
    pub(super) left_out: BTreeMap<Text, (usize, BTreeSet<Text>)>,
    /// The number of needed objects that were read, by kind.
    pub(crate) seen: BTreeMap<Text, usize>,
}

impl Objects {
    /// Iterates over the endpoints of all EndpointSlices and Endpoints objects.
    pub(crate) fn given_endpoints(&self) -> impl Iterator<Item = &Endpoint> {
        let old = self.endpoints.0.values().flat_map(|old| &old.slices);
        self.slices.0.values().chain(old).flat_map(|slice| &slice.endpoints)
    }

    /// Returns a pod's spec, which the pods of one owner share as long as theirs are equal: a
    /// cluster has far more pods than templates.
    pub(crate) fn share_spec(&mut self, owner: Option<&ObjectRef>, spec: PodSpec) -> Arc<PodSpec> {
        let Some(owner) = owner else { return spec.into() };
        match self.specs.get_mut(owner) {
            Some(known) if **known == spec => {}
            Some(known) => *known = spec.into(),
            None => drop(self.specs.insert(owner.clone(), spec.into())),
        }
        Arc::clone(&self.specs[owner])
    }

    /// Forgets which specs are shared, when all pods are read.
    pub(crate) fn forget_specs(&mut self) {
        self.specs = HashMap::new();
    }

    /// Counts an object that the analysis does not need.
    pub(crate) fn skip(&mut self, what: &str) {
        match self.skipped.get_mut(what) {
            Some(count) => *count += 1,
            None => drop(self.skipped.insert(what.into(), 1)),
        }
    }

    /// Counts a document that is not an object.
    pub(crate) fn leave_out(&mut self, what: &str, file: &Text) {
        let (count, files) = self.left_out.entry(what.into()).or_default();
        *count += 1;
        files.insert(file.clone());
    }

    /// Counts an object that the analysis needs.
    pub(crate) fn see(&mut self, kind: &str) {
        match self.seen.get_mut(kind) {
            Some(count) => *count += 1,
            None => drop(self.seen.insert(kind.into(), 1)),
        }
    }

    pub(crate) fn skipped(&self) -> Vec<Skipped> {
        let counted = self.skipped.iter().map(|(kind, count)| {
            let files = Vec::new();
            Skipped { kind: kind.clone(), count: *count, files }
        });
        let others = self.left_out.iter().map(|(what, (count, files))| {
            let files = files.iter().cloned().collect();
            Skipped { kind: what.clone(), count: *count, files }
        });
        counted.chain(others).collect()
    }

    /// Returns whether no object at all was read, needed or not.
    pub(crate) fn has_none(&self) -> bool {
        self.seen.is_empty() && self.skipped.is_empty()
    }

    /// Returns whether all objects of a kind are given. `kind` is its plural, as in
    /// [`Listing::unread`].
    pub(crate) fn has_all(&self, kind: &str) -> bool {
        let mut unread = self.listing.unread.iter();
        let is_listed =
            self.listing.extent.is_some() && !unread.any(|unread| unread.what.contains(kind));
        self.complete || is_listed
    }

    /// Returns whether there is any object that needs nodes.
    pub(crate) fn need_nodes(&self) -> bool {
        !(self.workloads.0.is_empty()
            && self.pods.0.is_empty()
            && self.services.0.is_empty()
            && self.ingresses.0.is_empty())
    }

    /// Returns whether no object was read that the analysis needs.
    pub(crate) fn is_empty(&self) -> bool {
        self.seen.is_empty()
    }
}

/// The objects of one kind by name, and the names that were defined more than once with different
/// contents.
#[derive(Clone, Debug)]
pub(crate) struct Table<K, V>(pub(crate) BTreeMap<K, V>, pub(crate) BTreeSet<K>);

impl<K, V> Default for Table<K, V> {
    fn default() -> Self {
        Self(BTreeMap::new(), BTreeSet::new())
    }
}

impl<K: Ord + Clone, V: Object> Table<K, V> {
    /// Adds an object. It replaces an earlier one of the same name, as if both were applied in
    /// order, and the duplicate is reported with both places.
    pub(crate) fn add(&mut self, doc: &Doc<'_>, key: K, object: V) {
        let mut place = match self.0.entry(key) {
            Entry::Vacant(place) => {
                place.insert(object);
                return;
            }
            Entry::Occupied(place) => place,
        };
        let called = object.called();
        if place.get().differs(&object) {
            self.1.insert(place.key().clone());
        }
        let first = place.insert(object);
        let kind = doc.root.get("kind").and_then(|kind| kind.as_str()).unwrap_or(V::KIND);
        doc.twice(&format!("{kind} {called}"), first.origin());
    }
}

/// An object that a [`Table`] can hold.
pub(crate) trait Object {
    const KIND: &'static str;
    fn called(&self) -> String;
    fn origin(&self) -> &Origin;
    /// Returns whether another object of the same name differs, apart from its place.
    fn differs(&self, other: &Self) -> bool;
}

macro_rules! objects {
    ($($type:ident: $kind:literal),* $(,)?) => {$(
        impl Object for $type {
            fn differs(&self, other: &Self) -> bool {
                let here = $type { origin: other.origin.clone(), ..self.clone() };
                here != *other
            }

            const KIND: &'static str = $kind;

            fn called(&self) -> String {
                self.name.to_string()
            }

            fn origin(&self) -> &Origin {
                &self.origin
            }
        }
    )*};
}

objects!(
    Node: "Node",
    Pod: "Pod",
    Workload: "Workload",
    Service: "Service",
    EndpointSlice: "EndpointSlice",
    OldEndpoints: "Endpoints",
    Ingress: "Ingress",
    IngressClass: "IngressClass",
    GatewayClass: "GatewayClass",
    Gateway: "Gateway",
    Route: "Route",
    ReferenceGrant: "ReferenceGrant",
    ClientTrafficPolicy: "ClientTrafficPolicy",
    NginxProxy: "NginxProxy",
    ListenerOverrides: "an object with listeners",
    NetworkPolicy: "NetworkPolicy",
    Namespace: "Namespace",
    MeshGateway: "Gateway",
    MeshRoute: "VirtualService",
    ApiServerCalls: "an object with calls of the API server",
    VolumeServer: "PersistentVolume",
    AddressPool: "a pool of addresses",
    Announcement: "an announcement of addresses",
    ConfigMap: "ConfigMap",
);

/// An Endpoints object, converted to the EndpointSlices that it stands for.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct OldEndpoints {
    pub(crate) name: NamespacedName,
    pub(crate) slices: Vec<EndpointSlice>,
    pub(crate) origin: Origin,
}

/// A Namespace, of which only the labels are needed.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Namespace {
    pub(crate) name: Name,
    pub(crate) labels: Labels,
    pub(crate) origin: Origin,
}

/// An entry of a ConfigMap: its key, its text, and where the text was written.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ConfigEntry {
    pub(crate) key: Text,
    pub(crate) text: Text,
    pub(crate) origin: Origin,
}

/// A ConfigMap that was read.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ConfigMap {
    pub(crate) name: NamespacedName,
    pub(crate) origin: Origin,
}
