//! Chooses the nodes that are captured, and the pods to capture them in.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};
use uturn_model::{Name, image};

use crate::exec::Container;
use crate::reading::Reading;

/// The name of kube-proxy's image, or of its container.
const PROXY: &str = "kube-proxy";

/// The nodes to capture.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NodeChoice {
    /// All nodes.
    All,
    /// One node of each class: nodes with the same kernel, kube-proxy and sizes of pod ranges.
    OneOfEachClass,
    /// The named nodes.
    Named(BTreeSet<Name>),
}

/// A node to be captured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodePlan {
    /// The node.
    pub name: Name,
    /// The container of kube-proxy that runs on the node.
    pub proxy: Option<Container>,
}

impl Reading {
    /// Returns the nodes to be captured, in order.
    ///
    /// # Errors
    /// If a named node was not read.
    pub fn nodes_to_capture(&self, choice: &NodeChoice) -> Result<Vec<NodePlan>, String> {
        let parsed = |text: &str| serde_json::from_str::<Value>(text).ok();
        let nodes = self.texts("Node").filter_map(parsed);
        let proxies = self.texts("Pod").filter(|text| text.contains(PROXY)).filter_map(parsed);
        choose(nodes, proxies, choice)
    }
}

fn choose(
    nodes: impl Iterator<Item = Value>,
    pods: impl Iterator<Item = Value>,
    choice: &NodeChoice,
) -> Result<Vec<NodePlan>, String> {
    let mut proxies: BTreeMap<String, Value> = BTreeMap::new();
    for pod in pods.filter(|pod| container(pod).is_some()) {
        if let Some(node) = pod["spec"]["nodeName"].as_str() {
            proxies.insert(node.to_owned(), pod);
        }
    }
    let mut classes = BTreeSet::new();
    let mut plans: BTreeMap<Name, NodePlan> = BTreeMap::new();
    for node in nodes {
        let Ok(name) = Name::new(node["metadata"]["name"].as_str().unwrap_or_default()) else {
            continue;
        };
        let proxy = proxies.get(name.as_str());
        let is_wanted = match choice {
            NodeChoice::All => true,
            NodeChoice::OneOfEachClass => classes.insert(class(&node, proxy)),
            NodeChoice::Named(names) => names.contains(&name),
        };
        if is_wanted {
            let proxy = proxy.and_then(container);
            plans.insert(name.clone(), NodePlan { name, proxy });
        }
    }
    if let NodeChoice::Named(names) = choice {
        let unknown: Vec<&str> =
            names.iter().filter(|name| !plans.contains_key(*name)).map(Name::as_str).collect();
        if !unknown.is_empty() {
            return Err(format!("the cluster shows no node {}", unknown.join(", ")));
        }
    }
    Ok(plans.into_values().collect())
}

/// Returns the container of kube-proxy in a pod that runs with the node's network.
fn container(pod: &Value) -> Option<Container> {
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let runs = pod["status"]["phase"] == "Running" && pod["spec"]["hostNetwork"] == true;
    let mut containers = pod["spec"]["containers"].as_array()?.iter();
    // Some distributions name the image differently: `kube-proxy-amd64`, `hardened-kubernetes`.
    let is_proxy = |container: &&Value| program(container) == PROXY || container["name"] == PROXY;
    let found = containers.find(is_proxy).filter(|_| runs)?;
    Some(Container {
        namespace: text(&pod["metadata"]["namespace"])?,
        pod: text(&pod["metadata"]["name"])?,
        container: text(&found["name"]),
    })
}

/// Returns the name of a container's image, without registry and version.
fn program(container: &Value) -> &str {
    image::name(container["image"].as_str().unwrap_or_default())
}

/// Returns a key that is equal for nodes whose kernels are programmed alike: the kernel's release,
/// the images and the owner of kube-proxy's pod, and the sizes of the pod ranges.
fn class(node: &Value, proxy: Option<&Value>) -> String {
    let ranges = node["spec"]["podCIDRs"].as_array().into_iter().flatten();
    let sizes: Vec<(bool, Option<&str>)> = ranges
        .filter_map(Value::as_str)
        .map(|range| (range.contains(':'), range.split_once('/').map(|(_, size)| size)))
        .collect();
    let info = &node["status"]["nodeInfo"];
    let images = proxy.map(|pod| {
        let containers = pod["spec"]["containers"].as_array().into_iter().flatten();
        containers.map(|container| container["image"].clone()).collect::<Vec<_>>()
    });
    let owner = proxy.map(|pod| pod["metadata"]["ownerReferences"][0]["name"].clone());
    let versions = ["kernelVersion", "kubeProxyVersion", "kubeletVersion"].map(|name| &info[name]);
    json!([versions, images, owner, sizes]).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(name: &str, kernel: &str) -> Value {
        json!({"metadata": {"name": name}, "spec": {"podCIDRs": ["10.1.1.0/24"]},
               "status": {"nodeInfo": {"kernelVersion": kernel}}})
    }

    fn proxy(node: &str, image: &str, phase: &str) -> Value {
        json!({
            "metadata": {"namespace": "kube-system", "name": format!("kube-proxy-{node}"),
                         "ownerReferences": [{"kind": "DaemonSet", "name": "kube-proxy"}]},
            "spec": {"nodeName": node, "hostNetwork": true,
                     "containers": [{"name": "watcher", "image": "watcher"},
                                    {"name": "proxy", "image": image}]},
            "status": {"phase": phase},
        })
    }

    fn chosen(choice: &NodeChoice) -> Result<Vec<(String, Option<Container>)>, String> {
        let nodes = ["n1", "n2", "n3"].map(|name| node(name, "6.1"));
        let nodes = nodes.into_iter().chain([node("n4", "5.4")]);
        let image = "registry.k8s.io/kube-proxy:v1.34.4@sha256:0";
        let pods = [
            proxy("n1", image, "Running"),
            proxy("n2", image, "Running"),
            proxy("n3", "registry.k8s.io:5000/kube-proxy:v1.30.14", "Running"),
            proxy("n4", image, "Pending"),
            proxy("n4", "my/kube-proxy-watcher", "Running"),
        ];
        let plans = choose(nodes, pods.into_iter(), choice)?;
        Ok(plans.into_iter().map(|plan| (plan.name.to_string(), plan.proxy)).collect())
    }

    /// RKE2 and older GKE run kube-proxy from an image of another name.
    #[test]
    fn a_container_is_known_by_its_name_too() {
        let mut pod = proxy("n1", "registry/hardened-kubernetes:v1.34.4", "Running");
        assert_eq!(container(&pod), None);
        pod["spec"]["containers"][1]["name"] = "kube-proxy".into();
        let found = container(&pod).unwrap();
        assert_eq!(found.container.as_deref(), Some("kube-proxy"));
    }

    #[test]
    fn nodes_are_chosen_with_the_kube_proxy_that_runs_on_them() {
        let all = chosen(&NodeChoice::All).unwrap();
        let names: Vec<&str> = all.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["n1", "n2", "n3", "n4"]);
        let proxy = all[0].1.as_ref().unwrap();
        assert_eq!((&*proxy.namespace, &*proxy.pod), ("kube-system", "kube-proxy-n1"));
        assert_eq!(proxy.container.as_deref(), Some("proxy"));
        assert_eq!(all[3].1, None);

        let classes = chosen(&NodeChoice::OneOfEachClass).unwrap();
        let names: Vec<&str> = classes.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["n1", "n3", "n4"]);

        let names = |names: &[&str]| {
            NodeChoice::Named(names.iter().map(|name| Name::new(*name).unwrap()).collect())
        };
        assert_eq!(chosen(&names(&["n2"])).unwrap().len(), 1);
        let error = chosen(&names(&["n2", "n8", "n9"])).unwrap_err();
        assert_eq!(error, "the cluster shows no node n8, n9");
    }
}
