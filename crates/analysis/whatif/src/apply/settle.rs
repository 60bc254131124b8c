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

/// Returns the template of a workload's pods.
pub(super) fn template(workload: &Tree) -> Option<&Tree> {
    workload.below(&["spec", "template"])
}

/// Returns a pod as a changed template makes it: what differs between the two templates differs in
/// the pod. `node` is the address of its node, which it has in the node's network.
pub(super) fn of_template(pod: &Tree, old: &Tree, new: &Tree, node: Option<&str>) -> Tree {
    let none = Tree::Map(Vec::new());
    let part = |of: &Tree, keys: &[&str]| {
        template(of).and_then(|template| template.below(keys)).unwrap_or(&none).clone()
    };
    let mut made = pod.clone();
    for keys in [&["metadata", "labels"][..], &["metadata", "annotations"], &["spec"]] {
        let (before, after) = (part(old, keys), part(new, keys));
        let Some(place) = made_below(&mut made, keys) else { continue };
        let (Tree::Map(own), Tree::Map(before), Tree::Map(after)) = (place, &before, &after) else {
            continue;
        };
        own.retain(|(key, _)| {
            let was = before.iter().any(|(old, _)| old == key);
            !was || after.iter().any(|(new, _)| new == key)
        });
        for (key, value) in after {
            if before.iter().any(|(old, known)| old == key && known == value) {
                continue;
            }
            own.retain(|(old, _)| old != key);
            own.push((key.clone(), value.clone()));
        }
    }
    let is_host =
        |tree: &Tree| tree.below(&["spec", "hostNetwork"]).and_then(Tree::as_str) == Some("true");
    if is_host(&made)
        && !is_host(pod)
        && let (Some(node), Some(Tree::Map(status))) = (node, made_below(&mut made, &["status"]))
    {
        status.retain(|(key, _)| key != "podIP" && key != "podIPs");
        status.push(("podIP".to_owned(), Tree::text(node)));
        let addresses = Tree::List(vec![Tree::map([("ip", Tree::text(node))])]);
        status.push(("podIPs".to_owned(), addresses));
    }
    made
}

/// Returns the mapping at the end of these keys; missing mappings on the way are made.
fn made_below<'t>(tree: &'t mut Tree, keys: &[&str]) -> Option<&'t mut Tree> {
    let mut at = tree;
    for key in keys {
        let Tree::Map(entries) = at else { return None };
        let place = entries.iter().position(|(own, _)| own == key).unwrap_or_else(|| {
            entries.push(((*key).to_owned(), Tree::Map(Vec::new())));
            entries.len() - 1
        });
        at = &mut entries[place].1;
    }
    Some(at)
}
