//! Security groups let the health checks of their own cloud in, and nothing else by themselves. That
//! they let in a load balancer of unknown address is supposed. One that an annotation names counts.

#![allow(clippy::unwrap_used, reason = "what is wrong here fails the test")]

use uturn_model::{Cluster, Flow, Mechanism, Protocol, Verdict};
use uturn_path::Engine;
use uturn_snapshot::{Source, read};
use uturn_testing::manifests::{balanced_service, facts, node};

/// A pod behind a NodePort on a node that lets nothing in.
const OBJECTS: &str = r#"---
apiVersion: v1
kind: Pod
metadata: {name: web, namespace: shop, labels: {app: web}}
spec: {nodeName: n1, containers: [{name: c, image: c, ports: [{containerPort: 8080}]}]}
status: {phase: Running, podIP: 10.1.1.2, conditions: [{type: Ready, status: "True"}]}
---
apiVersion: v1
kind: Service
metadata: {name: web, namespace: shop}
spec:
  type: NodePort
  clusterIP: 172.16.0.10
  selector: {app: web}
  ports: [{port: 80, targetPort: 8080, nodePort: 30080}]
"#;

/// Why a packet from this address to the NodePort is lost.
fn mechanisms(provider: &str, from: &str) -> Vec<Mechanism> {
    let stated = [
        &format!("provider: {provider}"),
        "kubeProxy: {mode: iptables, version: v1.34.4, variant: upstream}",
        "nodes: {n1: {securityGroups: [sg]}}",
        "securityGroups: {sg: {inbound: [{action: drop, protocol: all, ports: all, peer: all}]}}",
    ];
    let text = [facts(&stated), node(1), OBJECTS.to_owned()].concat();
    let cluster = read(vec![Source { name: "cluster.yaml".into(), text }]).unwrap().cluster;
    let flow = Flow {
        from: format!("outside/{from}").parse().unwrap(),
        to: "10.0.0.11:30080".parse().unwrap(),
        protocol: Protocol::Tcp,
    };
    Engine::new(&cluster).unwrap().verdict(&flow).unwrap().mechanisms
}

#[test]
fn health_checks_of_the_cloud_are_let_in() {
    assert_eq!(mechanisms("tke", "100.64.0.1"), []);
    assert_eq!(mechanisms("tke", "100.64.0.2"), [Mechanism::SecurityGroup]);
}

#[test]
fn the_range_of_one_cloud_means_nothing_in_another() {
    assert_eq!(mechanisms("aws", "100.64.0.1"), [Mechanism::SecurityGroup]);
}

/// The answer to a call from outside of a load balancer that replaces the client's address, in front of
/// node ports. `rules` are those of the nodes' group and of the load balancer's.
fn through_a_proxy(nodes: &str, balancer: &str) -> Verdict {
    let cluster = behind_a_proxy(nodes, balancer);
    Engine::new(&cluster).unwrap().verdict(&to_the_proxy()).unwrap()
}

fn behind_a_proxy(nodes: &str, balancer: &str) -> Cluster {
    let stated = [
        "provider: none",
        "kubeProxy: {mode: iptables, version: v1.34.4, variant: upstream}",
        "nodes: {n1: {securityGroups: [sg-nodes]}}",
        "loadBalancers: [{vip: 203.0.113.9, securityGroups: [sg-lb], listeners: [{port: 80, snat: true, \
         targets: {nodes: all, port: 30080}}]}]",
        &format!("securityGroups: {{sg-nodes: {nodes}, sg-lb: {balancer}}}"),
    ];
    let text = [facts(&stated), node(1), OBJECTS.to_owned()].concat();
    read(vec![Source { name: "cluster.yaml".into(), text }]).unwrap().cluster
}

fn to_the_proxy() -> Flow {
    Flow {
        from: "outside".parse().unwrap(),
        to: "203.0.113.9:80".parse().unwrap(),
        protocol: Protocol::Tcp,
    }
}

const OPEN: &str = "{inbound: [{action: accept, protocol: all, ports: all, peer: all}]}";

/// Which rule lets in a load balancer whose own address is not given is not known.
#[test]
fn that_a_load_balancer_is_let_in_is_supposed_unless_all_are() {
    let of = |rules: &str| {
        let verdict = through_a_proxy(&format!("{{inbound: [{rules}]}}"), OPEN);
        let is_about =
            |text: String| text.contains("security group sg-nodes and the load balancer");
        let asks = verdict.supposed.iter().any(|own| is_about(own.subject.to_string()));
        (verdict.mechanisms, asks)
    };
    let to_all = "{action: accept, protocol: tcp, ports: 30000-32767, peer: all}";
    assert_eq!(of(to_all), (vec![], false));
    let other_port = "{action: accept, protocol: tcp, ports: 443, peer: all}";
    assert_eq!(of(other_port), (vec![], true));
    let to_some = "{action: accept, protocol: tcp, ports: 30080, peer: 10.0.9.0/24}";
    assert_eq!(of(to_some), (vec![], true));
    let dropped = format!("{{action: drop, protocol: all, ports: all, peer: all}}, {to_all}");
    assert_eq!(of(&dropped), (vec![], true));
}

/// Both cases are told apart, unless Facts state the rule.
#[test]
fn what_groups_do_with_an_address_that_is_not_given_is_two_cases() {
    let of = |rules: &str| -> Vec<(Vec<Mechanism>, Vec<String>)> {
        let cluster = behind_a_proxy(&format!("{{inbound: [{rules}]}}"), OPEN);
        let cases = Engine::new(&cluster).unwrap().cases(&to_the_proxy()).unwrap();
        let conditions =
            |verdict: &Verdict| verdict.conditions.iter().map(ToString::to_string).collect();
        cases.iter().map(|own| (own.mechanisms.clone(), conditions(own))).collect()
    };
    let to_some = "{action: accept, protocol: tcp, ports: 30080, peer: 10.0.9.0/24}";
    let cases = of(to_some);
    let mechanisms: Vec<&[Mechanism]> = cases.iter().map(|(own, _)| &own[..]).collect();
    assert_eq!(mechanisms, [&[][..], &[Mechanism::SecurityGroup]]);
    assert_eq!(cases[0].1, ["the nodes' security groups let the load balancer in"]);
    assert_eq!(cases[1].1, ["no rule of the nodes' security groups lets the load balancer in"]);
    let state = |action: &str| {
        of(&format!(
            "{to_some}, {{action: {action}, protocol: tcp, ports: 30080, peer: load-balancers}}"
        ))
    };
    assert_eq!(state("accept"), [(vec![], vec![])]);
    assert_eq!(state("drop"), [(vec![Mechanism::SecurityGroup], vec![])]);
}

/// A load balancer that is called at a private address sends from the same network: a rule for the range
/// of that address, or for all of the network, lets it in.
#[test]
fn a_private_load_balancer_is_let_in_with_its_network() {
    let of = |range: &str| {
        let rules = format!("{{action: accept, protocol: tcp, ports: 30080, peer: {range}}}");
        let mut cluster = behind_a_proxy(&format!("{{inbound: [{rules}]}}"), OPEN);
        cluster.load_balancers[0].vip = "10.0.20.15".parse().unwrap();
        let to = Flow { to: "10.0.20.15:80".parse().unwrap(), ..to_the_proxy() };
        let cases = Engine::new(&cluster).unwrap().cases(&to).unwrap();
        cases.into_iter().map(|own| own.mechanisms).collect::<Vec<_>>()
    };
    for around in ["10.0.20.0/24", "10.0.0.0/8"] {
        assert_eq!(of(around), [[]; 1], "{around}");
    }
    assert_eq!(of("10.0.9.0/24").len(), 2);
}

#[test]
fn a_load_balancer_s_group_judges_what_it_sends() {
    let of = |outbound: &str| {
        let group = format!(
            "{{inbound: [{{action: accept, protocol: all, ports: all, peer: all}}], outbound: [{outbound}]}}"
        );
        through_a_proxy(OPEN, &group).mechanisms
    };
    assert_eq!(of("{action: accept, protocol: tcp, ports: 30000-32767, peer: all}"), []);
    let lacks = of("{action: accept, protocol: tcp, ports: 443, peer: all}");
    assert_eq!(lacks, [Mechanism::SecurityGroup]);
}

/// The outcome of health checks of a load balancer of this cloud behind which is the pod, whose nodes'
/// group has these rules.
fn checked(provider: &str, notes: &str, rules: &str) -> Vec<Mechanism> {
    let stated = [
        &format!("provider: {provider}"),
        "kubeProxy: {mode: iptables, version: v1.34.4, variant: upstream}",
        "nodes: {n1: {securityGroups: [sg]}}",
        &format!("securityGroups: {{sg: {{inbound: [{rules}]}}}}"),
    ];
    let service = balanced_service("172.16.0.11", notes, "", "{ip: 10.0.9.9}")
        .replace("name: web", "name: front");
    let text = [facts(&stated), node(1), OBJECTS.to_owned(), service].concat();
    let cluster = read(vec![Source { name: "cluster.yaml".into(), text }]).unwrap().cluster;
    let engine = Engine::new(&cluster).unwrap();
    let health = engine.health("10.0.9.9:80".parse().unwrap(), Protocol::Tcp).unwrap().unwrap();
    health.into_iter().flat_map(|own| own.mechanisms).collect()
}

/// A cloud's own probers have a known address. One cloud lets it in unless a rule drops it; in
/// another, a rule that nothing shows may let it in.
#[test]
fn health_checks_come_from_the_addresses_of_their_cloud() {
    let internal = "service.beta.kubernetes.io/azure-load-balancer-internal: 'true'";
    let nodes = "{action: accept, protocol: all, ports: all, peer: 10.0.0.0/16}";
    let none = "{action: drop, protocol: all, ports: all, peer: all}";
    assert_eq!(checked("azure", internal, nodes), []);
    let denied = checked("azure", internal, &format!("{nodes}, {none}"));
    assert_eq!(denied, [Mechanism::SecurityGroup]);
    let own = "{action: accept, protocol: tcp, ports: all, peer: 168.63.129.16/32}";
    assert_eq!(checked("azure", internal, &format!("{nodes}, {own}, {none}")), []);

    let internal = "networking.gke.io/load-balancer-type: Internal";
    assert_eq!(checked("gcp", internal, nodes), []);
    let denied = checked("gcp", internal, &format!("{nodes}, {none}"));
    assert_eq!(denied, [Mechanism::SecurityGroup]);
    let own = "{action: accept, protocol: tcp, ports: 10256, peer: 35.191.0.0/16}";
    assert_eq!(checked("gcp", internal, &format!("{nodes}, {own}, {none}")), []);
}

/// An internal load balancer sends from the address at which it is called.
#[test]
fn the_own_address_of_an_internal_load_balancer_is_judged() {
    let of = |range: &str, given: &str| {
        let stated = [
            "provider: aws",
            "kubeProxy: {mode: iptables, version: v1.34.4, variant: upstream}",
            "nodes: {n1: {securityGroups: [sg]}}",
            &format!("dns: {{outside: {{{given}: 10.0.9.77}}}}"),
            &format!(
                "securityGroups: {{sg: {{inbound: [{{action: accept, protocol: tcp, ports: 8080, peer: \
                 {range}}}]}}}}"
            ),
        ];
        let notes = "service.beta.kubernetes.io/aws-load-balancer-type: external, \
                     service.beta.kubernetes.io/aws-load-balancer-nlb-target-type: ip";
        let status = "{hostname: front.elb.us-east-1.amazonaws.com}";
        let service = balanced_service("172.16.0.11", notes, "", status)
            .replace("name: web", "name: front")
            .replace("port: 80,", "port: 80, targetPort: 8080,");
        let text = [facts(&stated), node(1), OBJECTS.to_owned(), service].concat();
        let cluster = read(vec![Source { name: "cluster.yaml".into(), text }]).unwrap().cluster;
        let at = cluster.dns.of_balancer("front.elb.us-east-1.amazonaws.com")[0].address;
        let flow = Flow {
            from: "outside/10.0.7.7".parse().unwrap(),
            to: format!("{at}:80").parse().unwrap(),
            protocol: Protocol::Tcp,
        };
        Engine::new(&cluster).unwrap().verdict(&flow).unwrap().mechanisms
    };
    let given = "front.elb.us-east-1.amazonaws.com";
    assert_eq!(of("10.0.9.64/26", given), []);
    assert_eq!(of("10.0.8.0/24", given), [Mechanism::SecurityGroup]);
    // An address that stands in for one that is not given tells nothing.
    assert_eq!(of("10.0.8.0/24", "other.example.com"), []);
}

#[test]
fn a_group_that_an_annotation_names_counts_if_its_rules_are_stated() {
    let of = |group: &str| {
        let stated = [
            "provider: aws",
            "kubeProxy: {mode: iptables, version: v1.34.4, variant: upstream}",
            "dns: {outside: {front.elb.us-east-1.amazonaws.com: 198.51.100.7}}",
            &format!(
                "securityGroups: {{{group}: {{inbound: [{{action: accept, protocol: tcp, ports: 443, peer: \
                 all}}]}}}}"
            ),
        ];
        let service = "---
apiVersion: v1
kind: Service
metadata:
  name: front
  namespace: shop
  annotations:
    service.beta.kubernetes.io/aws-load-balancer-type: external
    service.beta.kubernetes.io/aws-load-balancer-scheme: internet-facing
    service.beta.kubernetes.io/aws-load-balancer-security-groups: sg-front
spec:
  type: LoadBalancer
  clusterIP: 172.16.0.11
  selector: {app: web}
  ports: [{port: 80, targetPort: 8080, nodePort: 30081}]
status: {loadBalancer: {ingress: [{hostname: front.elb.us-east-1.amazonaws.com}]}}
";
        let text = [facts(&stated), node(1), OBJECTS.to_owned(), service.to_owned()].concat();
        let cluster = read(vec![Source { name: "cluster.yaml".into(), text }]).unwrap().cluster;
        let flow = Flow {
            from: "outside".parse().unwrap(),
            to: "198.51.100.7:80".parse().unwrap(),
            protocol: Protocol::Tcp,
        };
        Engine::new(&cluster).unwrap().verdict(&flow).unwrap().mechanisms
    };
    assert_eq!(of("sg-front"), [Mechanism::SecurityGroup]);
    assert_eq!(of("sg-other"), []);
}
