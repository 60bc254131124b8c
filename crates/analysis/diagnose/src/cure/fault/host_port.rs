//! Cures of host ports that nothing forwards.

use uturn_document::edit::{Change, Tree};
use uturn_model::network::Plugin;
use uturn_model::{NamespacedName, ObjectKind, ObjectRef, Pod, Service};

use super::super::template::Template;
use super::super::{Case, Proposal, endpoints, way};
use crate::Finding;

/// The namespaces in which the network plugin's settings are sought.
const NAMESPACES: [&str; 2] = ["kube-system", "cilium"];

/// The policy with which pods of the host network ask the cluster's DNS.
const POLICY: &str = "ClusterFirstWithHostNet";

/// The maximum number of pods that move into their nodes' network.
const MAX: usize = 50;

pub(super) fn propose(case: &Case<'_>, fault: &Finding) -> Vec<Proposal> {
    chained(case).into_iter().chain(host_network(case, fault)).collect()
}

/// Proposes that a plugin which forwards host ports is chained to the network's.
fn chained(case: &Case<'_>) -> Option<Proposal> {
    if case.cluster().network.plugin.value != Plugin::Cilium {
        return None;
    }
    let mut maps = NAMESPACES.into_iter().filter_map(|namespace| {
        let name = NamespacedName::new(namespace, "cilium-config").ok()?;
        Some(ObjectRef::namespaced(ObjectKind::ConfigMap, &name))
    });
    let map = maps.find(|map| case.manifests.has(map))?;
    let title = format!("cni-chaining-mode: portmap in {map}");
    Some(
        Proposal::new("chain-portmap", 10, title)
            .edit(map, way!["data", "cni-chaining-mode"], Change::Set(Tree::text("portmap")))
            .ask(
                "the plugin portmap is in /opt/cni/bin of each node",
                "packages of CNI plugins put it there; the agents write the chain when they start",
            )
            .costs("the agents have to be restarted, and these pods deleted, so that they are made anew"),
    )
}

/// Proposes that the pods use their nodes' network.
fn host_network(case: &Case<'_>, fault: &Finding) -> Option<Proposal> {
    let template = Template::of_object(fault.subject.clone())?;
    if !case.manifests.has(&template.object) {
        return None;
    }
    let cluster = case.cluster();
    let is_own =
        |pod: &&Pod| pod.owner.as_ref() == Some(&fault.subject) || pod.object() == fault.subject;
    let pods: Vec<&Pod> = cluster.pods.values().filter(is_own).collect();
    if pods.len() > MAX {
        return None;
    }
    let title = format!("hostNetwork for {}", fault.subject);
    let mut made = Proposal::new("host-network", 20, title)
        .costs(template.cost())
        .costs("the pods have their nodes' addresses, and every port at which they listen is open there")
        .costs("no two of them can run on one node");
    let fields = [("hostNetwork", Tree::bare("true")), ("dnsPolicy", Tree::text(POLICY))];
    for (field, value) in fields {
        let path = way!["spec", field];
        made = template.edit(case, made, &path, &Change::Set(value))?;
    }
    let moved: Vec<Pod> = pods.iter().filter_map(|pod| moved(case, pod)).collect();
    for pod in moved.iter().filter(|pod| case.manifests.has(&pod.object())) {
        let Some(ip) = pod.ips.first() else { continue };
        let entry = |ip: &std::net::IpAddr| Tree::map([("ip", Tree::text(ip.to_string()))]);
        let all = Tree::List(pod.ips.iter().map(entry).collect());
        made = made
            .follow(pod.object(), way!["status", "podIP"], Change::Set(Tree::text(ip.to_string())))
            .follow(pod.object(), way!["status", "podIPs"], Change::Set(all));
    }
    let selects = |service: &&Service| {
        let selector = service.selector.as_ref();
        selector.is_some_and(|own| moved.iter().any(|pod| own.matches(&pod.spec.labels)))
            && fault.subject.namespace.as_ref() == Some(&service.name.namespace)
    };
    for service in cluster.services.values().filter(selects) {
        let selected = cluster.selected(service);
        let after: Vec<&Pod> = selected
            .into_iter()
            .map(|pod| moved.iter().find(|moved| moved.name == pod.name).unwrap_or(pod))
            .collect();
        made = endpoints::follow(case, made, service, &after);
    }
    Some(made)
}

/// Returns a pod with the addresses of its node.
fn moved(case: &Case<'_>, pod: &Pod) -> Option<Pod> {
    let node = case.cluster().nodes.get(pod.node.as_ref()?)?;
    Some(Pod { ips: node.internal_ips.clone(), ..pod.clone() })
}
