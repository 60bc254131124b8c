//! Merges a patch into an object: a strategic merge patch of the kinds of Kubernetes, whose lists are
//! merged by a key of their items, and a JSON merge patch of other kinds.

use uturn_document::edit::Tree;

/// Merges a patch. `path` has the keys above it; lists merge only if `is_strategic`.
pub(super) fn merge(old: &Tree, patch: &Tree, path: &[&str], is_strategic: bool) -> Tree {
    match (old, patch) {
        (Tree::Map(old), Tree::Map(patch)) => merge_maps(old, patch, path, is_strategic),
        (Tree::List(old), Tree::List(patch)) if is_strategic => match merge_keys(path) {
            [] => plain(&Tree::List(patch.clone())),
            keys => merge_lists(old, patch, keys, path),
        },
        _ => plain(patch),
    }
}

fn merge_maps(
    old: &[(String, Tree)],
    patch: &[(String, Tree)],
    path: &[&str],
    is_strategic: bool,
) -> Tree {
    let directive = patch.iter().find(|(key, _)| key == "$patch");
    if directive.and_then(|(_, value)| value.as_str()) == Some("replace") {
        return plain(&Tree::Map(patch.to_vec()));
    }
    let mut new = old.to_vec();
    for (key, value) in patch {
        if let Some(list) = key.strip_prefix("$deleteFromPrimitiveList/") {
            if let Some((_, Tree::List(items))) = new.iter_mut().find(|(own, _)| own == list) {
                items.retain(|item| !value.items().contains(item));
            }
            continue;
        }
        if key.starts_with('$') {
            continue;
        }
        let is_deleted = *value == Tree::bare("null")
            || value.get("$patch").and_then(Tree::as_str) == Some("delete");
        if is_deleted {
            new.retain(|(own, _)| own != key);
            continue;
        }
        let below: Vec<&str> = path.iter().copied().chain([key.as_str()]).collect();
        match new.iter_mut().find(|(own, _)| own == key) {
            Some((_, own)) => *own = merge(own, value, &below, is_strategic),
            None => new.push((key.clone(), plain(value))),
        }
    }
    Tree::Map(new)
}

fn merge_lists(old: &[Tree], patch: &[Tree], keys: &[&str], path: &[&str]) -> Tree {
    let directive =
        |item: &Tree, word: &str| item.get("$patch").and_then(Tree::as_str) == Some(word);
    if patch.iter().any(|item| directive(item, "replace")) {
        let rest = patch.iter().filter(|item| !directive(item, "replace"));
        return Tree::List(rest.map(plain).collect());
    }
    let mut new = old.to_vec();
    for item in patch {
        let is_it = |own: &Tree| {
            let same = |key: &&str| match (own.get(key), item.get(key)) {
                (Some(own), Some(wanted)) => own.as_str() == wanted.as_str(),
                // A key that the patch leaves out does not distinguish.
                (_, None) => true,
                (None, Some(wanted)) => default_of(key) == wanted.as_str(),
            };
            item.get(keys[0]).is_some() && keys.iter().all(same)
        };
        let at = new.iter().position(is_it);
        match (at, directive(item, "delete")) {
            (Some(at), true) => {
                new.remove(at);
            }
            (None, true) => {}
            (Some(at), false) => new[at] = merge(&new[at], item, path, true),
            (None, false) => new.push(plain(item)),
        }
    }
    Tree::List(new)
}

/// Returns the value that a missing key of a list's item stands for.
fn default_of(key: &str) -> Option<&'static str> {
    (key == "protocol").then_some("TCP")
}

/// Returns the keys by which the items of a list are told apart; none if the list is replaced as a
/// whole. The first has to be there.
fn merge_keys(path: &[&str]) -> &'static [&'static str] {
    let parent = path.iter().rev().nth(1).copied().unwrap_or_default();
    match (path.last().copied().unwrap_or_default(), parent) {
        ("containers" | "initContainers" | "ephemeralContainers" | "volumes" | "env", _) => {
            &["name"]
        }
        ("imagePullSecrets", _) => &["name"],
        ("volumeMounts", _) => &["mountPath"],
        ("ports", "containers" | "initContainers") => &["containerPort", "protocol"],
        ("ports", "spec") => &["port", "protocol"],
        ("hostAliases", _) => &["ip"],
        ("conditions" | "addresses", "status") => &["type"],
        _ => &[],
    }
}

/// Returns a value without the directives of a patch, and without what it deletes.
fn plain(tree: &Tree) -> Tree {
    match tree {
        Tree::Map(entries) => {
            let kept = entries.iter().filter(|(key, value)| {
                !key.starts_with('$')
                    && *value != Tree::bare("null")
                    && value.get("$patch").and_then(Tree::as_str) != Some("delete")
            });
            Tree::Map(kept.map(|(key, value)| (key.clone(), plain(value))).collect())
        }
        Tree::List(items) => Tree::List(items.iter().map(plain).collect()),
        other => other.clone(),
    }
}

/// Returns a new object with what the API server assigned to the old one and no file states.
pub(super) fn with_assigned(old: &Tree, new: &Tree) -> Tree {
    let mut made = new.clone();
    for key in ["uid", "resourceVersion", "creationTimestamp"] {
        keep(&mut made, old, &["metadata", key]);
    }
    if new.get("status").is_none() {
        keep(&mut made, old, &["status"]);
    }
    let text = |tree: &Tree, key: &str| {
        tree.below(&["spec", key]).and_then(Tree::as_str).map(str::to_owned)
    };
    if new.get("kind").and_then(Tree::as_str) == Some("Service") {
        let kind = |tree| text(tree, "type").unwrap_or_else(|| "ClusterIP".to_owned());
        if kind(new) == "ExternalName" {
            return made;
        }
        for key in ["clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"] {
            keep(&mut made, old, &["spec", key]);
        }
        if kind(new) != "ClusterIP" {
            keep_node_ports(&mut made, old);
        }
        if kind(new) == "LoadBalancer"
            && text(new, "externalTrafficPolicy").as_deref() == Some("Local")
        {
            keep(&mut made, old, &["spec", "healthCheckNodePort"]);
        }
    }
    if new.get("kind").and_then(Tree::as_str) == Some("Pod") {
        keep(&mut made, old, &["spec", "nodeName"]);
    }
    made
}

/// Takes a value over if the new object lacks it.
fn keep(new: &mut Tree, old: &Tree, path: &[&str]) {
    let Some(value) = old.below(path).filter(|_| new.below(path).is_none()) else { return };
    let mut at = new;
    let Some((last, above)) = path.split_last() else { return };
    for key in above {
        let Tree::Map(entries) = at else { return };
        let Some(place) = entries.iter().position(|(own, _)| own == key) else { return };
        at = &mut entries[place].1;
    }
    if let Tree::Map(entries) = at {
        entries.push(((*last).to_owned(), value.clone()));
    }
}

/// Takes the node ports over of ports that have none.
fn keep_node_ports(new: &mut Tree, old: &Tree) {
    let assigned = old.items_below(&["spec", "ports"]);
    let Tree::Map(entries) = new else { return };
    let Some((_, Tree::Map(spec))) = entries.iter_mut().find(|(key, _)| key == "spec") else {
        return;
    };
    let Some((_, Tree::List(ports))) = spec.iter_mut().find(|(key, _)| key == "ports") else {
        return;
    };
    for port in ports {
        let key = |tree: &Tree| {
            let protocol = tree.get("protocol").and_then(Tree::as_str).unwrap_or("TCP").to_owned();
            (tree.get("port").and_then(Tree::as_str).map(str::to_owned), protocol)
        };
        let same = assigned.iter().find(|own| key(own) == key(port));
        let node_port = same.and_then(|own| own.get("nodePort"));
        if let (Some(node_port), Tree::Map(entries)) = (node_port, &mut *port)
            && !entries.iter().any(|(key, _)| key == "nodePort")
        {
            entries.push(("nodePort".to_owned(), node_port.clone()));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::ops::ControlFlow;

    use uturn_document::{Keep, read};

    use super::*;

    fn tree(text: &str) -> Tree {
        let mut found = None;
        read(text, Keep::All, &mut |root| {
            found = Some(Tree::from(&root.unwrap()));
            ControlFlow::Continue(())
        });
        found.unwrap()
    }

    fn merged(old: &str, patch: &str) -> String {
        merge(&tree(old), &tree(patch), &[], true).document()
    }

    #[test]
    fn ports_and_containers_merge_by_their_keys() {
        let service = "spec: {type: NodePort, ports: [{port: 80, nodePort: 30080}, {port: 443}]}";
        let patch = "spec: {type: null, ports: [{port: 80, targetPort: http}, {port: 81}]}";
        let new = tree(&merged(service, patch));
        assert_eq!(
            new,
            tree(
                "spec: {ports: [{port: 80, nodePort: 30080, targetPort: http}, {port: 443}, {port: 81}]}"
            )
        );
        let gone = "spec: {ports: [{port: 80, $patch: delete}]}";
        assert_eq!(
            tree(&merged(service, gone)),
            tree("spec: {type: NodePort, ports: [{port: 443}]}")
        );
        let pods = "spec: {containers: [{name: a, image: x, env: [{name: P, value: '1'}]}]}";
        let patch = "spec: {containers: [{name: a, env: [{name: Q, value: '2'}]}]}";
        assert_eq!(
            tree(&merged(pods, patch)),
            tree(
                "spec: {containers: [{name: a, image: x, env: [{name: P, value: '1'}, {name: Q, value: '2'}]}]}"
            )
        );
    }

    #[test]
    fn other_lists_and_replaced_maps_are_as_in_the_patch() {
        assert_eq!(
            tree(&merged("spec: {rules: [{host: a}, {host: b}]}", "spec: {rules: [{host: c}]}")),
            tree("spec: {rules: [{host: c}]}")
        );
        assert_eq!(
            tree(&merged("spec: {selector: {a: b}}", "spec: {selector: {$patch: replace, c: d}}")),
            tree("spec: {selector: {c: d}}")
        );
    }

    #[test]
    fn what_the_api_server_assigned_stays() {
        let old = tree(
            "{kind: Service, metadata: {name: a, uid: u}, spec: {type: LoadBalancer, clusterIP: \
             172.16.0.9, ports: [{port: 80, nodePort: 30080}]}, status: {loadBalancer: {}}}",
        );
        let new = tree(
            "{kind: Service, metadata: {name: a}, spec: {type: NodePort, ports: [{port: 80}, {port: 81}]}}",
        );
        let made = with_assigned(&old, &new);
        assert_eq!(made.below(&["spec", "clusterIP"]).and_then(Tree::as_str), Some("172.16.0.9"));
        let ports = made.items_below(&["spec", "ports"]);
        assert_eq!(ports[0].get("nodePort").and_then(Tree::as_str), Some("30080"));
        assert_eq!(ports[1].get("nodePort"), None);
        assert!(made.get("status").is_some());
        let inside = tree("{kind: Service, metadata: {name: a}, spec: {ports: [{port: 80}]}}");
        let made = with_assigned(&old, &inside);
        assert_eq!(made.items_below(&["spec", "ports"])[0].get("nodePort"), None);
    }
}
