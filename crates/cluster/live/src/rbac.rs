//! The rights to read a cluster, and those for more than reading.

use std::collections::{BTreeMap, BTreeSet};

use crate::nodes::POD_NAMESPACE;
use crate::plan::{OLD_GROUP, listed_kinds};

/// Returns the rights as manifests: a ClusterRole, an account, and their binding. Watching a
/// cluster needs more rights than reading it once.
pub fn rbac(watch: bool) -> String {
    let (list, get) = if watch {
        ("[\"list\", \"watch\"]", "[\"get\", \"watch\"]")
    } else {
        ("[\"list\"]", "[\"get\"]")
    };
    let more = if watch { " and to watch it" } else { "" };
    let mut groups: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    for kind in listed_kinds() {
        let of_version =
            |version: &&'static str| version.rsplit_once('/').map_or("", |(group, _)| group);
        for group in kind.api_versions.iter().map(of_version) {
            // Clusters with nothing newer than this group are older than these rights.
            if group != OLD_GROUP {
                groups.entry(group).or_default().insert(kind.plural());
            }
        }
    }
    let mut rules = String::new();
    for (group, resources) in &groups {
        rules.push_str(&format!("- apiGroups: [\"{group}\"]\n  resources:\n"));
        resources.iter().for_each(|resource| rules.push_str(&format!("  - {resource}\n")));
        rules.push_str(&format!("  verbs: {list}\n"));
    }
    rules.push_str("- apiGroups: [\"\"]\n  resources: [\"configmaps\"]\n  resourceNames:\n");
    let names: BTreeSet<&str> = uturn_snapshot::config_maps().map(|(_, name)| name).collect();
    names.iter().for_each(|name| rules.push_str(&format!("  - {name}\n")));
    rules.push_str(&format!("  verbs: {get}\n"));
    format!(
        "# What uturn needs to read a cluster{more}. It lists, gets these ConfigMaps, and changes nothing.\n\
         apiVersion: rbac.authorization.k8s.io/v1\n\
         kind: ClusterRole\n\
         metadata:\n  name: uturn-reader\n\
         rules:\n{rules}\
         ---\n\
         apiVersion: v1\n\
         kind: ServiceAccount\n\
         metadata:\n  name: uturn-reader\n  namespace: kube-system\n\
         ---\n\
         # For a person, name a User or a Group among the subjects instead.\n{}",
        binding("uturn-reader", None)
    )
}

/// Returns the additional rights that captures of nodes need, as manifests. `makes_pods` includes
/// the rights for short-lived pods.
pub fn rbac_of_nodes(makes_pods: bool) -> String {
    let pods = if makes_pods {
        "- apiGroups: [\"\"]\n  resources: [\"pods\"]\n  \
             verbs: [\"get\", \"list\", \"create\", \"delete\"]\n"
    } else {
        ""
    };
    format!(
        "---\n\
         # Captures of nodes: tools are run in kube-proxy's own pods. Who has this right can do on\n\
         # the nodes what kube-proxy can.\n\
         apiVersion: rbac.authorization.k8s.io/v1\n\
         kind: Role\n\
         metadata:\n  name: uturn-node-reader\n  namespace: {POD_NAMESPACE}\n\
         rules:\n\
         - apiGroups: [\"\"]\n  resources: [\"pods/exec\"]\n  verbs: [\"create\", \"get\"]\n{pods}\
         ---\n{}",
        binding("uturn-node-reader", Some(POD_NAMESPACE))
    )
}

/// Returns the additional rights that calls in pods need, as manifests.
pub fn rbac_of_probes() -> String {
    format!(
        "---\n\
         # What uturn probe needs besides, in the namespaces of its clients. It runs commands in pods there:\n\
         # bind it with a RoleBinding in one namespace if that is enough.\n\
         apiVersion: rbac.authorization.k8s.io/v1\n\
         kind: ClusterRole\n\
         metadata:\n  name: uturn-prober\n\
         rules:\n\
         - apiGroups: [\"\"]\n  resources: [\"pods/exec\"]\n  verbs: [\"get\", \"create\"]\n\
         # For --image alone: it adds a container to a pod.\n\
         - apiGroups: [\"\"]\n  resources: [\"pods\"]\n  verbs: [\"get\"]\n\
         - apiGroups: [\"\"]\n  resources: [\"pods/ephemeralcontainers\"]\n  verbs: [\"patch\"]\n\
         ---\n{}",
        binding("uturn-prober", None)
    )
}

/// Returns the binding of a role to the account: of a Role of this namespace, or of a ClusterRole.
fn binding(role: &str, namespace: Option<&str>) -> String {
    let (kind, place) = match namespace {
        Some(namespace) => ("Role", format!("  namespace: {namespace}\n")),
        None => ("ClusterRole", String::new()),
    };
    format!(
        "apiVersion: rbac.authorization.k8s.io/v1\n\
         kind: {kind}Binding\n\
         metadata:\n  name: {role}\n{place}\
         roleRef:\n  apiGroup: rbac.authorization.k8s.io\n  kind: {kind}\n  name: {role}\n\
         subjects:\n- kind: ServiceAccount\n  name: uturn-reader\n  namespace: kube-system\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_but_lists_and_named_config_maps() {
        let text = rbac(false);
        assert!(!text.contains("secrets") && !text.contains("extensions"), "{text}");
        let verbs: BTreeSet<&str> =
            text.lines().filter_map(|line| line.trim().strip_prefix("verbs: ")).collect();
        assert_eq!(verbs, BTreeSet::from(["[\"get\"]", "[\"list\"]"]));
        assert_eq!(text.matches("[\"get\"]").count(), 1);
        assert!(
            text.contains("  resourceNames:\n  - amazon-vpc-cni\n  - cilium-config\n"),
            "{text}"
        );
        // Watching needs the same rights and one verb more.
        let watched = rbac(true).replace(", \"watch\"]", "]").replace(" and to watch it", "");
        assert_eq!(watched, text);
    }
}
