//! What nodes' own rules do with the packets in which nodes wrap what goes to other nodes' pods.

use uturn_model::{Flow, Mechanism, Protocol};
use uturn_path::Engine;
use uturn_snapshot::{Manifests, Source};
use uturn_testing::manifests::{RunningPod, facts, node};

/// The mechanisms of a call from a pod of n1 to a pod of n2, whose nodes have these rules in the table
/// `filter`.
fn across(of_n1: &str, of_n2: &str) -> Vec<Mechanism> {
    let iptables = |rules: &str| format!("iptables: \"*filter\\n{rules}\\nCOMMIT\\n\"");
    let nodes = format!("nodes: {{n1: {{{}}}, n2: {{{}}}}}", iptables(of_n1), iptables(of_n2));
    let stated = ["provider: none", "kubeProxy: {mode: iptables, version: v1.34.4}", &nodes];
    let pod = |name, node, address| {
        RunningPod { name, node, address, ..RunningPod::default() }.to_string()
    };
    let text = [
        facts(&stated)
            .replace("global-router", "global-router, plugin: flannel, transport: tunnel"),
        node(1),
        node(2),
        pod("web-1", 1, "10.1.1.2"),
        pod("web-2", 2, "10.1.2.2"),
    ]
    .concat();
    let source = Source { name: "cluster.yaml".into(), text };
    let cluster = Manifests::of(vec![source]).complete_if(true).cluster().unwrap();
    let flow = Flow {
        from: "pod/shop/web-1".parse().unwrap(),
        to: "pod/shop/web-2:8080".parse().unwrap(),
        protocol: Protocol::Tcp,
    };
    Engine::new(&cluster).unwrap().verdict(&flow).unwrap().mechanisms
}

#[test]
fn a_node_s_own_rules_stop_the_tunnel() {
    let drop = |chain: &str, port: u16| format!("-A {chain} -p udp -m udp --dport {port} -j DROP");
    assert_eq!(across(&drop("INPUT", 4789), &drop("INPUT", 4789)), []);
    // Rules for what is forwarded see what was wrapped.
    assert_eq!(across("", &drop("FORWARD", 8472)), []);
    assert_eq!(across("", &drop("INPUT", 8472)), [Mechanism::Firewall]);
    assert_eq!(across(&drop("OUTPUT", 8472), ""), [Mechanism::Firewall]);
    // The answers are wrapped too.
    assert_eq!(across(&drop("INPUT", 8472), ""), [Mechanism::Firewall]);
    let accept = "-A INPUT -s 10.0.0.11/32 -p udp -m udp --dport 8472 -j ACCEPT";
    assert_eq!(across("", &format!("{accept}\\n{}", drop("INPUT", 8472))), []);
}
