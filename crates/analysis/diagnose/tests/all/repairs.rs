//! What is written wrong is put right, in the place where it is written.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on panics")]

use uturn_diagnose::cure::{self, Case, Cure, TrialBase};
use uturn_diagnose::{Code, diagnose};
use uturn_model::{Flow, Protocol};
use uturn_path::Engine;
use uturn_scan::{FewCalls, Scanner};
use uturn_snapshot::{Manifests, Source};
use uturn_testing::manifests::{facts, node};

/// Two nodes, a Service behind a public Ingress; nothing is wrong with it.
const SHOP: &str = "---
apiVersion: v1
kind: Service
metadata: {name: web, namespace: shop}
spec:
  type: NodePort
  clusterIP: 172.16.0.10
  selector: {app: web}
  ports:
  - {port: 80, targetPort: http, nodePort: 30080}
---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: front, namespace: shop}
spec:
  rules:
  - http:
      paths:
      - path: /
        pathType: Prefix
        backend:
          service:
            name: web
            port: {number: 80}
status: {loadBalancer: {ingress: [{ip: 203.0.113.100}]}}
---
apiVersion: v1
kind: Pod
metadata: {name: web-1, namespace: shop, labels: {app: web}}
spec: {nodeName: n1, containers: [{name: c, image: c, ports: [{name: http, containerPort: 8080}]}]}
status: {phase: Running, podIP: 10.1.1.20, conditions: [{type: Ready, status: \"True\"}]}
---
apiVersion: v1
kind: Pod
metadata: {name: client, namespace: shop, labels: {app: client}}
spec: {nodeName: n2, containers: [{name: c, image: c}]}
status: {phase: Running, podIP: 10.1.2.10, conditions: [{type: Ready, status: \"True\"}]}
";

fn shop() -> String {
    let kube_proxy = "kubeProxy: {mode: iptables, version: v1.34.4}";
    [&facts(&["provider: tke", kube_proxy]), SHOP, &node(1), &node(2)].concat()
}

/// The shop with something else in a place, what is found there, and the cures.
fn spoilt(from: &str, to: &str, from_client: &str, destination: &str) -> (Vec<Code>, Vec<Cure>) {
    let shop = shop();
    assert_eq!(shop.matches(from).count(), 1, "{from}");
    let text = shop.replace(from, to);
    let manifests =
        Manifests::of(vec![Source { name: "shop.yaml".into(), text }]).complete_if(true);
    let cluster = manifests.cluster().unwrap();
    let engine = Engine::new(&cluster).unwrap();
    let scanner = Scanner::new(&engine);
    let found = diagnose(&scanner, &scanner.scan(&scanner.targets()).unwrap()).unwrap();
    let flow = Flow {
        from: from_client.parse().unwrap(),
        to: destination.parse().unwrap(),
        protocol: Protocol::Tcp,
    };
    let case = Case::flow(&manifests, &FewCalls::new(&engine), flow).unwrap();
    let cures = cure::cures(&TrialBase::new(&manifests, &engine), &case);
    (found.iter().map(|finding| finding.code).collect(), cures)
}

/// What is offered first changes these lines.
fn repaired(cures: &[Cure], name: &str) -> Vec<String> {
    let first = cures.iter().find(|cure| cure.is_offered() && !cure.is_callers());
    let first = first.unwrap_or_else(|| panic!("nothing is offered: {cures:#?}"));
    assert_eq!(first.name, name);
    assert!(first.after.as_ref().unwrap().is_fine());
    let lines = first.diffs[0].lines().skip(2).filter(|line| line.starts_with(['+', '-']));
    lines.map(str::to_owned).collect()
}

fn code(text: &str) -> Code {
    text.parse().unwrap()
}

const OUTSIDE: (&str, &str) = ("outside", "http://203.0.113.100/");
const INSIDE: (&str, &str) = ("pod/shop/client", "svc/shop/web:80");

#[test]
fn nothing_is_found_where_nothing_is_wrong() {
    let (codes, cures) = spoilt("name: client", "name: client", OUTSIDE.0, OUTSIDE.1);
    assert!(codes.is_empty() && cures.is_empty(), "{codes:?} {cures:?}");
}

#[test]
fn a_backend_port_that_the_service_lacks() {
    let (codes, cures) = spoilt("number: 80}", "number: 8080}", OUTSIDE.0, OUTSIDE.1);
    assert!(codes.contains(&code("UT402")), "{codes:?}");
    assert_eq!(
        repaired(&cures, "ingress-backend"),
        ["-            port: {number: 8080}", "+            port: {number: 80}"]
    );
}

#[test]
fn a_backend_that_is_spelt_wrong() {
    let (codes, cures) =
        spoilt("            name: web\n", "            name: wbe\n", OUTSIDE.0, OUTSIDE.1);
    assert!(codes.contains(&code("UT402")), "{codes:?}");
    assert_eq!(
        repaired(&cures, "ingress-backend"),
        ["-            name: wbe", "+            name: web"]
    );
}

#[test]
fn a_service_without_node_ports_behind_an_ingress() {
    let spec = "  type: NodePort
  clusterIP: 172.16.0.10
  selector: {app: web}
  ports:
  - {port: 80, targetPort: http, nodePort: 30080}
";
    let plain = spec.replace("NodePort\n", "ClusterIP\n").replace(", nodePort: 30080", "");
    let (codes, cures) = spoilt(spec, &plain, OUTSIDE.0, OUTSIDE.1);
    assert!(codes.contains(&code("UT203")), "{codes:?}");
    assert_eq!(repaired(&cures, "node-port"), ["-  type: ClusterIP", "+  type: NodePort"]);
}

#[test]
fn a_selector_that_selects_nothing() {
    let (codes, cures) = spoilt("selector: {app: web}", "selector: {app: wep}", INSIDE.0, INSIDE.1);
    assert!(codes.contains(&code("UT311")), "{codes:?}");
    assert_eq!(
        repaired(&cures, "selector"),
        ["-  selector: {app: wep}", "+  selector: {app: web}"]
    );
}

#[test]
fn a_target_port_that_no_pod_has() {
    let (codes, cures) = spoilt("targetPort: http", "targetPort: web", INSIDE.0, INSIDE.1);
    assert!(codes.contains(&code("UT313")), "{codes:?}");
    assert_eq!(
        repaired(&cures, "target-port"),
        [
            "-  - {port: 80, targetPort: web, nodePort: 30080}",
            "+  - {port: 80, targetPort: http, nodePort: 30080}",
        ]
    );
}

#[test]
fn an_endpoint_slice_follows_its_service() {
    let slice = "---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: web-x, namespace: shop, labels: {kubernetes.io/service-name: web}}
addressType: IPv4
ports: [{port: 9090, protocol: TCP}]
endpoints:
- {addresses: [10.1.1.20], nodeName: n1, conditions: {ready: true}}
---
apiVersion: v1
kind: Node
metadata: {name: n1}";
    let from = "---\napiVersion: v1\nkind: Node\nmetadata: {name: n1}";
    let text = shop().replace("targetPort: http", "targetPort: 9090").replace(from, slice);
    // Facts state that no process listens there.
    let only = "apiVersion: uturn.dev/v1alpha1\nkind: Facts\nspec: {declaredPortsOnly: true}\n";
    let text = format!("{text}---\n{only}");
    let manifests =
        Manifests::of(vec![Source { name: "shop.yaml".into(), text }]).complete_if(true);
    let cluster = manifests.cluster().unwrap();
    let engine = Engine::new(&cluster).unwrap();
    let flow = Flow {
        from: INSIDE.0.parse().unwrap(),
        to: INSIDE.1.parse().unwrap(),
        protocol: Protocol::Tcp,
    };
    let case = Case::flow(&manifests, &FewCalls::new(&engine), flow).unwrap();
    let cures = cure::cures(&TrialBase::new(&manifests, &engine), &case);
    // The user edits the Service only; the slice is Kubernetes' to change.
    assert_eq!(
        repaired(&cures, "target-port"),
        [
            "-  - {port: 80, targetPort: 9090, nodePort: 30080}",
            "+  - {port: 80, targetPort: http, nodePort: 30080}",
        ]
    );
}

#[test]
fn a_port_that_the_service_does_not_have() {
    let (_, cures) = spoilt("name: client", "name: client", INSIDE.0, "svc/shop/web:8080");
    let offered: Vec<&str> =
        cures.iter().filter(|cure| cure.is_offered()).map(|cure| &*cure.title).collect();
    assert_eq!(offered, ["call svc/shop/web:80"]);
}

/// The command for a rule that stops calls names its table, unless iptables means that one anyway.
#[test]
fn a_rule_of_the_firewall_is_put_into_its_table() {
    let rule = "-A FORWARD -p tcp -m tcp --dport 8080 -j DROP";
    let passing = "-I FORWARD -p tcp -m tcp --dport 8080 -j ACCEPT";
    for (text, command) in [
        (format!("*filter\n{rule}\nCOMMIT"), format!("on n1: iptables {passing}")),
        (format!("*mangle\n{rule}\nCOMMIT"), format!("on n1: iptables -t mangle {passing}")),
        (
            format!(
                "*filter\n-A INPUT -p udp -m udp --dport 9 -j DROP\nCOMMIT\n*security\n{rule}\nCOMMIT"
            ),
            format!("on n1: iptables -t security {passing}"),
        ),
        (format!("*raw\nCOMMIT\n*filter\n{rule}\nCOMMIT"), format!("on n1: iptables {passing}")),
    ] {
        let kube_proxy = "kubeProxy: {mode: iptables, version: v1.34.4}";
        let lines: String = text.lines().map(|line| format!("\n        {line}")).collect();
        let with_rules = format!("{kube_proxy}\n  nodes:\n    n1:\n      iptables: |{lines}");
        let (_, cures) = spoilt(kube_proxy, &with_rules, INSIDE.0, INSIDE.1);
        let offered = cures.iter().find(|cure| cure.is_offered() && cure.name == "node-firewall");
        let offered = offered.unwrap_or_else(|| panic!("{text}: {cures:#?}"));
        let commands: Vec<String> = offered.commands.iter().map(ToString::to_string).collect();
        assert_eq!(commands, [command], "{text}");
    }
}
