//! Decides which objects of manifests are applied: those that users write, not those that
//! controllers make.

use serde_json::{Value, json};

use super::shown::{Shown, take_shown};

/// The objects of manifests, by their use.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Prepared {
    /// Nodes to build.
    pub(super) nodes: Vec<Value>,
    /// Objects to apply, each after those that it needs.
    pub(super) objects: Vec<Value>,
    /// The load balancers that the objects show.
    pub(super) shown: Vec<Shown>,
    /// The number of objects that are left to the controllers.
    pub(super) left_out: usize,
}

/// The number of nodes to build, unless it is given.
const NODES: usize = 3;

/// Kinds that only components of a cluster write.
const OF_COMPONENTS: [&str; 4] = ["Event", "Lease", "ControllerRevision", "Node"];

/// Kinds that others need, in order. All other kinds come after them.
const FIRST: [&str; 9] = [
    "Namespace",
    "CustomResourceDefinition",
    "PriorityClass",
    "ServiceAccount",
    "ClusterRole",
    "Role",
    "ConfigMap",
    "Secret",
    "Service",
];

/// Sorts the objects of manifests. `nodes` is the number of nodes to build.
pub(super) fn prepare(all: Vec<Value>, nodes: Option<usize>) -> Prepared {
    let mut prepared = Prepared::default();
    let selecting: Vec<(String, String)> = all
        .iter()
        .filter(|object| kind(object) == "Service" && !object["spec"]["selector"].is_null())
        .map(|object| (namespace(object).to_owned(), name(object).to_owned()))
        .collect();
    let has_selector = |object: &Value, service: &str| {
        selecting.iter().any(|(space, own)| space == namespace(object) && own == service)
    };
    for mut object in all {
        let is_made = match kind(&object) {
            "Node" => {
                prepared.nodes.push(object);
                continue;
            }
            "EndpointSlice" => {
                let service = &object["metadata"]["labels"]["kubernetes.io/service-name"];
                has_selector(&object, service.as_str().unwrap_or_default())
            }
            "Endpoints" => has_selector(&object, name(&object)),
            other => OF_COMPONENTS.contains(&other) || has_controller(&object),
        };
        if is_made {
            prepared.left_out += 1;
        } else {
            strip(&mut object);
            prepared.objects.push(object);
        }
    }
    let rank = |object: &Value| FIRST.iter().position(|first| *first == kind(object));
    prepared.objects.sort_by_key(|object| rank(object).unwrap_or(FIRST.len()));
    prepared.shown = take_shown(&mut prepared.objects);
    prepared.objects = with_namespaces(std::mem::take(&mut prepared.objects));
    prepared.nodes = if prepared.nodes.is_empty() {
        (1..=nodes.unwrap_or(NODES)).map(node).collect()
    } else {
        let mut own = std::mem::take(&mut prepared.nodes);
        let count = nodes.unwrap_or(own.len());
        own.truncate(count);
        let generated = (1..).map(node);
        let free: Vec<Value> = generated
            .filter(|new| own.iter().all(|own| !overlaps(own, new)))
            .take(count - own.len())
            .collect();
        own.extend(free);
        own
    };
    prepared
}

/// Returns the `kind` of an object.
pub(super) fn kind(object: &Value) -> &str {
    object["kind"].as_str().unwrap_or_default()
}

pub(super) fn name(object: &Value) -> &str {
    object["metadata"]["name"].as_str().unwrap_or_default()
}

/// Returns the namespace of an object; `default` if it states none.
pub(super) fn namespace(object: &Value) -> &str {
    object["metadata"]["namespace"].as_str().unwrap_or("default")
}

/// Returns the name of an object in messages: `Service shop/front`.
pub(super) fn title(object: &Value) -> String {
    format!("{} {}/{}", kind(object), namespace(object), name(object))
}

fn has_controller(object: &Value) -> bool {
    let owners = object["metadata"]["ownerReferences"].as_array();
    owners.is_some_and(|owners| owners.iter().any(|owner| owner["controller"] == true))
}

/// Removes the fields that the API server sets.
fn strip(object: &mut Value) {
    let set = ["uid", "resourceVersion", "generation", "creationTimestamp", "managedFields"];
    if let Some(metadata) = object["metadata"].as_object_mut() {
        for key in set {
            metadata.remove(key);
        }
    }
    // The status that other controllers wrote about load balancers is kept.
    let is_balanced = matches!(kind(object), "Service" | "Ingress");
    if let Some(object) = object.as_object_mut().filter(|_| !is_balanced) {
        object.remove("status");
    }
}

/// Adds the namespaces of objects that no object creates.
fn with_namespaces(objects: Vec<Value>) -> Vec<Value> {
    let mut spaces: Vec<&str> = Vec::new();
    for object in &objects {
        if let Some(space) = object["metadata"]["namespace"].as_str()
            && !spaces.contains(&space)
            && !objects.iter().any(|other| kind(other) == "Namespace" && name(other) == space)
        {
            spaces.push(space);
        }
    }
    let made = |space: &&str| json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": space}});
    let mut all: Vec<Value> = spaces.iter().map(made).collect();
    all.extend(objects);
    all
}

/// Returns a node for a cluster whose manifests have none.
fn node(number: usize) -> Value {
    let name = format!("n{number}");
    let range = format!("10.1.{number}.0/24");
    json!({
        "apiVersion": "v1", "kind": "Node",
        "metadata": {"name": name, "labels": {"topology.kubernetes.io/zone": format!("z{number}")}},
        "spec": {"podCIDR": range, "podCIDRs": [range]},
        "status": {"addresses": [
            {"type": "InternalIP", "address": format!("10.0.0.{}", 10 + number)},
            {"type": "Hostname", "address": name},
        ]},
    })
}

/// Returns whether two nodes share a name, an address or a range.
fn overlaps(node: &Value, other: &Value) -> bool {
    let address = |node: &Value| node["status"]["addresses"][0]["address"].clone();
    name(node) == name(other)
        || address(node) == address(other)
        || node["spec"]["podCIDR"] == other["spec"]["podCIDR"]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(kind: &str, name: &str, more: &Value) -> Value {
        let mut object = json!({"kind": kind, "metadata": {"namespace": "shop", "name": name}});
        for (key, value) in more.as_object().unwrap() {
            object[key] = value.clone();
        }
        object
    }

    fn titles(prepared: &Prepared) -> Vec<String> {
        prepared.objects.iter().map(title).collect()
    }

    #[test]
    fn what_controllers_make_is_left_to_them() {
        let mut pod = object("Pod", "web-0", &json!({}));
        pod["metadata"]["ownerReferences"] = json!([{"kind": "ReplicaSet", "controller": true}]);
        let mut slice = object("EndpointSlice", "web-1", &json!({}));
        slice["metadata"]["labels"] = json!({"kubernetes.io/service-name": "web"});
        let mut own_slice = slice.clone();
        own_slice["metadata"]["labels"]["kubernetes.io/service-name"] = json!("outside");
        let all = vec![
            object("Deployment", "web", &json!({"status": {"replicas": 3}})),
            pod,
            object("Service", "web", &json!({"spec": {"selector": {"app": "web"}}})),
            slice,
            object("Service", "outside", &json!({"spec": {}})),
            own_slice,
        ];
        let prepared = prepare(all, None);
        let expected = [
            "Namespace default/shop",
            "Service shop/web",
            "Service shop/outside",
            "Deployment shop/web",
            "EndpointSlice shop/web-1",
        ];
        assert_eq!(titles(&prepared), expected);
        assert_eq!(prepared.left_out, 2);
        assert_eq!(prepared.objects[3].get("status"), None);
    }

    #[test]
    fn nodes_are_those_of_the_manifests_or_generated() {
        let names = |nodes: &[Value]| nodes.iter().map(|node| name(node).to_owned()).collect();
        let built =
            |all: &[Value], count| -> Vec<String> { names(&prepare(all.to_vec(), count).nodes) };
        assert_eq!(built(&[], None), ["n1", "n2", "n3"]);
        assert_eq!(built(&[], Some(1)), ["n1"]);
        let own = [node(2), node(3)];
        assert_eq!(built(&own, None), ["n2", "n3"]);
        assert_eq!(built(&own, Some(1)), ["n2"]);
        assert_eq!(built(&own, Some(4)), ["n2", "n3", "n1", "n4"]);
    }
}
