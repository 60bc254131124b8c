//! NetworkPolicies: what they allow, by the statements of their specification, and calls through a
//! cluster whose network enforces them.

use std::fmt::Write as _;
use std::net::IpAddr;

use uturn_dice::Dice;
use uturn_model::network_policy::verdict::{PolicyVerdict, Side};
use uturn_model::network_policy::{Enforcement, NetworkPolicies};
use uturn_model::{Cluster, Flow, Mechanism, Name, Outcome, Pod, Protocol, StepKind, Verdict};
use uturn_path::Engine;
use uturn_snapshot::{Source, read};
use uturn_testing::manifests::node;

/// A pod with labels, on a node.
fn pod(name: &str, on: u8, address: u8, labels: &str, more: &str) -> String {
    let (namespace, name) = name.split_once('/').unwrap();
    format!(
        "---\n{{apiVersion: v1, kind: Pod, metadata: {{name: {name}, namespace: {namespace}, labels: \
         {{{labels}}}}}, spec: {{nodeName: n{on}, {more} containers: [{{name: c, image: c, ports: \
         [{{name: web, containerPort: 8080}}, {{name: dns, containerPort: 53, protocol: UDP}}]}}]}}, \
         status: {{phase: Running, podIP: 10.1.{on}.{address}, conditions: [{{type: Ready, status: \
         'True'}}]}}}}\n"
    )
}

fn policy(spec: &str) -> String {
    format!(
        "---\n{{apiVersion: networking.k8s.io/v1, kind: NetworkPolicy, metadata: {{name: p, namespace: \
         shop}}, spec: {{{spec}}}}}\n"
    )
}

/// Two namespaces, one of which is given with a label.
fn pods() -> String {
    [
        node(1),
        node(2),
        "---\n{apiVersion: v1, kind: Namespace, metadata: {name: front, labels: {tier: edge}}}\n"
            .into(),
        "---\n{apiVersion: v1, kind: Namespace, metadata: {name: shop}}\n".into(),
        pod("shop/web", 2, 10, "app: web", ""),
        pod("shop/job", 1, 10, "app: job", ""),
        pod("front/proxy", 1, 11, "app: proxy", ""),
        pod("other/job", 1, 12, "app: job", ""),
    ]
    .concat()
}

fn made(text: String) -> Cluster {
    read(vec![Source { name: "cluster.yaml".into(), text }]).unwrap().cluster
}

fn named<'c>(cluster: &'c Cluster, name: &str) -> &'c Pod {
    &cluster.pods[&name.parse().unwrap()]
}

fn side(pod: &Pod) -> Side<'_> {
    Side::Pod(pod, pod.ips[0])
}

/// Returns a word for what a policy does with calls of web's TCP port 8080 by another side.
fn of_policy(spec: &str, from: &str) -> &'static str {
    let cluster = made(pods() + &policy(spec));
    let policies = &cluster.network_policies;
    let (n1, n2) = ("n1".parse::<Name>().unwrap(), "n2".parse::<Name>().unwrap());
    let ip = |text: &str| text.parse::<IpAddr>().unwrap();
    let from = match from {
        "n1" => Side::Node(&n1, ip("10.0.0.11"), None),
        "n2" => Side::Node(&n2, ip("10.0.0.12"), None),
        "outside" => Side::Outside(None),
        "hidden" => Side::Hidden,
        pod if pod.contains('/') => side(named(&cluster, pod)),
        address => Side::Outside(Some(ip(address))),
    };
    let to = side(named(&cluster, "shop/web"));
    match policies.verdict(from, to, (Protocol::Tcp, 8080)) {
        PolicyVerdict::Allowed => "yes",
        PolicyVerdict::Denied(_) => "no",
        PolicyVerdict::Depends(_) => "maybe",
    }
}

/// What a policy for `app: web` does with each caller of web's TCP port 8080.
const TABLE: &[(&str, &[(&str, &str)])] = &[
    // "If no policies exist … all traffic is allowed": here none selects the pod.
    ("podSelector: {matchLabels: {app: none}}", &[("shop/job", "yes"), ("outside", "yes")]),
    // Without policyTypes, Ingress is set; without rules, nothing gets in but the pod and its node.
    (
        "podSelector: {}",
        &[
            ("shop/job", "no"),
            ("shop/web", "yes"),
            ("n2", "yes"),
            ("n1", "no"),
            ("outside", "no"),
            ("hidden", "no"),
        ],
    ),
    // A rule without `from` is for everyone.
    (
        "podSelector: {}, ingress: [{}]",
        &[("shop/job", "yes"), ("outside", "yes"), ("n1", "yes"), ("hidden", "yes")],
    ),
    ("podSelector: {}, ingress: [{from: []}]", &[("other/job", "yes")]),
    // Only stated directions are restricted.
    (
        "podSelector: {}, policyTypes: [Egress], ingress: [{from: [{podSelector: {}}]}]",
        &[("other/job", "yes")],
    ),
    (
        "podSelector: {matchLabels: {app: job}}, policyTypes: [Egress]",
        &[("shop/job", "no"), ("other/job", "yes")],
    ),
    // Egress counts without policyTypes if there are rules for it.
    (
        "podSelector: {matchLabels: {app: job}}, egress: [{to: [{podSelector: {matchLabels: {app: x}}}]}]",
        &[("shop/job", "no")],
    ),
    // "podSelector: selects particular Pods in the same namespace as the NetworkPolicy".
    (
        "podSelector: {}, ingress: [{from: [{podSelector: {matchLabels: {app: job}}}]}]",
        &[
            ("shop/job", "yes"),
            ("other/job", "no"),
            ("hidden", "maybe"),
            ("outside", "no"),
            ("n1", "maybe"),
        ],
    ),
    (
        "podSelector: {}, ingress: [{from: [{podSelector: {}}]}]",
        &[("shop/job", "yes"), ("other/job", "no")],
    ),
    // One item with both: pods of these namespaces.
    (
        "podSelector: {}, ingress: [{from: [{namespaceSelector: {matchLabels: {tier: edge}}, podSelector: {matchLabels: {app: proxy}}}]}]",
        &[("front/proxy", "yes"), ("shop/job", "no")],
    ),
    // Two items: either is enough.
    (
        "podSelector: {}, ingress: [{from: [{namespaceSelector: {matchLabels: {tier: edge}}}, {podSelector: {matchLabels: {app: job}}}]}]",
        &[("front/proxy", "yes"), ("shop/job", "yes"), ("other/job", "maybe")],
    ),
    // Each namespace has the label of its name, also one that is not given; other labels of that are
    // not known.
    (
        "podSelector: {}, ingress: [{from: [{namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: other}}}]}]",
        &[("other/job", "yes"), ("front/proxy", "no")],
    ),
    (
        "podSelector: {}, ingress: [{from: [{namespaceSelector: {matchExpressions: [{key: kubernetes.io/metadata.name, operator: NotIn, values: [other]}]}}]}]",
        &[("other/job", "no"), ("front/proxy", "yes"), ("shop/job", "yes")],
    ),
    (
        "podSelector: {}, ingress: [{from: [{namespaceSelector: {matchExpressions: [{key: tier, operator: DoesNotExist}]}}]}]",
        &[("other/job", "maybe"), ("front/proxy", "no")],
    ),
    (
        "podSelector: {}, ingress: [{from: [{namespaceSelector: {}}]}]",
        &[("other/job", "yes"), ("outside", "no")],
    ),
    // ipBlocks are for addresses outside.
    (
        "podSelector: {}, ingress: [{from: [{ipBlock: {cidr: 192.0.2.0/24, except: [192.0.2.8/29]}}]}]",
        &[
            ("192.0.2.1", "yes"),
            ("192.0.2.9", "no"),
            ("198.51.100.1", "no"),
            ("outside", "maybe"),
            ("shop/job", "no"),
        ],
    ),
    (
        "podSelector: {}, ingress: [{from: [{ipBlock: {cidr: 0.0.0.0/0}}]}]",
        &[("outside", "yes"), ("shop/job", "maybe")],
    ),
    // Ports: by number, range, name and protocol.
    (
        "podSelector: {}, ingress: [{ports: [{port: 8080}]}]",
        &[("shop/job", "yes"), ("hidden", "yes")],
    ),
    (
        "podSelector: {}, ingress: [{ports: [{port: 80}]}]",
        &[("shop/job", "no"), ("hidden", "no"), ("n1", "no")],
    ),
    ("podSelector: {}, ingress: [{ports: [{port: 8000, endPort: 8080}]}]", &[("shop/job", "yes")]),
    ("podSelector: {}, ingress: [{ports: [{port: 8000, endPort: 8079}]}]", &[("shop/job", "no")]),
    ("podSelector: {}, ingress: [{ports: [{port: web}]}]", &[("shop/job", "yes")]),
    ("podSelector: {}, ingress: [{ports: [{port: dns}]}]", &[("shop/job", "no")]),
    ("podSelector: {}, ingress: [{ports: [{protocol: UDP, port: 8080}]}]", &[("shop/job", "no")]),
    ("podSelector: {}, ingress: [{ports: [{protocol: TCP}]}]", &[("shop/job", "yes")]),
    // A rule needs a peer and a port of its own.
    (
        "podSelector: {}, ingress: [{from: [{podSelector: {}}], ports: [{port: 80}]}, {from: [{namespaceSelector: {matchLabels: {tier: edge}}}], ports: [{port: 8080}]}]",
        &[("shop/job", "no"), ("front/proxy", "yes")],
    ),
];

#[test]
fn what_the_specification_says() {
    let mut wrong = String::new();
    for (spec, calls) in TABLE {
        for (from, wanted) in *calls {
            let found = of_policy(spec, from);
            if found != *wanted {
                let _ = writeln!(wrong, "{spec}: {from} is {found}, not {wanted}");
            }
        }
    }
    assert_eq!(wrong, "");
}

/// Returns a random rule of a direction.
fn random_rule(dice: &mut Dice, peers: &str) -> String {
    let selectors = [
        "{}",
        "{matchLabels: {app: job}}",
        "{matchLabels: {app: proxy}}",
        "{matchLabels: {tier: edge}}",
    ];
    let peer = match dice.below(4) {
        0 => format!("{{podSelector: {}}}", dice.choose(&selectors)),
        1 => format!("{{namespaceSelector: {}}}", dice.choose(&selectors)),
        2 => format!(
            "{{namespaceSelector: {}, podSelector: {}}}",
            dice.choose(&selectors),
            dice.choose(&selectors)
        ),
        _ => format!(
            "{{ipBlock: {{cidr: {}}}}}",
            dice.choose(&["0.0.0.0/0", "10.1.1.0/24", "192.0.2.0/24"])
        ),
    };
    let port = dice.choose(&["", "{port: 8080}", "{port: 80}", "{port: web}", "{protocol: UDP}"]);
    let peers = if dice.once_in(4) { String::new() } else { format!("{peers}: [{peer}], ") };
    format!("{{{peers}ports: [{port}]}}")
}

fn rank(verdict: PolicyVerdict<'_>) -> u8 {
    match verdict {
        PolicyVerdict::Denied(_) => 0,
        PolicyVerdict::Depends(_) => 1,
        PolicyVerdict::Allowed => 2,
    }
}

/// Rules only ever open: with one more, nothing is denied that was not, and nothing becomes doubtful
/// that was allowed. Without policies, everything is allowed.
#[test]
fn a_rule_never_closes() {
    let mut dice = Dice::new(1);
    let mut opened = 0;
    for _ in 0..150 {
        let (mut ingress, mut egress) = (Vec::new(), Vec::new());
        for _ in 0..dice.below(3) {
            ingress.push(random_rule(&mut dice, "from"));
            egress.push(random_rule(&mut dice, "to"));
        }
        let spec = |ingress: &[String], egress: &[String]| {
            policy(&format!(
                "podSelector: {{}}, policyTypes: [Ingress, Egress], ingress: [{}], egress: [{}]",
                ingress.join(", "),
                egress.join(", ")
            ))
        };
        let before = made(pods() + &spec(&ingress, &egress));
        if dice.once_in(2) {
            ingress.push(random_rule(&mut dice, "from"));
        } else {
            egress.push(random_rule(&mut dice, "to"));
        }
        let after = made(pods() + &spec(&ingress, &egress));
        let none = NetworkPolicies::none();
        for from in before.pods.values() {
            for to in before.pods.values() {
                for port in [(Protocol::Tcp, 8080), (Protocol::Tcp, 80), (Protocol::Udp, 53)] {
                    let of = |policies: &NetworkPolicies| {
                        rank(policies.verdict(side(from), side(to), port))
                    };
                    let (old, new) = (of(&before.network_policies), of(&after.network_policies));
                    assert!(old <= new, "{} to {}: {ingress:?} {egress:?}", from.name, to.name);
                    assert_eq!(of(&none), 2);
                    opened += usize::from(old < new);
                }
            }
        }
    }
    assert!(opened > 100, "{opened}");
}

const SERVICES: &str = "---
{apiVersion: v1, kind: Service, metadata: {name: web, namespace: shop}, spec: {type: NodePort, clusterIP: 172.16.0.10, selector: {app: web}, ports: [{port: 80, targetPort: 8080, nodePort: 30080}]}}
---
{apiVersion: v1, kind: Service, metadata: {name: kube-dns, namespace: kube-system, labels: {k8s-app: kube-dns}}, spec: {clusterIP: 172.16.0.2, selector: {k8s-app: kube-dns}, ports: [{name: dns, port: 53, protocol: UDP, targetPort: 53}]}}
";

/// A network that drops what policies do not allow.
const CALICO: &str = "---
{apiVersion: uturn.dev/v1alpha1, kind: Facts, spec: {provider: none, network: {plugin: calico}, kubeProxy: {mode: iptables, version: v1.34.4, variant: upstream}}}
";

fn verdicts(more: &[&str], from: &str, to: &str) -> Vec<Verdict> {
    let dns = pod("kube-system/coredns", 2, 20, "k8s-app: kube-dns", "");
    let cluster = made(pods() + &dns + SERVICES + &more.concat());
    let flow =
        Flow { from: from.parse().unwrap(), to: to.parse().unwrap(), protocol: Protocol::Tcp };
    Engine::new(&cluster).unwrap().cases(&flow).unwrap()
}

fn only(more: &[&str], from: &str, to: &str) -> (Outcome, Vec<Mechanism>) {
    let [verdict] = &verdicts(more, from, to)[..] else { panic!("several cases") };
    (verdict.outcomes[0].0, verdict.mechanisms.clone())
}

const FINE: (Outcome, Vec<Mechanism>) = (Outcome::AT_ONCE, Vec::new());
const WEB: &str = "svc/shop/web:80";

/// Policies see the pod's port, not the Service's.
#[test]
fn policies_see_what_kube_proxy_made_of_a_call() {
    let denied = (Outcome::Hangs, vec![Mechanism::NetworkPolicy]);
    let of_port =
        |port: u16| policy(&format!("podSelector: {{}}, ingress: [{{ports: [{{port: {port}}}]}}]"));
    assert_eq!(only(&[CALICO, &of_port(8080)], "pod/front/proxy", WEB), FINE);
    assert_eq!(only(&[CALICO, &of_port(80)], "pod/front/proxy", WEB), denied);
    let out = |port: u16| {
        policy(&format!(
            "podSelector: {{matchLabels: {{app: job}}}}, egress: [{{to: [{{podSelector: {{}}}}], ports: [{{port: {port}}}]}}]"
        ))
    };
    assert_eq!(only(&[CALICO, &out(8080)], "pod/shop/job", WEB), FINE);
    assert_eq!(only(&[CALICO, &out(80)], "pod/shop/job", WEB), denied);
}

#[test]
fn the_way_ends_beside_the_pod_whose_policy_it_is() {
    let egress = policy("podSelector: {matchLabels: {app: job}}, policyTypes: [Egress]");
    let verdicts = verdicts(&[CALICO, &egress], "pod/shop/job", WEB);
    let hops = &verdicts[0].routes[0].hops;
    assert_eq!(hops.last().unwrap().place.to_string(), "node/n1");
    let step = hops.last().unwrap().steps.last().unwrap();
    assert_eq!(step.kind, StepKind::Drop);
    assert!(step.why.contains("shop/p has no egress rules"), "{}", step.why);
}

#[test]
fn a_namespace_is_missing_beside_a_pod_selector() {
    let near =
        policy("podSelector: {}, ingress: [{from: [{podSelector: {matchLabels: {app: proxy}}}]}]");
    let verdicts = verdicts(&[CALICO, &near], "pod/front/proxy", WEB);
    let step = verdicts[0].routes[0].hops.last().unwrap().steps.last().unwrap();
    assert!(step.why.contains("which means pods of namespace shop"), "{}", step.why);
}

#[test]
fn a_name_is_not_found_where_dns_is_denied() {
    let egress =
        policy("podSelector: {}, policyTypes: [Egress], egress: [{to: [{podSelector: {}}]}]");
    let url = "http://web.shop.svc.cluster.local/";
    let lost = (Outcome::NameNotFound, vec![Mechanism::NetworkPolicy]);
    assert_eq!(only(&[CALICO, &egress], "pod/shop/job", url), lost);
    assert_eq!(only(&[CALICO, &egress], "pod/other/job", url), FINE);
    assert_eq!(only(&[CALICO, &egress], "pod/shop/job", WEB), FINE);
}

#[test]
fn what_a_network_does_with_policies() {
    let shut = policy("podSelector: {}");
    let of = |network: &str| {
        let facts = format!(
            "---\n{{apiVersion: uturn.dev/v1alpha1, kind: Facts, spec: {{provider: none, network: {{{network}}}, \
             kubeProxy: {{mode: iptables, version: v1.34.4, variant: upstream}}}}}}\n"
        );
        only(&[&facts, &shut], "pod/front/proxy", WEB)
    };
    let denied = |outcome| (outcome, vec![Mechanism::NetworkPolicy]);
    assert_eq!(of("plugin: cilium"), denied(Outcome::Hangs));
    assert_eq!(of("plugin: kube-router"), denied(Outcome::Refused));
    assert_eq!(of("plugin: flannel"), FINE);
    assert_eq!(of("plugin: flannel, policies: drop"), denied(Outcome::Hangs));
    assert_eq!(of("plugin: calico, policies: ignore"), FINE);
}

#[test]
fn where_nothing_names_what_enforces_policies_there_are_both_cases() {
    let facts = CALICO.replace("plugin: calico", "plugin: aws-vpc-cni");
    let shut = policy("podSelector: {}");
    let both = verdicts(&[&facts, &shut], "pod/front/proxy", WEB);
    let said: Vec<(String, Outcome)> =
        both.iter().map(|verdict| (verdict.conditions.join(", "), verdict.outcomes[0].0)).collect();
    let wanted = [
        ("the network does not enforce NetworkPolicies".to_owned(), Outcome::AT_ONCE),
        ("the network enforces NetworkPolicies".to_owned(), Outcome::Hangs),
    ];
    assert_eq!(said, wanted);
    // A policy that allows the call makes no difference.
    let open = policy("podSelector: {}, ingress: [{}]");
    assert_eq!(only(&[&facts, &open], "pod/front/proxy", WEB), FINE);
}

/// A DaemonSet of the network of each node.
fn agent(name: &str, container: &str) -> String {
    format!(
        "---\n{{apiVersion: apps/v1, kind: DaemonSet, metadata: {{name: {name}, namespace: kube-system}}, spec: \
         {{selector: {{matchLabels: {{a: b}}}}, template: {{metadata: {{labels: {{a: b}}}}, spec: {{hostNetwork: true, \
         containers: [{{name: c, {container}}}]}}}}}}}}\n"
    )
}

#[test]
fn who_enforces_policies() {
    let of = |agents: &[String]| {
        let cluster = made(pods() + &policy("podSelector: {}") + &agents.concat());
        cluster.network_policies.enforcement.value
    };
    let aws = |value: &str| {
        agent(
            "aws-node",
            &format!("image: c, args: [--enable-ipv6=false, --enable-network-policy={value}]"),
        )
    };
    assert_eq!(of(&[agent("calico-node", "image: c")]), Enforcement::Drops);
    assert_eq!(of(&[agent("kube-flannel-ds", "image: c")]), Enforcement::Ignores);
    assert_eq!(
        of(&[agent("kube-flannel-ds", "image: c"), agent("kube-router", "image: c")]),
        Enforcement::Rejects
    );
    assert_eq!(of(&[agent("aws-node", "image: c")]), Enforcement::Unknown);
    assert_eq!(of(&[aws("true")]), Enforcement::Drops);
    assert_eq!(of(&[aws("false")]), Enforcement::Ignores);
    assert_eq!(of(&[aws("false"), agent("calico-node", "image: c")]), Enforcement::Drops);
    // The switch of the controller beside the agent, where the agent's own is not given.
    let controller = |value: &str| {
        format!(
            "---\n{{apiVersion: v1, kind: ConfigMap, metadata: {{name: amazon-vpc-cni, namespace: kube-system}}, \
             data: {{enable-network-policy-controller: '{value}'}}}}\n"
        )
    };
    let plain = agent("aws-node", "image: c");
    assert_eq!(of(&[plain.clone(), controller("true")]), Enforcement::Drops);
    assert_eq!(of(&[plain, controller("false")]), Enforcement::Ignores);
    assert_eq!(of(&[aws("false"), controller("true")]), Enforcement::Ignores);
    assert_eq!(
        of(&[agent("kindnet", "image: 'kindest/kindnetd:v20240202-8f1494ea'")]),
        Enforcement::Ignores
    );
    assert_eq!(
        of(&[agent("kindnet", "image: 'kindest/kindnetd:v20241212-9f82dd49'")]),
        Enforcement::Drops
    );
    assert_eq!(of(&[]), Enforcement::Unknown);
}

/// Real kube-routers let what one direction allows pass; what others do is not known.
#[test]
fn a_pod_calls_itself_through_its_service() {
    let network = CALICO.replace("plugin: calico", "plugin: kube-router");
    let shut = policy("podSelector: {}, policyTypes: [Ingress, Egress]");
    let refused = (Outcome::Refused, vec![Mechanism::NetworkPolicy]);
    assert_eq!(only(&[&network, &policy("podSelector: {}")], "pod/shop/web", WEB), FINE);
    assert_eq!(only(&[&network, &shut], "pod/shop/web", WEB), refused);
    assert_eq!(only(&[&network, &shut], "pod/shop/web", "10.1.2.10:8080"), FINE);
    let said = &verdicts(&[CALICO, &shut], "pod/shop/web", WEB)[0];
    assert_eq!(said.outcomes[0].0, Outcome::AT_ONCE);
    assert!(said.supposed.iter().any(|own| own.to_string().contains("reaches itself")));
}

/// As real kube-routers do: one list has the rules of both directions, and a rule of either lets a
/// packet pass on the node of a pod that the policy selects.
#[test]
fn kube_router_takes_a_rule_for_the_other_direction() {
    let network = CALICO.replace("plugin: calico", "plugin: kube-router");
    let open = policy(
        "podSelector: {}, policyTypes: [Ingress, Egress], egress: [{to: [{podSelector: {}}]}]",
    );
    let denied = vec![Mechanism::NetworkPolicy];
    assert_eq!(only(&[&network, &open], "pod/shop/job", WEB), FINE);
    assert_eq!(only(&[CALICO, &open], "pod/shop/job", WEB), (Outcome::Hangs, denied.clone()));
    let said = &verdicts(&[&network, &open], "pod/shop/job", WEB)[0].supposed;
    assert!(
        said.iter().any(|own| own.to_string().contains("open the other direction")),
        "{said:?}"
    );
    // The policy selects one of the two, or no rule of the other direction has the call.
    assert_eq!(only(&[&network, &open], "pod/other/job", WEB), (Outcome::Refused, denied.clone()));
    let other =
        open.replace("to: [{podSelector: {}}]", "to: [{podSelector: {matchLabels: {app: x}}}]");
    assert_eq!(only(&[&network, &other], "pod/shop/job", WEB), (Outcome::Refused, denied));
}

#[test]
fn a_node_port_replaces_the_source() {
    let own = policy("podSelector: {}, ingress: [{from: [{podSelector: {}}]}]");
    let both = verdicts(&[CALICO, &own], "pod/other/job", "10.0.0.11:30080");
    assert_eq!(both[0].outcomes[0].0, Outcome::AT_ONCE);
    let said: Vec<String> = both[0].supposed.iter().map(ToString::to_string).collect();
    assert!(said.iter().any(|own| own.starts_with("ingress of NetworkPolicy shop/p")), "{said:?}");
}

/// What is wrong is told with its place.
#[test]
fn mistakes_in_policies() {
    let fault = |spec: &str| {
        let text = format!(
            "apiVersion: networking.k8s.io/v1\nkind: NetworkPolicy\nmetadata: {{name: p, namespace: shop}}\nspec: {{{spec}}}\n"
        );
        let faults = read(vec![Source { name: "p.yaml".into(), text }]).unwrap_err();
        faults[0].to_string()
    };
    for (spec, wanted) in [
        ("policyTypes: [In]", "p.yaml:4:22: spec.policyTypes[0]: expected Ingress or Egress"),
        ("ingress: [{from: [{}]}]", "expected podSelector, namespaceSelector or ipBlock"),
        (
            "ingress: [{from: [{ipBlock: {cidr: 10.0.0.0/8}, podSelector: {}}]}]",
            "cannot stand beside",
        ),
        ("ingress: [{from: [{ipBlock: {cidr: x}}]}]", "expected a range such as 10.0.0.0/16"),
        (
            "ingress: [{from: [{ipBlock: {cidr: 10.0.0.0/8, except: [11.0.0.0/8]}}]}]",
            "within the cidr",
        ),
        ("ingress: [{ports: [{port: 0}]}]", "expected a port from 1 to 65535"),
        ("ingress: [{ports: [{port: 80, endPort: 79}]}]", "expected a port from 80 on"),
        ("ingress: [{ports: [{port: web, endPort: 79}]}]", "needs a port that is a number"),
        ("ingress: [{ports: [{protocol: ICMP}]}]", "expected TCP, UDP or SCTP"),
        ("podSelector: {matchExpressions: [{key: a, operator: Is}]}", "expected In, NotIn, Exists"),
    ] {
        let found = fault(spec);
        assert!(found.contains(wanted), "{spec}: {found}");
    }
}
