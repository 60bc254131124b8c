//! Hints about names that do not resolve, though nothing shows that they are called: of single pods
//! below a headless Service, and of Services where pods of the host network ask their node's servers.

use std::collections::BTreeSet;

use uturn_model::pod::DnsPolicy;
use uturn_model::{
    Client, Cluster, Destination, Flow, ObjectKind, ObjectRef, Outcome, Pod, Port, Protocol,
    Service, WorkloadKind,
};
use uturn_path::Engine;

use super::object_faults::{PodsByNamespace, about};
use crate::callers::is_of_system;
use crate::clients::{Clients, Example};
use crate::finding::Finding;
use crate::{Code, Severity};

/// The port that is called where a Service states none. Names are looked up alike for every port.
const ANY_PORT: Port = Port::new(80).expect("not zero");

pub(crate) fn find(engine: &Engine<'_>) -> Vec<Finding> {
    let mut all = of_pods(engine);
    all.extend(on_nodes(engine));
    all
}

/// Finds headless Services whose pods, which no workload makes, have no names of their own.
fn of_pods(engine: &Engine<'_>) -> Vec<Finding> {
    let cluster = engine.cluster();
    let headless = || cluster.services.values().filter(|service| service.headless);
    if headless().next().is_none() {
        return Vec::new();
    }
    let pods = PodsByNamespace::of(cluster);
    headless().filter_map(|service| nameless(cluster, service, &pods.selected(service))).collect()
}

fn nameless(cluster: &Cluster, service: &Service, pods: &[&Pod]) -> Option<Finding> {
    let is_nameless = |pod: &&Pod| pod.owner.is_none() && pod.spec.subdomain.is_none();
    let first = pods.iter().copied().find(|pod| !pod.ips.is_empty())?;
    if !service.unjudged.is_empty() || !pods.iter().all(is_nameless) {
        return None;
    }
    let (name, below) = (&first.name.name, &service.name.name);
    let what = format!(
        "names of single pods, as {name}.{below}, are not in the cluster's DNS: a pod has one only with a \
         hostname, and with this Service as its subdomain"
    );
    let client = cluster.pods.values().find(|pod| {
        pod.name != first.name
            && pod.is_alive()
            && !pod.ips.is_empty()
            && pod.spec.asks_cluster_dns()
    })?;
    let host = cluster.dns.name_of(&service.name);
    let (port, protocol) = match service.ports.first() {
        Some(port) => (port.port, port.protocol),
        None => (ANY_PORT, Protocol::Tcp),
    };
    let mut finding = about(Code::NameNotFound, service.object(), &service.origin, what);
    finding.targets = vec![format!("{name}.{below}")];
    finding.clients = Clients::other(Clients::BY_NAME);
    hint(&mut finding, client, format!("{name}.{host}"), (port, protocol));
    Some(finding)
}

/// Finds workloads of the host network that ask their nodes' name servers, which know no Services,
/// though their namespace has some. Single pods, DaemonSets and the cluster's own mostly call none.
fn on_nodes(engine: &Engine<'_>) -> Vec<Finding> {
    let cluster = engine.cluster();
    let mut known: BTreeSet<ObjectRef> = BTreeSet::new();
    let mut all = Vec::new();
    let calling: [ObjectKind; 2] =
        [WorkloadKind::Deployment, WorkloadKind::StatefulSet].map(Into::into);
    for pod in cluster.pods.values().filter(|pod| pod.is_alive() && pod.spec.host_network) {
        let namespace = &pod.name.namespace;
        let Some(object) = pod.owner.clone().filter(|own| calling.contains(&own.kind)) else {
            continue;
        };
        let asks_node = pod.spec.dns_policy == DnsPolicy::ClusterFirst && !pod.ips.is_empty();
        if is_of_system(pod) || !asks_node || !known.insert(object.clone()) {
            continue;
        }
        let mut own = cluster.services.values().filter(|service| {
            service.name.namespace == *namespace && !service.headless && service.unjudged.is_empty()
        });
        let is_another = |service: &&Service| {
            service.selector.as_ref().is_none_or(|selector| !selector.matches(&pod.spec.labels))
        };
        let Some(service) = own.find(is_another) else { continue };
        let Some(port) = service.ports.first() else { continue };
        let what = format!(
            "with hostNetwork, dnsPolicy ClusterFirst asks the name servers of the node, which know no \
             Services: {} has no address there (ClusterFirstWithHostNet asks the cluster's)",
            service.name.name
        );
        let mut finding = about(Code::NameNotFound, object, &pod.origin, what);
        finding.targets = vec!["names of Services".to_owned()];
        finding.clients = Clients::other(Clients::ITS_PODS);
        hint(&mut finding, pod, service.name.name.to_string(), (port.port, port.protocol));
        all.push(finding);
    }
    all
}

/// Makes a finding a hint: nothing shows that a pod calls the name.
fn hint(finding: &mut Finding, pod: &Pod, host: String, (port, protocol): (Port, Protocol)) {
    finding.severity = Severity::Info;
    finding.outcome = Outcome::NameNotFound;
    let to = Destination::Host(host.into(), port);
    finding.example = Example::Flow(Flow { from: Client::Pod(pod.name.clone()), to, protocol });
}
