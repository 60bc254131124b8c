//! What controllers do after a change of an object, as far as it decides calls.

use uturn_document::edit::Tree;

/// Returns an object as its controllers leave it: a Service that is no longer reached from outside
/// loses its node ports and the address of its load balancer.
pub(super) fn settled(tree: &Tree) -> Tree {
    if tree.get("kind").and_then(Tree::as_str) != Some("Service") {
        return tree.clone();
    }
    let kind = tree.below(&["spec", "type"]).and_then(Tree::as_str).unwrap_or("ClusterIP");
    let has_node_ports = matches!(kind, "NodePort" | "LoadBalancer");
    let mut new = tree.clone();
    let Tree::Map(entries) = &mut new else { return new };
    if kind != "LoadBalancer" {
        for (key, status) in entries.iter_mut() {
            if key == "status"
                && let Tree::Map(status) = status
            {
                status.retain(|(key, _)| key != "loadBalancer");
            }
        }
    }
    let spec = entries.iter_mut().find(|(key, _)| key == "spec");
    if !has_node_ports && let Some((_, Tree::Map(spec))) = spec {
        spec.retain(|(key, _)| key != "healthCheckNodePort");
        let ports = spec.iter_mut().find(|(key, _)| key == "ports");
        if let Some((_, Tree::List(ports))) = ports {
            for port in ports {
                if let Tree::Map(port) = port {
                    port.retain(|(key, _)| key != "nodePort");
                }
            }
        }
    }
    new
}

/// Returns whether the endpoints of a Service depend on a part that differs between its two forms.
pub(super) fn has_other_endpoints(old: &Tree, new: &Tree) -> bool {
    let parts = ["selector", "ports", "publishNotReadyAddresses"];
    let without_node_ports = |tree: &Tree| -> Vec<Option<Tree>> {
        let part = |key: &&str| match tree.below(&["spec", key]) {
            Some(Tree::List(ports)) => {
                let port = |port: &Tree| match port {
                    Tree::Map(entries) => {
                        let kept = entries.iter().filter(|(key, _)| key != "nodePort");
                        Tree::Map(kept.cloned().collect())
                    }
                    other => other.clone(),
                };
                Some(Tree::List(ports.iter().map(port).collect()))
            }
            other => other.cloned(),
        };
        parts.iter().map(part).collect()
    };
    without_node_ports(old) != without_node_ports(new)
}
