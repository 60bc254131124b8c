//! Pods without an address, as in every cluster where pods are being made: they change nothing of
//! what is said of the others.

use serde_json::Value;

use super::common::Folder;
use super::conforms::assert_conforms;
use super::shop::shop_with;

/// A pod on a node, by its name, labels, phase and addresses.
fn pod(name: &str, app: &str, phase: &str, ips: &[&str]) -> String {
    let ips: Vec<String> = ips.iter().map(|ip| format!("{{ip: \"{ip}\"}}")).collect();
    format!(
        "---
apiVersion: v1
kind: Pod
metadata:
  name: {name}
  namespace: shop
  labels: {{app: {app}}}
  ownerReferences: [{{apiVersion: apps/v1, kind: ReplicaSet, name: api-5d8c7f4b6d, controller: true}}]
spec:
  nodeName: n1
  containers: [{{name: c, image: c, ports: [{{name: http, containerPort: 8081}}]}}]
status:
  phase: {phase}
  podIPs: [{}]
  conditions: [{{type: Ready, status: \"False\"}}, {{type: PodScheduled, status: \"True\"}}]
",
        ips.join(", ")
    )
}

/// The shop while more pods of it are made, and after some have ended.
fn busy_shop(test: &str) -> Folder {
    let folder = shop_with(test, 0, |_| "front");
    let pods = [
        pod("aa-made", "api", "Pending", &[]),
        pod("api-2", "api", "Pending", &[]),
        pod("evicted", "api", "Failed", &[]),
        pod("ended", "api", "Succeeded", &[]),
        pod("six", "other", "Running", &["fd00:1::9"]),
    ];
    folder.file("pods.yaml", &pods.concat());
    folder
}

/// What a scan says of the shop, without the pods that are being made.
fn scan(folder: &Folder, more: &[&str]) -> Value {
    let printed = folder.run(&[&["scan", "-q", "-f", ".", "-o", "json"], more].concat());
    let (exit, text) = printed.split_once("\n--- stdout\n").unwrap();
    assert_eq!(exit, "exit 1", "{printed}");
    let scan: Value = serde_json::from_str(text).unwrap();
    assert_conforms("scan", &scan);
    scan
}

#[test]
fn a_scan_judges_the_others_and_names_those_without_an_address() {
    let (calm, busy) = (shop_with("pending-calm", 0, |_| "front"), busy_shop("pending-busy"));
    for more in [&[][..], &["--exhaustive"]] {
        let (calm, busy) = (scan(&calm, more), scan(&busy, more));
        for field in ["flows", "fine", "open", "findings", "not_judged"] {
            assert_eq!(calm[field], busy[field], "{field}");
        }
        assert_eq!(calm["without_address"], Value::Array(Vec::new()));
        let without = serde_json::json!(["pod/shop/aa-made", "pod/shop/api-2"]);
        assert_eq!(busy["without_address"], without);
    }
    let text = busy.run(&["scan", "-q", "-f", "."]);
    let line =
        "\nnot judged: the calls of 2 pods that have no address yet: shop/aa-made, shop/api-2\n";
    assert!(text.contains(line), "{text}");
    assert!(!calm.run(&["scan", "-q", "-f", "."]).contains("no address yet"));
}

#[test]
fn other_commands_go_on_beside_them() {
    let (calm, busy) = (shop_with("pending-calm-2", 0, |_| "front"), busy_shop("pending-busy-2"));
    for command in [
        &["check", "service", "shop/api", "-f", "."][..],
        &["check", "ingress", "shop/front", "-f", "."],
        &["check", "dns", "-f", "."],
        &["cure", "-f", ".", "--from", "pod/shop/front-0", "--to", "ingress/shop/front"],
        &["scan", "-f", ".", "--explain-classes"],
        &["trace", "-f", ".", "--from", "deploy/shop/api", "--to", "ingress/shop/front"],
    ] {
        let before = calm.run(command);
        assert!(!before.starts_with("exit 2\n"), "{command:?}: {before}");
        assert_eq!(before, busy.run(command), "{command:?}");
    }
}

#[test]
fn a_trace_says_that_the_pod_has_no_address() {
    let busy = busy_shop("pending-trace");
    let trace = |from, to| busy.run(&["trace", "-q", "-f", ".", "--from", from, "--to", to]);
    let from = trace("pod/shop/api-2", "svc/shop/front:80");
    assert!(from.starts_with("exit 2\n"), "{from}");
    assert!(from.contains("pod/shop/api-2 has no IPv4 address"), "{from}");
    let to = trace("pod/shop/front-0", "pod/shop/api-2:8081");
    assert!(to.starts_with("exit 2\n"), "{to}");
    assert!(to.contains("Pod shop/api-2 has no address yet"), "{to}");
}
