//! What clients in a cluster meet behind load balancers of AWS, from manifests to outcomes.

#![allow(clippy::unwrap_used, reason = "what is wrong here fails the test")]

use std::fmt::Write as _;

use uturn_model::{Cluster, Flow, Mechanism, Outcome, Protocol, Verdict};
use uturn_path::Engine;
use uturn_snapshot::Source;
use uturn_testing::manifests::{ReadyNode, RunningPod};

const NLB: &str = "k8s-shop-web-0a1b-0123456789abcdef.elb.eu-west-1.amazonaws.com";
const CLASSIC: &str = "a0123456789-1234567890.eu-west-1.elb.amazonaws.com";

/// Four nodes in two zones, with a client on each and a server on the first.
struct Case {
    /// Annotations after the prefix of all.
    notes: &'static [(&'static str, &'static str)],
    class: Option<&'static str>,
    policy: &'static str,
    host: &'static str,
}

const USUAL: Case = Case { notes: &[], class: None, policy: "Cluster", host: NLB };
const OWN: Option<&str> = Some("service.k8s.aws/nlb");

impl Case {
    fn cluster(&self) -> Cluster {
        self.cluster_of("v1.34.4")
    }

    fn cluster_of(&self, version: &str) -> Cluster {
        let mut text = String::from(
            "apiVersion: uturn.dev/v1alpha1\nkind: Facts\nspec:\n  network: {mode: vpc-cni, \
             podCIDRs: [10.0.0.0/16], vpcCIDRs: [10.0.0.0/16], serviceCIDRs: [172.20.0.0/16]}\n  \
             kubeProxy: {mode: iptables, version: v1.34.4}\n",
        );
        for node in 1..=4 {
            let zone = if node <= 2 { "a" } else { "b" };
            let node_object = ReadyNode {
                number: node,
                address: &format!("10.0.0.{node}"),
                labels: &format!("topology.kubernetes.io/zone: {zone}"),
                spec: &format!("providerID: 'aws:///{zone}/i-{node}'"),
                ..ReadyNode::default()
            };
            text += &node_object.to_string();
            text += &pod(&format!("client-{node}"), "client", node, 100 + node, false);
            text += &pod(&format!("host-{node}"), "host", node, node, true);
        }
        text += &pod("web-1", "web", 1, 50, false);
        let notes = self.notes.iter().map(|(key, value)| {
            format!("service.beta.kubernetes.io/aws-load-balancer-{key}: '{value}'")
        });
        let class = self.class.map(|class| format!("loadBalancerClass: {class}, "));
        let _ = write!(
            text,
            "---\n{{apiVersion: v1, kind: Service, metadata: {{name: web, namespace: shop, \
             annotations: {{{}}}}}, spec: {{type: LoadBalancer, {}clusterIP: 172.20.0.10, \
             externalTrafficPolicy: {}, selector: {{app: web}}, ports: [{{port: 80, targetPort: 8080, \
             nodePort: 30080}}]}}, status: {{loadBalancer: {{ingress: [{{hostname: {}}}]}}}}}}\n",
            notes.collect::<Vec<_>>().join(", "),
            class.unwrap_or_default(),
            self.policy,
            self.host
        );
        let text = text.replace("v1.34.4", version);
        let source = Source { name: "cluster.yaml".into(), text };
        uturn_snapshot::read(vec![source]).unwrap().cluster
    }

    /// How much of the calls of a pod is answered at each address of the load balancer.
    fn answered(&self, from: &str) -> Vec<f64> {
        let cluster = self.cluster();
        let engine = Engine::new(&cluster).unwrap();
        let addresses = cluster.dns.of_balancer(self.host);
        assert!(!addresses.is_empty(), "no address stands for {}", self.host);
        let to = |address| call(&engine, from, &format!("{address}:80"));
        addresses.iter().map(|at| share(&to(at.address), |end| end.is_answered())).collect()
    }
}

fn call(engine: &Engine<'_>, from: &str, to: &str) -> Verdict {
    let from = format!("pod/shop/{from}").parse().unwrap();
    let flow = Flow { from, to: to.parse().unwrap(), protocol: Protocol::Tcp };
    engine.verdict(&flow).unwrap()
}

fn share(verdict: &Verdict, is_it: impl Fn(Outcome) -> bool) -> f64 {
    let ends = verdict.outcomes.iter().filter(|end| is_it(end.0));
    ends.map(|end| (end.1.get() * 100.0).round() / 100.0).sum()
}

fn pod(name: &str, app: &str, node: u32, host: u32, host_network: bool) -> String {
    let address = &*format!("10.0.0.{host}");
    RunningPod { name, app, node, address, host_network, ..RunningPod::default() }.to_string()
}

const INTERNAL_NLB: &[(&str, &str)] = &[("type", "nlb"), ("internal", "true")];
const CROSS_ZONE: (&str, &str) = ("attributes", "load_balancing.cross_zone.enabled=true");

#[test]
fn clients_lose_the_connections_that_come_back_to_their_node() {
    let notes = &[("type", "nlb"), ("internal", "true"), CROSS_ZONE];
    let case = Case { notes, ..USUAL };
    assert_eq!(case.answered("host-2"), [0.75]);
    assert_eq!(case.answered("client-2"), [0.75]);
    let cluster = case.cluster();
    let engine = Engine::new(&cluster).unwrap();
    let to = format!("{}:80", cluster.dns.of_balancer(NLB)[0].address);
    let mechanism = |from| call(&engine, from, &to).mechanisms;
    assert_eq!(mechanism("host-2"), [Mechanism::LocalSourceDrop]);
    assert_eq!(mechanism("client-2"), [Mechanism::AsymmetricReturn]);
}

#[test]
fn an_address_of_a_zone_serves_its_own_nodes() {
    let answered = Case { notes: INTERNAL_NLB, ..USUAL }.answered("host-2");
    assert_eq!(answered, [0.5, 1.0], "only the address of its own zone leads back to it");
}

/// The name does not lead to the address of a zone without a target.
#[test]
fn pods_as_targets_are_in_the_zones_of_the_pods() {
    let notes = &[("nlb-target-type", "ip"), ("scheme", "internal")];
    let case = Case { notes, class: OWN, ..USUAL };
    let cluster = case.cluster();
    let zones: Vec<_> = cluster.dns.of_balancer(NLB).iter().map(|at| at.zone.as_deref()).collect();
    assert_eq!(zones, [Some("a")]);
    assert_eq!(case.answered("client-4"), [1.0]);
}

#[test]
fn under_policy_local_only_the_node_of_the_pod_loses_all() {
    let notes = &[("type", "nlb"), ("internal", "true"), CROSS_ZONE];
    let case = Case { notes, policy: "Local", ..USUAL };
    assert_eq!(case.answered("host-1"), [0.0]);
    for other in ["host-2", "host-3", "client-4"] {
        assert_eq!(case.answered(other), [1.0], "{other}");
    }
}

#[test]
fn an_internet_facing_one_is_answered() {
    let notes = &[("type", "nlb"), CROSS_ZONE];
    assert_eq!(Case { notes, ..USUAL }.answered("host-2"), [1.0]);
}

/// Documents and a report contradict each other about a target that is given itself.
#[test]
fn a_target_that_calls_with_a_public_address_of_its_own_is_a_doubt() {
    let notes = &[("type", "nlb"), CROSS_ZONE];
    let doubts = |from: &str, has_address: bool| -> Vec<String> {
        let mut cluster = Case { notes, ..USUAL }.cluster();
        if has_address {
            let node = cluster.nodes.values_mut().nth(1).unwrap();
            node.external_ips.push("198.51.100.7".parse().unwrap());
        }
        let engine = Engine::new(&cluster).unwrap();
        let to = format!("{}:80", cluster.dns.of_balancer(NLB)[0].address);
        let verdict = call(&engine, from, &to);
        assert_eq!(share(&verdict, |end| end.is_answered()), 1.0);
        let of_itself =
            |own: &&uturn_model::Assumption| own.subject.to_string().starts_with("a target that ");
        verdict.supposed.iter().filter(of_itself).map(|own| own.subject.to_string()).collect()
    };
    let said = "a target that AWS NLB gives itself, called from 198.51.100.7";
    assert_eq!(doubts("host-2", true), [said]);
    assert_eq!(doubts("host-3", true), [""; 0]);
    assert_eq!(doubts("host-2", false), [""; 0]);
}

/// Who ends TLS has taken the client's connection: what comes back to the client's own node ends it.
#[test]
fn a_connection_to_a_target_that_does_not_answer_is_closed_where_tls_ends() {
    let notes = &[
        ("type", "nlb"),
        ("internal", "true"),
        ("ssl-cert", "arn:aws:acm:eu-west-1:1:certificate/a"),
        CROSS_ZONE,
    ];
    let cluster = Case { notes, ..USUAL }.cluster();
    let engine = Engine::new(&cluster).unwrap();
    let to = format!("https://{}:80/", cluster.dns.of_balancer(NLB)[0].address);
    let verdict = call(&engine, "host-2", &to);
    assert_eq!(share(&verdict, |end| end == Outcome::EmptyReply), 0.25, "{:?}", verdict.outcomes);
    assert_eq!(share(&verdict, |end| end.is_answered()), 0.75);
    assert_eq!(verdict.mechanisms, [Mechanism::LocalSourceDrop]);
}

#[test]
fn pods_as_targets_do_not_see_the_client() {
    let notes = &[("nlb-target-type", "ip"), CROSS_ZONE];
    assert_eq!(Case { notes, class: OWN, ..USUAL }.answered("web-1"), [1.0]);
}

#[test]
fn a_pod_that_reaches_itself_hangs_where_its_address_is_kept() {
    let notes = &[
        ("nlb-target-type", "ip"),
        ("target-group-attributes", "preserve_client_ip.enabled=true"),
        CROSS_ZONE,
    ];
    let case = Case { notes, class: OWN, ..USUAL };
    assert_eq!(case.answered("web-1"), [0.0]);
    assert_eq!(case.answered("client-2"), [1.0]);
}

#[test]
fn a_classic_one_is_answered() {
    let notes = &[("internal", "true")];
    assert_eq!(Case { notes, host: CLASSIC, ..USUAL }.answered("host-1"), [1.0]);
}

#[test]
fn who_calls_past_the_load_balancer_sends_no_header() {
    let notes = &[("proxy-protocol", "*"), ("nlb-target-type", "ip"), CROSS_ZONE];
    let case = Case { notes, class: OWN, ..USUAL };
    assert_eq!(case.answered("client-2"), [1.0]);
    let cluster = case.cluster();
    let verdict = call(&Engine::new(&cluster).unwrap(), "client-2", "172.20.0.10:80");
    assert!((share(&verdict, |end| end == Outcome::EmptyReply) - 1.0).abs() < 1e-9, "{verdict:?}");
}

#[test]
fn class_type_and_name_tell_the_product() {
    let cases = [
        (Case { class: OWN, host: CLASSIC, ..USUAL }, "AWS NLB"),
        (Case { notes: &[("type", "external")], host: CLASSIC, ..USUAL }, "AWS NLB"),
        (Case { notes: &[("type", "nlb-ip")], host: CLASSIC, ..USUAL }, "AWS NLB"),
        (Case { notes: &[("type", "nlb")], host: CLASSIC, ..USUAL }, "AWS NLB"),
        (Case { host: CLASSIC, ..USUAL }, "AWS Classic Load Balancer"),
        (USUAL, "AWS NLB"),
    ];
    for (case, product) in cases {
        let cluster = case.cluster();
        let engine = Engine::new(&cluster).unwrap();
        let found = &engine.balancers()[0].listeners[0].profile.name;
        assert_eq!(&**found, product, "{:?} {:?} {}", case.notes, case.class, case.host);
    }
}

/// Both controllers take only nodes with the labels that are asked for.
#[test]
fn nodes_without_the_labels_that_are_asked_for_are_no_targets() {
    let notes = &[("target-node-labels", "topology.kubernetes.io/zone=b")];
    let case = Case { notes, class: OWN, ..USUAL };
    assert_eq!(case.answered("client-1"), [1.0]);
    assert_eq!(case.answered("client-3"), [0.5]);
    let none = Case { notes: &[("target-node-labels", "pool=edge,spare")], ..case };
    assert_eq!(none.answered("client-1"), [0.0]);
}

/// The in-tree controller reads attributes of target groups in late releases only, and the
/// annotation for a PROXY header never.
#[test]
fn annotations_that_the_in_tree_controller_does_not_read_change_nothing() {
    let notes = &[
        ("type", "nlb"),
        ("internal", "true"),
        ("target-group-attributes", "preserve_client_ip.enabled=false"),
        ("proxy-protocol", "*"),
    ];
    let case = Case { notes, ..USUAL };
    let profiles = |version: &str| {
        let cluster = case.cluster_of(version);
        let engine = Engine::new(&cluster).unwrap();
        let listener = &engine.balancers()[0].listeners[0];
        let profile = &listener.profile;
        let is_kept = profile.source == uturn_model::lb::Source::Kept;
        (is_kept, profile.proxy_header, profile.assumption.is_some())
    };
    assert_eq!(profiles("v1.31.0"), (true, None, false));
    assert_eq!(profiles("v1.32.0"), (false, None, true));
}
