//! `uturn scan --survive`: which calls break when a node or a zone is lost.

use serde_json::Value;

use super::common::{Folder, assert_has, run, uturn};

/// Three nodes in two zones. `api` runs once, on n3, and `web` on n1 and n2; a client is on n1 and n2.
fn cluster() -> String {
    let mut text = "apiVersion: uturn.dev/v1alpha1
kind: Facts
spec:
  provider: none
  network: {mode: global-router, podCIDRs: [10.1.0.0/16], vpcCIDRs: [10.0.0.0/16], serviceCIDRs: [172.20.0.0/16]}
  kubeProxy: {mode: iptables, version: v1.31.0}
"
    .to_owned();
    for (number, zone) in [(1, "a"), (2, "a"), (3, "b")] {
        text += &format!(
            "---
apiVersion: v1
kind: Node
metadata:
  name: n{number}
  labels: {{kubernetes.io/hostname: n{number}, topology.kubernetes.io/zone: {zone}}}
spec: {{podCIDRs: [10.1.{number}.0/24]}}
status:
  conditions: [{{type: Ready, status: 'True'}}]
  addresses: [{{type: InternalIP, address: 10.0.0.{number}}}]
"
        );
    }
    for (name, app, node, last) in [
        ("api-0", "api", 3, 10),
        ("web-0", "web", 1, 10),
        ("web-1", "web", 2, 10),
        ("job-0", "job", 1, 20),
        ("job-1", "job", 2, 20),
    ] {
        text += &format!(
            "---
apiVersion: v1
kind: Pod
metadata: {{name: {name}, namespace: shop, labels: {{app: {app}}}}}
spec: {{nodeName: n{node}, containers: [{{name: c, image: c, ports: [{{containerPort: 8080}}]}}]}}
status: {{phase: Running, podIP: 10.1.{node}.{last}, conditions: [{{type: Ready, status: 'True'}}]}}
"
        );
    }
    for (name, ip) in [("api", 1), ("web", 2)] {
        text += &format!(
            "---
apiVersion: v1
kind: Service
metadata: {{name: {name}, namespace: shop}}
spec: {{clusterIP: 172.20.0.{ip}, selector: {{app: {name}}}, ports: [{{port: 80, targetPort: 8080}}]}}
"
        );
    }
    text
}

fn json(args: &[&str], status: i32) -> Value {
    let output = uturn(args).output().unwrap();
    assert_eq!(output.status.code(), Some(status), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn path(folder: &Folder) -> &str {
    folder.0.to_str().unwrap()
}

fn status(args: &[&str]) -> Option<i32> {
    uturn(args).output().unwrap().status.code()
}

/// The break of an object when a node is lost.
fn of<'j>(survive: &'j Value, node: &str, object: &str) -> Option<&'j Value> {
    let losses = survive["losses"].as_array().unwrap();
    let lost =
        losses.iter().find(|loss| loss["nodes"].as_array().unwrap().contains(&node.into()))?;
    lost["breaks"].as_array().unwrap().iter().find(|own| own["subject"]["name"] == object)
}

#[test]
fn the_loss_of_the_only_endpoint_stays_and_of_one_of_two_passes() {
    let folder = Folder::of("survive-node", &[cluster()]);
    let scan = json(&["scan", "-f", path(&folder), "--survive", "node", "-o", "json"], 0);
    let survive = &scan["survive"];
    assert_eq!((&survive["unit"], &survive["count"]), (&"node".into(), &3.into()));
    let api = of(survive, "n3", "api").unwrap();
    assert_eq!(api["severity"], "warning");
    assert_eq!(api["before"]["share_failing"], 0.0);
    assert_eq!(api["at_once"]["outcomes"][0]["outcome"], "hangs");
    assert_eq!(api["at_once"]["mechanisms"][0], "node-down");
    assert_eq!(api["after_notice"]["outcomes"][0]["outcome"], "refused");
    assert_eq!(api["after_notice"]["mechanisms"][0], "no-endpoint");
    assert_eq!(api["client_count"], 4, "api-0 is lost itself");
    for node in ["n1", "n2"] {
        let web = of(survive, node, "web").unwrap();
        assert_eq!(web["severity"], "info");
        assert!((web["at_once"]["share_failing"].as_f64().unwrap() - 0.5).abs() < 1e-6);
        assert_eq!(web["after_notice"]["share_failing"], 0.0);
        assert!(of(survive, node, "api").is_none(), "api runs elsewhere");
    }
    // What stays broken is a warning.
    let warned = ["scan", "-f", path(&folder), "--survive", "node", "--fail-on", "warning"];
    assert_eq!(status(&warned), Some(1));
    assert_eq!(status(&warned[..5]), Some(0));
}

#[test]
fn a_zone_is_lost_as_a_whole() {
    let folder = Folder::of("survive-zone", &[cluster()]);
    let scan = json(&["scan", "-f", path(&folder), "--survive", "zone", "-o", "json"], 0);
    let survive = &scan["survive"];
    assert_eq!((&survive["unit"], &survive["count"]), (&"zone".into(), &2.into()));
    let web = of(survive, "n1", "web").unwrap();
    assert_eq!(web["severity"], "warning");
    assert_eq!(web["clients"], serde_json::json!(["pod/shop/api-0"]), "the others are lost");
    let losses = survive["losses"].as_array().unwrap();
    let zones: Vec<&str> = losses.iter().map(|loss| loss["zone"].as_str().unwrap()).collect();
    assert_eq!(zones.len(), 2, "{zones:?}");
}

#[test]
fn losses_are_printed_below_the_findings() {
    let folder = Folder::of("survive-text", &[cluster()]);
    let text = run(&["scan", "-f", path(&folder), "--survive", "node"]);
    let text = text.replace(path(&folder), "FOLDER");
    insta::assert_snapshot!("survive", text);
    let zones = run(&["scan", "-f", path(&folder), "--survive", "zone", "-o", "wide"]);
    assert_has(&zones, &["zone a (2 nodes)", "pod/shop/api-0", "svc/shop/web :80"]);
}

#[test]
fn a_load_balancer_tries_the_next_target_until_it_has_noticed() {
    let scan = json(&["scan", "-f", "examples/shop", "--survive", "node", "-o", "json"], 1);
    let survive = &scan["survive"];
    let losses = survive["losses"].as_array().unwrap();
    let breaks = losses.iter().flat_map(|loss| loss["breaks"].as_array().unwrap());
    let mut waits = breaks.filter(|own| own["subject"]["kind"] == "Ingress").filter(|own| {
        let outcomes = own["at_once"]["outcomes"].as_array().unwrap();
        outcomes.iter().any(|end| end["outcome"] == "answered" && end["after_ms"] == 4000)
    });
    let passing = waits.next().expect("the Ingress is answered after 4 s");
    assert_eq!(passing["after_notice"]["share_failing"], 0.0);
}

#[test]
fn what_cannot_be_lost_or_shown_is_said() {
    let folder = Folder::of("survive-usage", &[cluster().replace("topology.", "other.")]);
    let text = run(&["scan", "-f", path(&folder), "--survive", "zone"]);
    assert_has(&text, &["no zone can be lost"]);
    let supposed = run(&["scan", "-f", "examples/pull-request", "--survive", "node"]);
    assert_has(&supposed, &["no node is given"]);
    let sarif = ["scan", "-f", path(&folder), "--survive", "node", "-o", "sarif"];
    assert_eq!(status(&sarif), Some(2));
    assert_eq!(status(&["scan", "-f", path(&folder), "--survive", "rack"]), Some(2));
}
