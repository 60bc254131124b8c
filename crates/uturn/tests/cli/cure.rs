//! `uturn cure`: what is offered, what is refused, and what there is to apply.

use insta::assert_snapshot;
use serde_json::Value;

use super::common::{Folder, root, run, transcript, uturn};
use super::conforms::assert_conforms;

const SHOP: [&str; 3] = ["cure", "-f", "examples/shop"];

fn on_shop(args: &[&str]) -> String {
    run(&[&SHOP[..], args].concat())
}

#[test]
fn cure_of_a_finding() {
    assert_snapshot!(on_shop(&["UT101", "shop/front"]));
}

#[test]
fn cure_of_a_flow() {
    let flow = ["--from", "pod/shop/web-0", "--to", "http://shop.example.com/"];
    let printed = on_shop(&flow);
    assert!(printed.starts_with("exit 0\n"), "{printed}");
    assert!(
        printed.contains("+        rewrite name shop.example.com front.shop.svc.cluster.local")
    );
    let fine = on_shop(&["--from", "pod/shop/web-0", "--to", "svc/shop/front"]);
    assert_snapshot!("nothing_to_cure", fine);
}

#[test]
fn objects_to_apply() {
    let args = ["UT101", "shop/front", "--cure", "l7-snat", "-o", "yaml"];
    assert_snapshot!(on_shop(&args));
}

#[test]
fn what_is_applied_cures() {
    let output =
        uturn(&[&SHOP[..], &["UT101", "shop/front", "-o", "yaml"]].concat()).output().unwrap();
    let folder = Folder::new("cure-applied");
    folder.file("cure.yaml", &String::from_utf8(output.stdout).unwrap());
    // The objects as they were make way for the edited ones.
    let front = std::fs::read_to_string(root().join("examples/shop/front.yaml")).unwrap();
    let kept: Vec<&str> =
        front.split("---\n").filter(|document| !document.contains("kind: Ingress\n")).collect();
    folder.file("front.yaml", &kept.join("---\n"));
    let rest = ["api", "kube-system", "nodes", "web"]
        .map(|name| root().join(format!("examples/shop/{name}.yaml")));
    let mut command = uturn(&["scan", "-f", "front.yaml", "-f", "cure.yaml"]);
    for file in rest.iter().filter(|file| file.exists()) {
        command.arg("-f").arg(file);
    }
    let printed = transcript(&command.current_dir(&folder.0).output().unwrap());
    assert!(printed.starts_with("exit 0\n") && printed.contains("nothing found"), "{printed}");
}

#[test]
fn cure_json() {
    let output =
        uturn(&[&SHOP[..], &["UT101", "shop/front", "-o", "json"]].concat()).output().unwrap();
    let value: Value = serde_json::from_slice(&output.stdout).unwrap();
    let case = &value["cases"][0];
    assert_eq!(case["codes"], serde_json::json!(["UT101"]));
    let cures = case["cures"].as_array().unwrap();
    let mut ranks: Vec<(bool, u64)> = Vec::new();
    for cure in cures {
        for field in ["name", "title"] {
            assert!(!cure[field].as_str().unwrap().is_empty(), "{cure}");
        }
        let offered = cure["offered"].as_bool().unwrap();
        assert_eq!(offered, cure["refused"].is_null(), "{cure}");
        assert!(!offered || cure["after"]["outcomes"].is_array(), "{cure}");
        ranks.push((!offered, cure["rank"].as_u64().unwrap()));
    }
    assert!(ranks.is_sorted(), "{ranks:?}");
    assert!(cures.iter().any(|cure| cure["diff"].as_str().unwrap().contains("+++ ")));
}

/// Captured rules are those of today: what an edit leads to is what will be programmed.
#[test]
fn a_captured_cluster_is_cured() {
    let folder = Folder::new("cure-captured");
    for name in ["api", "front", "kube-system", "nodes", "web"] {
        let text =
            std::fs::read_to_string(root().join(format!("examples/shop/{name}.yaml"))).unwrap();
        folder.file(&format!("bundle/objects/{name}.yaml"), &text);
    }
    for node in ["n1", "n2", "n3"] {
        let rules = uturn(&["rules", "-f", "examples/shop", "--node", node]).output().unwrap();
        let rules = String::from_utf8(rules.stdout).unwrap();
        folder.file(&format!("bundle/nodes/{node}/iptables.save"), &rules);
    }
    let flow = ["--from", "pod/shop/web-0", "--to", "ingress/shop/front"];
    let printed = folder.run(&[&["cure", "--bundle", "bundle"], &flow[..]].concat());
    assert!(printed.starts_with("exit 0\n"), "{printed}");
    assert!(printed.contains("l7-snat\n  then      answered at once"), "{printed}");
    // A Service that one node's capture lacks is not cured by any edit.
    let lost = std::fs::read_to_string(folder.0.join("bundle/nodes/n1/iptables.save")).unwrap();
    let lost: Vec<&str> = lost.lines().filter(|line| !line.contains("172.16.12.7")).collect();
    folder.file("bundle/nodes/n1/iptables.save", &(lost.join("\n") + "\n"));
    let flow = ["--from", "node/n1", "--to", "svc/shop/front:80"];
    let printed = folder.run(&[&["cure", "--bundle", "bundle"], &flow[..]].concat());
    assert!(printed.starts_with("exit 1\n") && !printed.contains("\n1. "), "{printed}");
}

#[test]
fn what_cannot_be_cured_is_reported() {
    assert_snapshot!("no_such_code", on_shop(&["UT999", "shop/front"]));
    assert_snapshot!("no_such_finding", on_shop(&["UT102", "shop/front"]));
    assert_snapshot!("no_such_cure", on_shop(&["UT101", "shop/front", "--cure", "prayer"]));
    assert_snapshot!("half_a_question", on_shop(&["--from", "pod/shop/web-0"]));
}

/// The kernel says that it was broken before and is fine after.
#[test]
fn a_cure_is_proven_in_the_lab() {
    let args = [
        "lab",
        "run",
        "no-endpoint",
        "--nodes",
        "1",
        "--mode",
        "iptables",
        "--cure",
        "selector",
        "-o",
        "json",
    ];
    let output = uturn(&args).output().unwrap();
    if output.status.code() == Some(3) {
        let why = String::from_utf8_lossy(&output.stderr);
        return uturn_testing::skip(uturn_testing::Requirement::Kernel, "lab run --cure", why);
    }
    assert_eq!(output.status.code(), Some(0), "{}", transcript(&output));
    let value: Value = serde_json::from_slice(&output.stdout).unwrap();
    let [before, after] = value["scenarios"].as_array().unwrap().as_slice() else {
        panic!("{value}")
    };
    let outcome = |scenario: &Value| scenario["flows"][0]["measured"][0]["outcome"].clone();
    assert_eq!(outcome(before), "refused");
    assert_eq!(after["name"], "no-endpoint.selector.1.iptables");
    assert_eq!(outcome(after), "answered");
    assert_eq!(after["flows"][0]["agrees"], true);
}

#[test]
fn a_cure_that_cures_nothing_is_not_measured() {
    assert_snapshot!(run(&["lab", "run", "l7-loop", "--cure", "policy-local"]));
}

/// A whole cluster of one node in which a Service waits for an address, and an Ingress has a class
/// that its controller does not serve.
fn waiting(test: &str) -> Folder {
    let folder = Folder::new(test);
    let text = "kind: Facts
apiVersion: uturn.dev/v1alpha1
spec:
  network: {mode: global-router, podCIDRs: [10.1.0.0/16], vpcCIDRs: [10.0.0.0/16]}
  kubeProxy: {mode: iptables, version: v1.34.4}
---
apiVersion: v1
kind: Node
metadata: {name: n1}
spec: {podCIDR: 10.1.1.0/24}
status:
  conditions: [{type: Ready, status: 'True'}]
  addresses: [{type: InternalIP, address: 10.0.0.11}]
---
apiVersion: v1
kind: Pod
metadata: {name: nginx, namespace: shop, labels: {app: nginx}}
spec:
  nodeName: n1
  containers:
  - name: controller
    image: registry.k8s.io/ingress-nginx/controller:v1.12.0
    args: [/nginx-ingress-controller, --ingress-class=public]
    ports: [{containerPort: 80}]
status: {phase: Running, podIP: 10.1.1.9, conditions: [{type: Ready, status: 'True'}]}
---
apiVersion: v1
kind: Service
metadata: {name: nginx, namespace: shop}
spec:
  type: LoadBalancer
  clusterIP: 172.16.0.20
  loadBalancerClass: acme.example/lb
  allocateLoadBalancerNodePorts: false
  selector: {app: nginx}
  ports: [{port: 80}]
status: {loadBalancer: {}}
---
apiVersion: networking.k8s.io/v1
kind: IngressClass
metadata: {name: public}
spec: {controller: k8s.io/ingress-nginx}
---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: web, namespace: shop}
spec:
  ingressClassName: nginx
  defaultBackend: {service: {name: nginx, port: {number: 80}}}
";
    folder.file("all.yaml", text);
    folder
}

#[test]
fn a_fault_that_no_call_shows_has_a_cure() {
    let folder = waiting("cure-of-an-object");
    let args = ["cure", "-f", "all.yaml", "--complete", "UT403", "shop/web"];
    let printed = folder.run(&args);
    assert!(printed.starts_with("exit 0\n"), "{printed}");
    for line in [
        "ingress/shop/web (Ingress that nothing serves)\n",
        "  now       UT403: no controller serves it: its class is nginx, and Pod shop/nginx serves",
        "1. ingressClassName public for ingress/shop/web   ingress-class\n",
        "  then      the fault is gone\n",
        "    +  ingressClassName: public\n",
    ] {
        assert!(printed.contains(line), "{line}: {printed}");
    }
    let printed = folder.run(&[&args[..], &["-o", "json"]].concat());
    let (_, text) = printed.split_once("--- stdout\n").unwrap();
    let value: Value = serde_json::from_str(text).unwrap();
    assert_conforms("cure", &value);
    let cure = &value["cases"][0]["cures"][0];
    assert_eq!(cure["before"]["faults"].as_array().unwrap().len(), 1);
    assert_eq!(cure["after"]["faults"], serde_json::json!([]));
}

#[test]
fn a_fault_without_a_cure_says_what_to_look_at() {
    let folder = waiting("cure-of-nothing");
    let printed = folder.run(&["cure", "-f", "all.yaml", "--complete", "UT209", "shop/nginx"]);
    assert!(printed.starts_with("exit 1\n"), "{printed}");
    assert!(printed.contains("uturn explain UT209 has what usually helps"), "{printed}");
    assert!(printed.contains("next: kubectl describe of the Service"), "{printed}");
    assert!(!printed.contains("endpointslices"), "{printed}");
}
