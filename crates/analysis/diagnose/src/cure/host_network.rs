//! Cures that move pods into the network of their nodes.

use uturn_document::edit::{Change, Tree};
use uturn_model::{Client, Destination, Flow, Mechanism, ObjectRef, Pod, Port, Protocol, Service};

use super::template::Template;
use super::{Case, Proposal, endpoints, way};

/// The policy with which pods of the host network ask the cluster's DNS.
const POLICY: &str = "ClusterFirstWithHostNet";

/// The maximum number of pods that move into their nodes' network.
const MAX: usize = 50;

/// Proposes the nodes' network for a pod that a machine outside calls, where the network around the
/// nodes may have no route to pods.
pub(super) fn of_hidden_pod(case: &Case<'_>) -> Option<Proposal> {
    let flow = case.walked().filter(|flow| matches!(flow.from, Client::Outside(_)))?;
    if !case.has(Mechanism::NotModelled) && !case.has(Mechanism::NoRoute) {
        return None;
    }
    let pods = &case.cluster().pods;
    let (pod, port) = match &flow.to {
        Destination::Pod(name, port) => (pods.get(name)?, *port),
        Destination::Address(to) => (case.engine.pod_at(to.ip())?, Port::new(to.port())?),
        _ => return None,
    };
    if pod.spec.host_network {
        return None;
    }
    let object = pod.owner.clone().unwrap_or_else(|| pod.object());
    let mut made = propose(case, &object)?.trial();
    let taken = taken(case, &object, pod);
    let because = match taken {
        Some((port, by)) => format!("port {port} is taken by {}: another port for it", by.object()),
        None => "no pod of the nodes' network that is given declares one of them".to_owned(),
    };
    made = made.when("its ports are free on its nodes", taken.is_none(), because);
    if matches!(flow.to, Destination::Address(_)) {
        let to = Destination::Pod(pod.name.clone(), port);
        made.then = Some(Flow { to, ..flow.clone() });
    }
    Some(made)
}

/// Returns a port of a pod that another pod has on the nodes of the workload.
fn taken<'c>(case: &Case<'c>, object: &ObjectRef, pod: &Pod) -> Option<(Port, &'c Pod)> {
    let all = || case.cluster().pods.values().filter(|pod| pod.is_alive());
    let is_own = |pod: &&Pod| is_of(pod, object);
    let has_neighbour =
        |other: &&Pod| all().filter(is_own).any(|own| own.node.is_some() && own.node == other.node);
    let mut others = all().filter(|other| !is_own(other)).filter(has_neighbour);
    others.find_map(|other| {
        let has = |port: Port, protocol: Protocol| {
            other.spec.ports().any(|own| {
                let on_node = if other.spec.host_network { Some(own.port) } else { own.host_port };
                own.protocol == protocol && on_node == Some(port)
            })
        };
        let own = pod.spec.ports().find(|own| has(own.port, own.protocol))?;
        Some((own.port, other))
    })
}

/// Proposes that the pods of a workload, or a pod that no workload makes, use their nodes' network.
pub(super) fn propose(case: &Case<'_>, object: &ObjectRef) -> Option<Proposal> {
    let template = Template::of_object(object.clone())?;
    if !case.manifests.has(&template.object) {
        return None;
    }
    let cluster = case.cluster();
    let pods: Vec<&Pod> = cluster.pods.values().filter(|pod| is_of(pod, object)).collect();
    if pods.len() > MAX {
        return None;
    }
    let title = format!("hostNetwork for {object}");
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
            && object.namespace.as_ref() == Some(&service.name.namespace)
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

/// Returns whether a pod is this object, or one of this workload.
fn is_of(pod: &Pod, object: &ObjectRef) -> bool {
    pod.owner.as_ref() == Some(object) || pod.object() == *object
}

/// Returns a pod with the addresses of its node.
fn moved(case: &Case<'_>, pod: &Pod) -> Option<Pod> {
    let node = case.cluster().nodes.get(pod.node.as_ref()?)?;
    Some(Pod { ips: node.internal_ips.clone(), ..pod.clone() })
}
