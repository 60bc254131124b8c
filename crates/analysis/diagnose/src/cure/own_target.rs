//! Cures of a client that is a target of the load balancer that it calls: an API server's node that
//! calls the API through the load balancer before the API servers.

use uturn_model::lb::Target;
use uturn_model::shell::Advice;
use uturn_model::{Destination, Flow, Mechanism, Node, ObjectKind};

use super::{Case, Proposal};

/// Proposes that a node's programs call their own node in place of the load balancer.
pub(super) fn propose(case: &Case<'_>) -> Option<Proposal> {
    let flow = case.walked()?;
    // Another failure is not one of this client's place.
    let loops =
        [Mechanism::LocalSourceDrop, Mechanism::ReversePathFilter, Mechanism::AsymmetricReturn];
    if !loops.into_iter().any(|mechanism| case.has(mechanism)) {
        return None;
    }
    let (_, listener) = case.listener()?;
    case.owner_kind().filter(|kind| *kind == ObjectKind::LoadBalancer)?;
    let node = case.cluster().nodes.get(case.client_node()?)?;
    let mut targets = listener.rules.iter().flat_map(|rule| &rule.targets);
    let is_own = |target: &&Target| {
        target.weight > 0
            && target.kind.node() == Some(&node.name)
            && node.has_address(target.address.ip())
    };
    let own = targets.find(is_own)?.address;
    let to = match &flow.to {
        Destination::Url { tls, path, .. } => Destination::Url {
            tls: *tls,
            host: own.ip().to_string().into(),
            port: uturn_model::Port::new(own.port())?,
            path: path.clone(),
        },
        _ => Destination::Address(own),
    };
    let title = format!("call {own}, the own address of {}", node.name);
    let mut made = Proposal::new("call-own-target", 12, title)
        .types(Advice::sentence(&what_to_edit(case, node, flow, &to)))
        .costs("where its own server is down, the node does not use those of other nodes")
        .costs("each node that is a target has to do so")
        .trial();
    if runs_api_server(case, node) {
        made = made.costs("the server's certificate has to name that address, as kubeadm's does");
    }
    made.then = Some(Flow { to, ..flow.clone() });
    Some(made)
}

/// Returns whether an API server runs on a node.
fn runs_api_server(case: &Case<'_>, node: &Node) -> bool {
    let mut pods = case.cluster().pods.values();
    pods.any(|pod| {
        pod.node.as_ref() == Some(&node.name)
            && pod.spec.containers.iter().any(|own| &*own.name == "kube-apiserver")
    })
}

/// Returns what has to be edited on the node.
fn what_to_edit(case: &Case<'_>, node: &Node, flow: &Flow, to: &Destination) -> String {
    let hosts = match &flow.to {
        Destination::Url { host, .. } | Destination::Host(host, _)
            if host.parse::<std::net::IpAddr>().is_err() =>
        {
            let own = match to {
                Destination::Address(own) => own.ip().to_string(),
                Destination::Url { host, .. } => host.to_string(),
                _ => String::new(),
            };
            format!(", or in its /etc/hosts: {own} {host}")
        }
        _ => String::new(),
    };
    let (old, new) = (flow.to.to_string(), to.to_string());
    let (old, new) = (old.trim_end_matches('/'), new.trim_end_matches('/'));
    if runs_api_server(case, node) {
        format!(
            "on node {}, in /etc/kubernetes/kubelet.conf (server) and in the kubeconfig of what else \
             calls the API there: {old} becomes {new}{hosts}; then restart the kubelet. kubeadm does \
             so with its feature gate ControlPlaneKubeletLocalMode",
            node.name
        )
    } else {
        format!("in the caller's configuration on node {}: {old} becomes {new}{hosts}", node.name)
    }
}
