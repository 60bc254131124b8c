//! `uturn migrate`: what moves that many people make do to calls, and what to look at besides.

use serde_json::Value;

use super::common::{Folder, assert_has, run, uturn};

fn json(args: &[&str], status: i32) -> Value {
    let output = uturn(args).output().unwrap();
    assert_eq!(output.status.code(), Some(status), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn status(args: &[&str]) -> Option<i32> {
    uturn(args).output().unwrap().status.code()
}

#[test]
fn presets_are_listed() {
    insta::assert_snapshot!("migrate_list", run(&["migrate"]));
    let list = json(&["migrate", "-o", "json"], 0);
    let names: Vec<&str> = list["presets"]
        .as_array()
        .unwrap()
        .iter()
        .map(|own| own["preset"].as_str().unwrap())
        .collect();
    assert!(names.contains(&"ipvs-to-nftables") && names.len() == 10, "{names:?}");
}

/// Each preset that needs no objects runs, and has the JSON of `whatif` with its checks.
#[test]
fn each_preset_says_what_changes_and_what_to_look_at() {
    let list = json(&["migrate", "-o", "json"], 0);
    for preset in list["presets"].as_array().unwrap() {
        let name = preset["preset"].as_str().unwrap();
        let args = ["migrate", name, "-f", "examples/shop", "--fail-on", "never", "-o", "json"];
        if preset["needs_objects"] == true {
            assert_eq!(status(&args), Some(2), "{name} needs -p");
            continue;
        }
        let tried = json(&args, 0);
        assert_eq!(tried["preset"], name);
        for list in ["checks", "not_modelled"] {
            assert!(!tried[list].as_array().unwrap().is_empty(), "{name} {list}");
        }
        for list in ["changes", "worse", "better", "other", "not_judged"] {
            assert!(tried[list].is_array(), "{name} {list}");
        }
        let page = run(&["migrate", name, "--page"]);
        assert_has(&page, &[&format!("# {name}: "), "## Look at besides", "## Not modelled"]);
    }
}

#[test]
fn a_policy_is_changed_for_the_services_that_are_named() {
    let only =
        ["migrate", "policy-cluster-to-local", "-f", "examples/shop", "--only", "svc/shop/front"];
    let text = run(&only);
    assert_has(
        &text,
        &[
            "exit 1",
            "policy-cluster-to-local: externalTrafficPolicy from Cluster to Local",
            "worse: ",
            "UT102",
            "Look at besides:",
            "  health-check node ports: ",
            "    kubectl get service NAME -o jsonpath='{.spec.healthCheckNodePort}'",
            "Not modelled:",
        ],
    );
    let tried = json(&[&only[..], &["-o", "json"]].concat(), 1);
    let changes = tried["changes"].as_array().unwrap();
    assert_eq!(changes.len(), 1);
    assert_eq!(changes[0]["change"], "--set svc/shop/front:spec.externalTrafficPolicy=Local");
    assert!(!tried["worse"].as_array().unwrap().is_empty());
}

#[test]
fn new_objects_are_given_with_a_move_that_needs_them() {
    let folder = Folder::of(
        "migrate-objects",
        &["{apiVersion: v1, kind: Service, metadata: {name: new, namespace: shop}, spec: {clusterIP: \
           172.16.9.9, selector: {app: front}, ports: [{port: 80, targetPort: 8080}]}}\n"
            .to_owned()],
    );
    let path = folder.0.to_str().unwrap();
    let tried = json(
        &["migrate", "ingress-nginx-to-gateway", "-f", "examples/shop", "-p", path, "-o", "json"],
        0,
    );
    assert_eq!(tried["preset"], "ingress-nginx-to-gateway");
    assert_eq!(tried["other"][0]["effect"], "new");
}

/// Layer-7 listeners that keep no connections open get it, at their place in the object.
#[test]
fn listeners_are_changed_in_the_object_of_their_ingress() {
    let config = "
apiVersion: cloud.tencent.com/v1alpha1
kind: TkeServiceConfig
metadata: {name: front, namespace: shop}
spec:
  loadBalancer:
    l7Listeners:
    - {protocol: HTTPS, port: 443, keepaliveEnable: 1}
    - {protocol: HTTP, port: 80}
";
    let folder = Folder::of("migrate-config", &[config.to_owned()]);
    let path = folder.0.to_str().unwrap();
    let args = ["migrate", "keepalive-0-to-1", "-f", "examples/shop", "-f", path, "-o", "json"];
    let tried = json(&args, 0);
    let changes: Vec<&str> = tried["changes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|own| own["change"].as_str().unwrap())
        .collect();
    assert_eq!(
        changes,
        ["--set tkeserviceconfig/shop/front:spec.loadBalancer.l7Listeners[1].keepaliveEnable=1"]
    );
}

#[test]
fn what_does_not_fit_is_refused() {
    let refused = |args: &[&str], said: &str| {
        let text = run(&[&["migrate"], args, &["-f", "examples/shop"]].concat());
        assert_has(&text, &["exit 2", said]);
    };
    refused(&["ipvs-to-nftable"], "did you mean ipvs-to-nftables?");
    refused(&["ipvs-to-nftables", "--only", "svc/shop/front"], "changes the cluster as a whole");
    refused(&["policy-local-to-cluster", "--only", "svc/shop/front"], "does not apply to it");
    refused(&["policy-cluster-to-local", "--only", "front"], "--only");
    refused(&["ingress-nginx-to-gateway"], "-p FILE");
}
