//! Load balancers that no Service owns, from Facts to outcomes: an API server's, and one that was
//! made by hand in front of node ports.

#![allow(clippy::unwrap_used, reason = "what is wrong here fails the test")]

use uturn_model::lb::Delivery;
use uturn_model::{Cluster, Flow, Mechanism, Outcome, Protocol, Verdict};
use uturn_path::Engine;
use uturn_snapshot::Source;
use uturn_testing::manifests::{ReadyNode, RunningPod};

const VIP: &str = "10.0.0.100";
const CONTROL_PLANE: &str = "{nodeLabels: {node-role.kubernetes.io/control-plane: ''}}";

/// Three nodes of the control plane (`n1` to `n3`) and two workers, each with a client in a network
/// of its own and one in its node's.
struct Case {
    /// What Facts state of the load balancer besides its address.
    balancer: String,
    /// What Facts state of nodes.
    nodes: &'static str,
    /// More objects.
    more: String,
}

impl Case {
    fn api(balancer: &str) -> Self {
        let balancer = format!("{balancer}, listeners: [{{port: 6443, targets: {CONTROL_PLANE}}}]");
        Self { balancer, nodes: "{}", more: String::new() }
    }

    fn text(&self) -> String {
        let mut text = format!(
            "apiVersion: uturn.dev/v1alpha1\nkind: Facts\nspec:\n  provider: none\n  network: {{mode: \
             global-router, masquerade: true, nonMasqueradeCIDRs: [10.1.0.0/16], podCIDRs: [10.1.0.0/16], vpcCIDRs: [10.0.0.0/16], serviceCIDRs: \
             [172.20.0.0/16]}}\n  kubeProxy: {{mode: iptables, version: v1.34.4}}\n  nodes: {}\n  \
             loadBalancers: [{{{}}}]\n",
            self.nodes, self.balancer
        );
        for node in 1..=5 {
            let role = if node <= 3 { "node-role.kubernetes.io/control-plane: ''" } else { "" };
            let node_object = ReadyNode {
                number: node,
                address: &format!("10.0.0.{node}"),
                labels: role,
                spec: &format!("podCIDRs: [10.1.{node}.0/24]"),
                ..ReadyNode::default()
            };
            text += &node_object.to_string();
            text += &pod(&format!("client-{node}"), node, &format!("10.1.{node}.9"), 8080);
            text += &pod(&format!("host-{node}"), node, &format!("10.0.0.{node}"), 9100);
        }
        text + &self.more
    }

    fn cluster(&self) -> Cluster {
        let source = Source { name: "cluster.yaml".into(), text: self.text() };
        uturn_snapshot::read(vec![source]).unwrap().cluster
    }

    fn call(&self, from: &str, to: &str) -> Verdict {
        let cluster = self.cluster();
        let engine = Engine::new(&cluster).unwrap();
        let flow =
            Flow { from: from.parse().unwrap(), to: to.parse().unwrap(), protocol: Protocol::Tcp };
        engine.verdict(&flow).unwrap()
    }

    /// How much of a client's calls of the load balancer is answered, in hundredths.
    fn answered(&self, from: &str, port: u16) -> u32 {
        percent(&self.call(from, &format!("{VIP}:{port}")), |end| end.is_answered())
    }

    fn faults(&self) -> Vec<String> {
        let source = Source { name: "cluster.yaml".into(), text: self.text() };
        let faults = uturn_snapshot::read(vec![source]).unwrap_err();
        faults.iter().map(ToString::to_string).collect()
    }
}

fn percent(verdict: &Verdict, is_it: impl Fn(Outcome) -> bool) -> u32 {
    let ends = verdict.outcomes.iter().filter(|end| is_it(end.0));
    ends.map(|end| (end.1.get() * 100.0).round() as u32).sum()
}

/// A pod that is ready; one with an address of a node is in that node's network.
fn pod(name: &str, node: u32, address: &str, port: u16) -> String {
    let (namespace, host_network) = ("kube-system", address.starts_with("10.0."));
    let ports = &*format!("{{containerPort: {port}}}");
    RunningPod { namespace, name, node, address, host_network, ports, ..RunningPod::default() }
        .to_string()
}

/// A target's own call comes back to it once in three: the classical loopback of an API server.
#[test]
fn a_target_that_is_sent_to_itself_hangs_where_the_source_is_kept() {
    let case = Case::api(&format!("vip: {VIP}, product: AWS NLB"));
    for client in ["node/n1", "pod/kube-system/host-2", "pod/kube-system/client-3"] {
        assert_eq!(case.answered(client, 6443), 67, "{client}");
    }
    for client in ["node/n4", "pod/kube-system/client-5", "pod/kube-system/host-4"] {
        assert_eq!(case.answered(client, 6443), 100, "{client}");
    }
    let mechanisms = |from| case.call(from, &format!("{VIP}:6443")).mechanisms;
    assert_eq!(mechanisms("node/n1"), [Mechanism::LocalSourceDrop]);
    assert_eq!(mechanisms("pod/kube-system/client-1"), [Mechanism::LocalSourceDrop]);
}

#[test]
fn one_that_replaces_the_source_answers_everyone() {
    let case = Case {
        balancer: format!(
            "vip: {VIP}, listeners: [{{port: 6443, snat: true, targets: {CONTROL_PLANE}}}]"
        ),
        ..Case::api("")
    };
    for client in ["node/n1", "node/n5", "pod/kube-system/client-2"] {
        assert_eq!(case.answered(client, 6443), 100, "{client}");
    }
}

/// The guest agent gives every backend the address: it answers itself, and never asks another.
#[test]
fn a_target_that_holds_the_address_always_answers_itself() {
    let case = Case::api(&format!("vip: {VIP}, product: Google Cloud passthrough load balancer"));
    let verdict = case.call("node/n1", &format!("{VIP}:6443"));
    assert_eq!(percent(&verdict, |end| end.is_answered()), 100, "{verdict:?}");
    assert!(!format!("{:?}", verdict.routes).contains("LoadBalancer"), "{verdict:?}");
    assert_eq!(case.answered("pod/kube-system/client-2", 6443), 100);
    assert_eq!(case.answered("node/n5", 6443), 100);
}

/// While its own API server does not run yet, a joining node that is a target already finds none.
#[test]
fn a_target_that_joins_is_refused_by_itself() {
    let api =
        |node: u32| pod(&format!("kube-apiserver-n{node}"), node, &format!("10.0.0.{node}"), 6443);
    let mut case =
        Case::api(&format!("vip: {VIP}, product: Google Cloud passthrough load balancer"));
    case.more = api(1) + &api(2);
    let mut cluster = case.cluster();
    cluster.extent.pods = true;
    let engine = Engine::new(&cluster).unwrap();
    let call = |from: &str| {
        let to = format!("{VIP}:6443").parse().unwrap();
        let flow = Flow { from: from.parse().unwrap(), to, protocol: Protocol::Tcp };
        engine.verdict(&flow).unwrap()
    };
    assert_eq!(percent(&call("node/n3"), |end| end == Outcome::Refused), 100);
    assert_eq!(percent(&call("node/n2"), |end| end.is_answered()), 100);
    // Its health checks leave it out for everyone else.
    assert_eq!(percent(&call("node/n4"), |end| end.is_answered()), 100);
}

/// Direct server return: the director sends packets on as they are, and real servers hold the
/// address.
#[test]
fn real_servers_answer_themselves_and_others_answer_by_direct_return() {
    let lvs = "snat: false, delivery: keeps-address, healthCheck: false";
    let mut case = Case {
        balancer: format!(
            "vip: {VIP}, listeners: [{{port: 6443, {lvs}, targets: {CONTROL_PLANE}}}]"
        ),
        ..Case::api("")
    };
    // Without the address no real server takes the packets.
    assert_eq!(case.answered("node/n4", 6443), 0);
    case.nodes = "{n1: {localAddresses: [10.0.0.100]}, n2: {localAddresses: [10.0.0.100]}, n3: \
                  {localAddresses: [10.0.0.100]}}";
    assert_eq!(case.answered("node/n4", 6443), 100);
    assert_eq!(case.answered("pod/kube-system/client-5", 6443), 100);
    let own = case.call("node/n1", &format!("{VIP}:6443"));
    assert_eq!(percent(&own, |end| end.is_answered()), 100);
    assert!(!format!("{:?}", own.routes).contains("LoadBalancer"), "{own:?}");
}

/// A leader that announces a control plane's address has it on an interface: others reach it there.
#[test]
fn an_address_that_one_node_holds_is_reached_there() {
    let mut case = Case { balancer: "vip: 10.0.0.99".to_owned(), ..Case::api("") };
    case.nodes = "{n2: {localAddresses: [10.0.0.100]}}";
    case.more = pod("kube-apiserver-n2", 2, "10.0.0.2", 6443);
    for client in ["node/n1", "node/n2", "node/n5", "pod/kube-system/client-4"] {
        assert_eq!(case.answered(client, 6443), 100, "{client}");
    }
}

#[test]
fn a_host_name_leads_to_it_without_an_address() {
    let case = Case::api("hostname: api.k8s.example.com, product: AWS NLB");
    let verdict = case.call("pod/kube-system/host-1", "api.k8s.example.com:6443");
    assert_eq!(percent(&verdict, |end| end.is_answered()), 67, "{verdict:?}");
    assert!(
        case.cluster()
            .supposed
            .iter()
            .any(|one| one.subject.to_string().contains("api.k8s.example.com")),
        "the address is supposed"
    );
}

/// Node ports behind one that was made by hand: a pod's call leaves with its node's address and comes
/// back to that node once in five.
#[test]
fn node_ports_behind_one_that_was_made_by_hand() {
    let service = "---\n{apiVersion: v1, kind: Service, metadata: {name: web, namespace: shop}, spec: \
                   {type: NodePort, clusterIP: 172.20.0.10, selector: {app: web}, ports: [{port: 80, \
                   targetPort: 8080, nodePort: 30080}]}}\n---\n{apiVersion: discovery.k8s.io/v1, kind: \
                   EndpointSlice, metadata: {name: web-1, namespace: shop, labels: \
                   {kubernetes.io/service-name: web}}, addressType: IPv4, ports: [{port: 8080, protocol: \
                   TCP}], endpoints: [{addresses: [10.1.4.9], nodeName: n4, conditions: {ready: true}}]}\n";
    let case = Case {
        balancer: format!(
            "vip: {VIP}, listeners: [{{port: 80, snat: false, targets: {{nodes: all, port: 30080}}}}]"
        ),
        more: service.to_owned(),
        ..Case::api("")
    };
    assert_eq!(case.answered("pod/kube-system/client-1", 80), 80);
    assert_eq!(case.answered("node/n5", 80), 80);
    let by_name = Case {
        balancer: format!(
            "vip: {VIP}, listeners: [{{port: 80, snat: false, targets: {{nodes: [n1, n2], port: 30080}}}}]"
        ),
        ..case
    };
    assert_eq!(by_name.answered("node/n5", 80), 100);
    assert_eq!(by_name.answered("node/n2", 80), 50);
}

/// Floating IP is off in a rule that no Service made: packets arrive with the target's address.
#[test]
fn azure_s_floating_ip_is_off_unless_facts_state_it() {
    let delivery = |stated: &str| {
        let case = Case {
            balancer: format!(
                "vip: {VIP}, product: Azure Load Balancer, listeners: [{{port: 443, {stated} targets: \
                 {{nodes: all}}}}]"
            ),
            ..Case::api("")
        };
        let cluster = case.cluster();
        let balancers = Engine::new(&cluster).unwrap().balancers().to_vec();
        balancers[0].listeners[0].profile.delivery
    };
    assert_eq!(delivery(""), Delivery::ToTarget);
    assert_eq!(delivery("delivery: keeps-address,"), Delivery::KeepsAddress);
}

#[test]
fn what_is_missing_or_contradicts_itself_is_said_with_its_place() {
    let fault = |balancer: &str| {
        let case = Case { balancer: balancer.to_owned(), ..Case::api("") };
        case.faults().join("; ")
    };
    let targets = "targets: {nodes: all}";
    for (balancer, expected) in [
        (format!("listeners: [{{port: 80, snat: true, {targets}}}]"), "vip: missing"),
        (format!("vip: {VIP}, listeners: [{{port: 80, {targets}}}]"), "snat: missing"),
        (format!("vip: {VIP}, product: ELB 9, listeners: []"), "expected one of "),
        (
            format!("vip: {VIP}, listeners: [{{port: 80, snat: true, targets: {{}}}}]"),
            "targets.nodes: missing",
        ),
        (
            format!(
                "vip: {VIP}, listeners: [{{port: 80, snat: false, delivery: keeps-address, targets: \
                 {{nodes: all, port: 81}}}}]"
            ),
            "packets keep the address and port",
        ),
        (
            format!(
                "vip: {VIP}, listeners: [{{port: 80, snat: true, targets: {{nodes: all, nodeLabels: \
                 {{a: b}}}}}}]"
            ),
            "by name already",
        ),
    ] {
        let found = fault(&balancer);
        assert!(found.contains(expected), "{balancer}: {found}");
        assert!(found.contains("cluster.yaml:8:"), "{found}");
    }
}
