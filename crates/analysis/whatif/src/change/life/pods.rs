//! What controllers of endpoints do when pods go, or are not ready.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use uturn_model::{Cluster, Endpoint, Name, NamespacedName, Service};

/// The pods to which endpoints are compared.
pub(super) struct PodSet {
    names: BTreeSet<NamespacedName>,
    /// The namespaces and addresses of pods with a network of their own, for endpoints that name no pod.
    addresses: BTreeMap<IpAddr, Name>,
}

impl PodSet {
    pub(super) fn of(cluster: &Cluster, names: BTreeSet<NamespacedName>) -> Self {
        let pods = names.iter().filter_map(|name| cluster.pods.get(name));
        let own = pods.filter(|pod| !pod.spec.host_network);
        let addresses = own
            .flat_map(|pod| pod.ips.iter().map(|ip| (*ip, pod.name.namespace.clone())))
            .collect();
        Self { names, addresses }
    }

    pub(super) fn names(&self) -> &BTreeSet<NamespacedName> {
        &self.names
    }

    pub(super) fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// Returns whether an endpoint of a namespace is one of the pods.
    fn has(&self, namespace: &Name, endpoint: &Endpoint) -> bool {
        match &endpoint.pod {
            Some(pod) => self.names.contains(pod),
            None => self.addresses.get(&endpoint.address) == Some(namespace),
        }
    }
}

/// Removes pods, and their endpoints of Services whose endpoints follow pods.
pub(super) fn remove(cluster: &mut Cluster, pods: &PodSet) {
    for (service, slices) in &mut cluster.endpoints {
        if !follows_pods(cluster.services.get(service)) {
            continue;
        }
        for slice in slices {
            slice.endpoints.retain(|endpoint| !pods.has(&service.namespace, endpoint));
        }
    }
    cluster.pods.retain(|name, _| !pods.names.contains(name));
}

/// Makes pods not ready, and their endpoints of Services whose endpoints follow pods. A Service that
/// publishes addresses of pods that are not ready keeps them.
pub(super) fn make_unready(cluster: &mut Cluster, pods: &PodSet) {
    for (service, slices) in &mut cluster.endpoints {
        let own = cluster.services.get(service);
        if !follows_pods(own) || own.is_some_and(|own| own.publishes_not_ready) {
            continue;
        }
        let all = slices.iter_mut().flat_map(|slice| &mut slice.endpoints);
        for endpoint in all.filter(|endpoint| pods.has(&service.namespace, endpoint)) {
            (endpoint.ready, endpoint.serving) = (false, false);
        }
    }
    for name in &pods.names {
        if let Some(pod) = cluster.pods.get_mut(name) {
            pod.ready = false;
            pod.deciding_gates.clear();
        }
    }
}

/// Returns whether a controller keeps the endpoints of a Service.
fn follows_pods(service: Option<&Service>) -> bool {
    service.is_none_or(|service| service.selector.is_some())
}

/// Forgets the captured rules of nodes: they lead to the endpoints that there were. Returns whether
/// there were any.
pub(super) fn forget_captures(cluster: &mut Cluster) -> bool {
    let had = !cluster.captures.is_empty();
    cluster.captures.clear();
    had
}

/// What is assumed where captured rules are forgotten.
pub(super) const WITHOUT_CAPTURES: &str =
    "nodes have the rules that kube-proxy writes then: captured rules lead to the endpoints before";
