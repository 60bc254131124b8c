//! Captures of nodes win over what would be compiled for them.
#![allow(clippy::unwrap_used, reason = "what is wrong here fails the test")]

use std::fs;
use std::path::PathBuf;

use uturn_model::{Mechanism, Outcome};
use uturn_path::Engine;
use uturn_snapshot::load_with_bundles;

const OBJECTS: &str = "
apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: Node, metadata: {name: n1}, spec: {podCIDR: 10.1.1.0/24}, status: {addresses: [{type: InternalIP, address: 10.0.0.11}]}}
- {apiVersion: v1, kind: Node, metadata: {name: n2}, spec: {podCIDR: 10.1.2.0/24}, status: {addresses: [{type: InternalIP, address: 10.0.0.12}]}}
- apiVersion: v1
  kind: Pod
  metadata: {name: client, namespace: shop}
  spec: {nodeName: n1, containers: [{name: c, image: c}]}
  status: {phase: Running, podIP: 10.1.1.10}
- apiVersion: v1
  kind: Pod
  metadata: {name: web, namespace: shop, labels: {app: web}}
  spec: {nodeName: n2, containers: [{name: c, image: c, ports: [{containerPort: 8080}]}]}
  status: {phase: Running, podIP: 10.1.2.20, conditions: [{type: Ready, status: \"True\"}]}
- apiVersion: v1
  kind: Service
  metadata: {name: web, namespace: shop}
  spec: {clusterIP: 172.16.0.10, selector: {app: web}, ports: [{port: 80, targetPort: 8080}]}
---
apiVersion: uturn.dev/v1alpha1
kind: Facts
spec:
  network: {mode: global-router, podCIDRs: [10.1.0.0/16], serviceCIDRs: [172.16.0.0/16], vpcCIDRs: [10.0.0.0/16]}
  kubeProxy: {mode: iptables, version: v1.34.4}
";

/// A bundle in a folder that goes with it.
struct Bundle(PathBuf);

impl Bundle {
    fn new(name: &str, capture: &[(&str, &str)]) -> Self {
        let folder = std::env::temp_dir().join(format!("uturn-{name}-{}", std::process::id()));
        fs::create_dir_all(folder.join("nodes/n1")).unwrap();
        fs::write(folder.join("objects.yaml"), OBJECTS).unwrap();
        for (file, text) in capture {
            fs::write(folder.join("nodes/n1").join(file), text).unwrap();
        }
        Self(folder)
    }

    fn ends(&self) -> (Outcome, Vec<Mechanism>, String) {
        let loaded = load_with_bundles(&[], std::slice::from_ref(&self.0)).unwrap();
        let engine = Engine::new(&loaded.cluster).unwrap();
        let flow = uturn_model::Flow {
            from: "pod/shop/client".parse().unwrap(),
            to: "svc/shop/web".parse().unwrap(),
            protocol: uturn_model::Protocol::Tcp,
        };
        let verdict = engine.verdict(&flow).unwrap();
        let hops = format!("{:?}", verdict.routes[0].hops);
        (verdict.outcomes[0].0, verdict.mechanisms, hops)
    }
}

impl Drop for Bundle {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

const RULES: &str = "*nat
:PREROUTING ACCEPT [0:0]
:KUBE-SERVICES - [0:0]
-A PREROUTING -j KUBE-SERVICES
-A KUBE-SERVICES -d 172.16.0.10/32 -p tcp -m tcp --dport 80 -j DNAT --to-destination 10.1.2.20:8080
COMMIT
";

#[test]
fn the_rules_of_a_capture_are_walked() {
    let (outcome, _, hops) = Bundle::new("walked", &[("iptables.save", RULES)]).ends();
    assert_eq!(outcome, Outcome::AT_ONCE);
    assert!(hops.contains("nodes/n1/iptables.save"), "{hops}");
}

#[test]
fn what_a_capture_lacks_is_missing() {
    let empty = "*nat\n:PREROUTING ACCEPT [0:0]\nCOMMIT\n";
    let (outcome, mechanisms, _) = Bundle::new("lacks", &[("iptables.save", empty)]).ends();
    assert_eq!((outcome, mechanisms), (Outcome::Hangs, vec![Mechanism::RuleMissing]));
}

#[test]
fn interfaces_of_a_capture_are_its_own() {
    let addresses = "1: lo: <LOOPBACK,UP,LOWER_UP> mtu 65536 qdisc noqueue state UNKNOWN group default qlen 1000
    inet 127.0.0.1/8 scope host lo
2: ens5: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 1500 qdisc fq_codel state UP group default qlen 1000
    inet 10.0.0.11/24 brd 10.0.0.255 scope global ens5
3: cni0: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 1500 qdisc noqueue state UP group default qlen 1000
    inet 10.1.1.1/24 brd 10.1.1.255 scope global cni0
";
    let routes = "default via 10.0.0.1 dev ens5\n10.0.0.0/24 dev ens5 scope link src 10.0.0.11\n\
                  10.1.1.0/24 dev cni0 scope link src 10.1.1.1\n";
    let files = [("iptables.save", RULES), ("addr", addresses), ("route", routes)];
    let (outcome, _, hops) = Bundle::new("links", &files).ends();
    assert_eq!(outcome, Outcome::AT_ONCE, "{hops}");
    assert!(hops.contains("ens5"), "{hops}");
    let closed = [("sysctl", "net.ipv4.ip_forward = 0\n")];
    let files = [files.as_slice(), &closed].concat();
    let (outcome, mechanisms, hops) = Bundle::new("closed", &files).ends();
    assert_eq!(outcome, Outcome::Hangs, "{hops}");
    assert_eq!(mechanisms, [Mechanism::CrossNode]);
}

/// [`RULES`] with a table before it: nine chains that each lead to the next one twice, the last with
/// these rules.
fn nine_chains(last: &[String]) -> String {
    let mut text = "*mangle\n:PREROUTING ACCEPT [0:0]\n".to_owned();
    (0..9).for_each(|level| text.push_str(&format!(":C{level} - [0:0]\n")));
    text.push_str("-A PREROUTING -j C0\n");
    for level in 1..9 {
        text.push_str(&format!("-A C{} -j C{level}\n", level - 1).repeat(2));
    }
    last.iter().for_each(|rule| text.push_str(&format!("-A C8 {rule}\n")));
    format!("{text}COMMIT\n{RULES}")
}

#[test]
fn rules_that_double_the_ways_do_not_double_the_work() {
    let half = "-m statistic --mode random --probability 0.50000000000";
    let mark = |bit: u32| format!("{half} -j MARK --set-xmark {:#x}/{:#x}", 1 << bit, 1 << bit);
    for (at, last) in [
        vec![format!("{half} -j RETURN")],
        vec![mark(0), mark(1)],
        vec!["-p tcp -m osf --genre Linux --ttl 1 -j RETURN".to_owned()],
    ]
    .iter()
    .enumerate()
    {
        let bundle = Bundle::new(&format!("twice-{at}"), &[("iptables.save", &nine_chains(last))]);
        let (outcome, mechanisms, hops) = bundle.ends();
        assert_eq!((outcome, mechanisms), (Outcome::AT_ONCE, vec![]), "{hops}");
    }
    // Branches that all differ: what becomes of the call is not known, and the rule is named.
    let marks: Vec<String> = (0..30).map(mark).collect();
    let bundle = Bundle::new("too-many", &[("iptables.save", &nine_chains(&marks))]);
    let (outcome, mechanisms, hops) = bundle.ends();
    assert_eq!((outcome, mechanisms), (Outcome::Unknown, vec![Mechanism::NotModelled]));
    assert!(hops.contains("too many"), "{hops}");
    assert!(hops.contains("-A C8 -m statistic"), "{hops}");
}
