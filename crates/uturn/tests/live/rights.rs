//! Each right that `uturn collect --rbac` prints, taken away.

use std::collections::BTreeSet;
use std::fs;

use serde_json::{Value, json};
use uturn_snapshot::{Source, json_objects};

use crate::control_plane::{ControlPlane, READER};
use crate::{run, text};

/// Waits until the API server heeds a change of rights.
pub(crate) fn wait(plane: &ControlPlane, verb: &str, resource: &str, may: bool) {
    // For kubectl, what follows a slash is the name of an object.
    let (kind, subresource) = resource.split_once('/').unwrap_or((resource, ""));
    let subresource = format!("--subresource={subresource}");
    let words = ["auth", "can-i", verb, kind, &subresource, "--all-namespaces", "--as", READER];
    let what = format!("{READER} may {verb} {resource}: {may}");
    plane.wait_until(&what, || plane.kubectl(&words).status.success() == may);
}

pub(crate) fn taken_away(plane: &ControlPlane) {
    let printed = fs::read_to_string(plane.file("rbac.yaml")).unwrap();
    let source = Source { name: "rbac.yaml".into(), text: printed };
    let all = json_objects(&[source]).unwrap();
    let role = all.iter().find(|object| object["kind"] == "ClusterRole").unwrap();
    let mut taken = BTreeSet::new();
    for (rule, name) in names(role) {
        let group = rule["apiGroups"][0].as_str().unwrap();
        // Neither is in this cluster.
        if group.ends_with("projectcalico.org") {
            continue;
        }
        let mut less = role.clone();
        for own in less["rules"].as_array_mut().unwrap() {
            if own["apiGroups"] == rule["apiGroups"] && own["verbs"] == rule["verbs"] {
                let list = if own["verbs"][0] == "get" { "resourceNames" } else { "resources" };
                own[list].as_array_mut().unwrap().retain(|own| *own != *name);
            }
        }
        // A rule without names gives all of them, and one without resources is refused.
        less["rules"]
            .as_array_mut()
            .unwrap()
            .retain(|own| own["resources"] != json!([]) && own["resourceNames"] != json!([]));
        plane.kubectl_list(&["replace"], &[less]);
        let is_get = rule["verbs"][0] == "get";
        let resource = match (is_get, group) {
            (true, _) => format!("configmaps/{name}"),
            (false, "") => name.clone(),
            (false, group) => format!("{name}.{group}"),
        };
        wait(plane, if is_get { "get" } else { "list" }, &resource, false);
        check(plane, &name, is_get);
        taken.insert(resource);
    }
    assert!(taken.len() > 20, "{taken:?}");
    plane.kubectl_list(&["replace"], std::slice::from_ref(role));
    wait(plane, "list", "pods", true);
}

/// A probe makes no call without its own rights, and says which these are. With them it gets as far
/// as the node, where no kubelet is.
pub(crate) fn of_a_probe(plane: &ControlPlane) {
    let flow = ["--from", "pod/shop/web-0", "--to", "http://10.0.0.100/"];
    let words = [&["probe"], &flow[..], &["--yes"]].concat();
    let refused = || {
        let output = run(plane, &words, READER);
        assert_eq!(output.status.code(), Some(3));
        assert!(output.stdout.is_empty());
        text(&output.stderr)
    };
    let why = refused();
    assert!(why.contains("cannot get resource \"pods/exec\""), "{why}");
    assert!(why.contains("uturn collect --rbac --probe prints the rights"), "{why}");
    let printed = run(plane, &["collect", "--rbac", "--probe"], READER).stdout;
    let source = Source { name: "rbac.yaml".into(), text: text(&printed) };
    let all = json_objects(&[source]).unwrap();
    let of_probes = |object: &&Value| object["metadata"]["name"] == "uturn-prober";
    let more: Vec<Value> = all.iter().filter(of_probes).cloned().collect();
    assert_eq!(more.len(), 2);
    plane.kubectl_list(&["create"], &more);
    let words = ["create", "clusterrolebinding", "probing-reader", "--clusterrole=uturn-prober"];
    plane.kubectl_done(&[&words[..], &["--user=reader"]].concat());
    wait(plane, "create", "pods/exec", true);
    wait(plane, "patch", "pods/ephemeralcontainers", true);
    let why = refused();
    assert!(!why.contains("forbidden"), "{why}");
}

/// The groups that the API server of the test does not serve: their kinds are not there, rather than
/// unread.
const NOT_SERVED: [&str; 7] = [
    "eks.amazonaws.com",
    "elbv2.k8s.aws",
    "gateway.envoyproxy.io",
    "gateway.networking.k8s.io",
    "gateway.nginx.org",
    "metallb.io",
    "networking.istio.io",
];

/// Every resource, and every name of a ConfigMap, with its rule.
fn names(role: &Value) -> Vec<(&Value, String)> {
    let rules = role["rules"].as_array().unwrap().iter();
    let is_served = |rule: &&Value| !NOT_SERVED.iter().any(|group| rule["apiGroups"][0] == *group);
    let rules = rules.filter(is_served);
    let names = rules.flat_map(|rule| {
        let list = if rule["verbs"][0] == "get" { "resourceNames" } else { "resources" };
        let names = rule[list].as_array().unwrap().iter();
        names.map(move |name| (rule, name.as_str().unwrap().to_owned()))
    });
    names.collect()
}

/// A scan finishes and says what is missing. Nothing that was not found before is an error now.
fn check(plane: &ControlPlane, name: &str, is_config_map: bool) {
    let output = run(plane, &["scan", "-o", "json", "--all"], READER);
    let why = text(&output.stderr);
    assert!(matches!(output.status.code(), Some(0 | 1)), "{name}: {why}");
    let scan: Value = serde_json::from_slice(&output.stdout).unwrap();
    let unread: Vec<String> = scan["unread"]
        .as_array()
        .unwrap()
        .iter()
        .map(|unread| unread["what"].as_str().unwrap().to_lowercase())
        .collect();
    // Endpoints are only asked for where there are no slices.
    if name == "endpoints" && !is_config_map {
        assert!(unread.is_empty(), "{unread:?}");
        return;
    }
    let expected =
        if is_config_map { format!("configmaps kube-system/{name}") } else { name.to_owned() };
    assert_eq!(unread, [expected]);
    assert!(why.contains("could not be read") && why.contains("uturn collect --rbac"), "{why}");
}
