//! Classes against brute force: on small random clusters, every pod is walked to every
//! target one by one through the rules of the whole cluster, and `scan` has to say the same
//! of the class that the pod is in.
//!
//! `UTURN_CASES` says how many clusters (12 if it does not: each run has others).

#[path = "classes/addresses.rs"]
mod addresses;
#[path = "classes/announced.rs"]
mod announced;
#[path = "classes/captures.rs"]
mod captures;
#[path = "classes/clouds.rs"]
mod clouds;
#[path = "classes/dice.rs"]
mod dice;
#[path = "classes/ends.rs"]
mod ends;
#[path = "classes/oddities.rs"]
mod oddities;
#[path = "classes/policies.rs"]
mod policies;
#[path = "classes/products.rs"]
mod products;
#[path = "classes/stated.rs"]
mod stated;
#[path = "classes/targets.rs"]
mod targets;

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use uturn_model::ingress::{Backend, BackendPort};
use uturn_model::{Cluster, Name, NamespacedName, Port, Verdict, Version};
use uturn_path::Engine;
use uturn_scan::{ScanResult, ScanTarget, Scanner, ToExplain};
use uturn_snapshot::{Source, read};
use uturn_testing::variables;

use dice::Dice;
use ends::{End, end, is_same};

fn cases() -> u32 {
    variables::number(variables::CASES).unwrap_or(12)
}

/// The share below which arithmetic may lose an outcome: the last of very many retries.
const LOST: f64 = 1e-12;

/// How a verdict ends, sorted.
fn ends(verdict: &Verdict) -> End {
    let (mut outcomes, mechanisms) = end(verdict);
    outcomes.retain(|(_, share)| share.get() > LOST);
    (outcomes, mechanisms)
}

fn same(own: &Verdict, other: &Verdict) -> bool {
    is_same(&ends(own), &ends(other))
}

/// A cluster as its text says.
fn written(text: &str) -> Cluster {
    let source = Source { name: "random.yaml".into(), text: text.to_owned() };
    match read(vec![source]) {
        Ok(read) => read.cluster,
        Err(faults) => panic!("{faults:?}\n{text}"),
    }
}

fn check(cluster: &Cluster, text: &str) -> Result<(), TestCaseError> {
    let engine = Engine::new(cluster).unwrap_or_else(|faults| panic!("{faults:?}\n{text}"));
    let scanner = Scanner::new(&engine);
    let mut targets = scanner.targets();
    // Two rules of an Ingress may be for the same host and path.
    let mut known = BTreeSet::new();
    targets.retain(|target| known.insert(format!("{} {}", target.object, target.label)));
    let met = scanner.scan(&targets).expect("verdicts");
    let mut predicted: BTreeMap<(String, &NamespacedName), &Verdict> = BTreeMap::new();
    for result in &met {
        prop_assert_eq!(result.verdicts.len(), 1);
        prop_assert!(result.clients.pods.iter().any(|pod| *pod == result.clients.first));
        prop_assert_eq!(result.clients.pods.nodes().len(), result.clients.nodes, "{}", text);
        for pod in result.clients.pods.iter() {
            let key = (format!("{} {}", result.target.object, result.target.label), pod);
            let before = predicted.insert(key, &result.verdicts[0]);
            prop_assert!(before.is_none(), "{} is in two classes of {}", pod, result.target.to);
        }
    }
    // To explain each result alone takes longer than all else here: a fifth of the clusters is
    // enough.
    if text.len().is_multiple_of(5) {
        explains_alike(&scanner, &met, text)?;
    }
    // A separate engine: without anything that the scan has cached.
    let judge = Engine::new(cluster).expect("rules that can be walked");
    let mut seen = 0;
    let judge = Scanner::new(&judge);
    let flows: usize =
        targets.iter().map(|target| addresses::callers(judge.engine(), target)).sum();
    for result in judge.scan_exhaustively(&targets).expect("verdicts") {
        let (target, found) = (&result.target, &result.verdicts);
        for pod in result.clients.pods.iter() {
            let key = (format!("{} {}", target.object, target.label), pod);
            let Some(predicted) = predicted.get(&key) else {
                return Err(TestCaseError::fail(format!("{pod} is in no class\n{text}")));
            };
            prop_assert!(
                same(predicted, &found[0]) || is_alike_alone(cluster, target, pod),
                "{} to {} {}:\nclasses     {:?}\nbrute force {:?}\n{}",
                pod,
                target.to,
                target.label,
                ends(predicted),
                ends(&found[0]),
                text
            );
            seen += 1;
        }
    }
    prop_assert_eq!(seen, predicted.len());
    prop_assert_eq!(seen, flows);
    prop_assert!(seen <= judge.flows(targets.len()));
    Ok(())
}

/// Returns whether classes and brute force agree about the calls of a pod to a target that is
/// walked alone, with the whole allowance of work. Beside other targets it has a part of that, and
/// a call with very many ways is not followed to its end.
fn is_alike_alone(cluster: &Cluster, target: &ScanTarget, pod: &NamespacedName) -> bool {
    let engine = Engine::new(cluster).expect("rules that can be walked");
    let scanner = Scanner::new(&engine);
    let judge = Engine::new(cluster).expect("rules that can be walked");
    let judge = Scanner::new(&judge);
    let alone = std::slice::from_ref(target);
    let of_pod = |results: Vec<ScanResult>| {
        let is_it = |result: &ScanResult| result.clients.pods.iter().any(|own| own == pod);
        results.into_iter().find(is_it).expect("a class of the pod")
    };
    let classes = of_pod(scanner.scan(alone).expect("verdicts"));
    let each = of_pod(judge.scan_exhaustively(alone).expect("verdicts"));
    same(&classes.verdicts[0], &each.verdicts[0])
}

/// What walks share in order to explain results changes none of them.
fn explains_alike(
    scanner: &Scanner<'_, '_>,
    results: &[ScanResult],
    text: &str,
) -> Result<(), TestCaseError> {
    let all: Vec<ToExplain<'_>> = results.iter().map(ToExplain::from).collect();
    let explain = |results: &[ToExplain<'_>]| -> Vec<Vec<Verdict>> {
        let explained = scanner.explain_each_worst(results, |_, verdicts| verdicts.to_vec());
        explained.into_iter().map(|verdicts| verdicts.expect("a verdict")).collect()
    };
    for (one, explained) in all.iter().zip(explain(&all)) {
        let ToExplain { result, .. } = one;
        let flow = result.flow();
        // Beside others, a call with very many ways has a part of the allowance of work.
        if is_cut(&explained) {
            continue;
        }
        prop_assert_eq!(&explained, &explain(&[*one])[0], "{:?}\n{}", flow, text);
        prop_assert!(same(&explained[0], &result.verdicts[0]), "{flow:?}\n{text}");
    }
    Ok(())
}

/// Returns whether a way was not followed to its end, since the call has too many.
fn is_cut(verdicts: &[Verdict]) -> bool {
    let routes = verdicts.iter().flat_map(|verdict| &verdict.routes);
    let mut steps = routes.flat_map(|route| &route.hops).flat_map(|hop| &hop.steps);
    steps.any(|step| step.why.contains("too many ways"))
}

/// A masqueraded packet gets the address of a Service that the target has nothing to do with.
#[test]
fn a_source_that_is_another_service_s() {
    let text = dice::cluster(&mut Dice::new(3_619_954_685_450_528_174));
    check(&written(&text), &text).expect("the same verdicts");
}

fn check_beside_captures(dice: &mut Dice) -> Result<(), TestCaseError> {
    let text = dice::cluster(dice);
    let mut cluster = written(&text);
    captures::add(&mut cluster, dice);
    check(&cluster, &format!("{:#?}\n{text}", cluster.captures))
}

/// A captured node sends to its own address on another port, that of an endpoint of a Service
/// that the target has nothing to do with.
#[test]
fn a_captured_node_that_sends_to_itself() {
    check_beside_captures(&mut Dice::new(17_222_741_042_538_523_963)).expect("the same verdicts");
}

/// A captured rule leads to a node's port of which only an endpoint tells, of a Service that the target
/// has nothing to do with.
#[test]
fn a_captured_rule_that_leads_to_a_node_s_port() {
    check_beside_captures(&mut Dice::new(16_603_666_813_735_092_239)).expect("the same verdicts");
}

fn check_without_kube_proxy(dice: &mut Dice) -> Result<(), TestCaseError> {
    let proxy = dice.one_of(&["cilium", "cilium", "ovn-kubernetes", "kube-router"]);
    let text = dice::cluster(dice);
    let text = text.replacen("kubeProxy: {", &format!("kubeProxy: {{replacedBy: {proxy}, "), 1);
    let mut cluster = written(&text);
    // One reads ipMode, one does not, and of one it is not known.
    // The last may serve calls from inside by the client's node alone.
    let versions = [(1, 16, 9), (1, 18, 1), (1, 19, 3)];
    let versions = versions.map(|(major, minor, patch)| Some(Version::new(major, minor, patch)));
    let versions = [None, versions[0], versions[1], versions[2]];
    cluster.proxy.replacement_version = dice.one_of(&versions);
    check(&cluster, &format!("{:?}\n{text}", cluster.proxy.replacement_version))
}

/// An address is an endpoint twice. The first gets no calls, and gives the second its place among
/// the targets.
#[test]
fn an_endpoint_that_takes_the_place_of_another() {
    check_without_kube_proxy(&mut Dice::new(6_440_500_186_883_766_871)).expect("the same verdicts");
}

/// A cluster whose load balancers products describe, and its text.
fn with_products(dice: &mut Dice) -> (Cluster, String) {
    let text = dice::cluster(dice).replacen("provider: tke", products::PROVIDER, 1);
    let mut cluster = written(&text);
    products::ask(&mut cluster, dice);
    (cluster, text)
}

fn check_products(dice: &mut Dice) -> Result<(), TestCaseError> {
    let (cluster, text) = with_products(dice);
    let shown = (&cluster.services, &cluster.ingresses, &cluster.dns.balancers);
    check(&cluster, &format!("{shown:#?}\n{text}"))
}

/// A call through seven proxies of a Gateway and on to another load balancer has more ways than are
/// followed beside other targets.
#[test]
fn a_call_with_very_many_ways() {
    check_products(&mut Dice::new(4_171_928_356_608_014_122)).unwrap();
}

/// A Service has the address of an Ingress that is not judged, and a node has no rule for it.
#[test]
fn an_address_that_an_ingress_has_which_is_not_judged() {
    let text = "apiVersion: uturn.dev/v1alpha1
kind: Facts
spec:
  provider: aws
  network: {mode: routed, podCIDRs: [10.1.0.0/16], vpcCIDRs: [10.0.0.0/16], serviceCIDRs: [172.16.0.0/16]}
  kubeProxy: {mode: iptables, version: v1.34.4}
  nodes: {n1: {unprogrammed: [shop/web]}}
---
{apiVersion: v1, kind: Node, metadata: {name: n1}, spec: {podCIDR: 10.1.1.0/24}, status: {addresses: [{type: InternalIP, address: 10.0.0.11}]}}
---
{apiVersion: v1, kind: Pod, metadata: {name: client, namespace: shop}, spec: {nodeName: n1, containers: [{name: c, image: c}]}, status: {phase: Running, podIP: 10.1.1.9, podIPs: [{ip: 10.1.1.9}]}}
---
{apiVersion: v1, kind: Service, metadata: {name: web, namespace: shop}, spec: {clusterIP: 172.16.0.9, externalIPs: [10.0.0.100], ports: [{port: 80}]}}
---
{apiVersion: discovery.k8s.io/v1, kind: EndpointSlice, metadata: {name: web-x, namespace: shop, labels: {kubernetes.io/service-name: web}}, addressType: IPv4, ports: [{port: 80}], endpoints: [{addresses: [10.1.1.9], nodeName: n1, conditions: {ready: true}}]}
---
{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {name: front, namespace: shop}, spec: {ingressClassName: unheard-of, defaultBackend: {service: {name: web, port: {number: 80}}}}, status: {loadBalancer: {ingress: [{ip: 10.0.0.100}]}}}
";
    check(&written(text), text).expect("the same verdicts");
}

/// Two Services have an address and a port. The first keeps it, and the second, which asks for a PROXY
/// header, has no load balancer.
#[test]
fn a_service_whose_port_another_one_keeps() {
    check_products(&mut Dice::new(13_081_322_623_805_993_849)).expect("the same verdicts");
}

/// Two Services ask for a port of one load balancer, and only the one that does not get it asks for a
/// PROXY header.
#[test]
fn a_port_that_another_service_has_first() {
    check_clouds(&mut Dice::new(17_004_342_318_529_821_559)).expect("the same verdicts");
}

fn check_announced(dice: &mut Dice) -> Result<(), TestCaseError> {
    let text = dice::cluster(dice);
    let mut cluster = written(&text);
    announced::add(&mut cluster, dice);
    let shown = (&cluster.announcements, &cluster.services, &cluster.nodes);
    check(&cluster, &format!("{shown:#?}\n{text}"))
}

fn check_clouds(dice: &mut Dice) -> Result<(), TestCaseError> {
    let text = dice::cluster(dice).replacen("provider: tke", products::PROVIDER, 1);
    let mut cluster = written(&text);
    clouds::ask(&mut cluster, dice);
    check(&cluster, &format!("{:#?}\n{:#?}\n{text}", cluster.services, cluster.dns.balancers))
}

/// Pods leave by an interface without addresses, so the source of a masqueraded packet is an address of
/// another load balancer that the node holds on `lo`.
#[test]
fn a_source_that_the_node_holds_for_another_load_balancer() {
    for seed in [14_269_338_764_898_076_339, 2_451_724_166_104_400_211] {
        check_stated(&mut Dice::new(seed)).expect("the same verdicts");
    }
}

/// An Ingress has the address of a node, whose load balancer gets the answers to what the node sends.
#[test]
fn a_source_that_is_an_ingress_s() {
    check_products(&mut Dice::new(2_393_587_189_246_871_067)).expect("the same verdicts");
}

/// With IPVS, a controller on a node dials a port that the Service has for UDP alone: the ClusterIP is
/// an address of the node, and a process listens there on this port.
#[test]
fn a_dialled_port_that_a_process_of_the_node_has() {
    check_products(&mut Dice::new(2_240_078_238_790_399_989)).expect("the same verdicts");
}

/// Two Ingresses have an address, and only rules of the first have targets of the other family. Then only
/// rules of the second have.
#[test]
fn a_listener_with_targets_of_both_families() {
    let (mut cluster, text) = with_products(&mut Dice::new(9_631_071_493_044_812_238));
    check(&cluster, &text).expect("the same verdicts");
    let first = cluster.ingresses.values_mut().next().expect("an Ingress");
    for path in first.rules.iter_mut().flat_map(|rule| &mut rule.paths) {
        let (name, port) = (Name::new("s1").expect("a name"), Port::new(8080).expect("a port"));
        path.backend = Backend::Service { name, port: BackendPort::Number(port) };
    }
    check(&cluster, &text).expect("the same verdicts");
    let engine = Engine::new(&cluster).expect("rules that can be walked");
    let scanner = Scanner::new(&engine);
    let mut targets = scanner.targets();
    targets.retain(|target| target.object.name.as_ref() == "i1" && target.label.ends_with("/"));
    let results = scanner.scan(&targets).expect("verdicts");
    assert!(!results.is_empty() && results.iter().all(|result| result.verdicts[0].is_fine()));
}

/// On one node an endpoint's pod has no address, on another an endpoint has no pod.
#[test]
fn endpoints_without_an_address_and_without_a_pod() {
    check_without_addresses(&mut Dice::new(5_903_099_977_591_486_063)).expect("the same verdicts");
}

fn check_without_addresses(dice: &mut Dice) -> Result<(), TestCaseError> {
    let text = dice::cluster(dice);
    let mut cluster = written(&text);
    addresses::take_away(&mut cluster, dice);
    if dice.once_in(3) {
        captures::add(&mut cluster, dice);
    }
    check(&cluster, &format!("{:#?}\n{:#?}\n{text}", cluster.pods, cluster.captures))
}

fn check_stated(dice: &mut Dice) -> Result<(), TestCaseError> {
    let is_product = dice.once_in(3);
    let mut text = dice::cluster(dice);
    if is_product {
        text = text.replacen("provider: tke", "provider: gcp", 1);
    }
    let mut cluster = written(&text);
    if is_product {
        // No product serves Ingresses.
        cluster.ingresses.clear();
    }
    stated::add(&mut cluster, dice);
    let held: Vec<_> = cluster.nodes.values().map(|node| &node.local_addresses).collect();
    let added = format!("{:#?}\n{held:?}\n{:#?}", cluster.load_balancers, cluster.services);
    check(&cluster, &format!("{added}\n{text}"))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), failure_persistence: None, max_shrink_iters: 0, ..ProptestConfig::default() })]

    #[test]
    fn classes_say_what_brute_force_says(seed in any::<u64>()) {
        let text = dice::cluster(&mut Dice::new(seed));
        check(&written(&text), &text)?;
    }

    #[test]
    fn classes_with_policies_say_what_brute_force_says(seed in any::<u64>()) {
        let dice = &mut Dice::new(seed);
        let text = dice::cluster(dice);
        let text = policies::policed(dice, &text);
        check(&written(&text), &text)?;
    }

    #[test]
    fn classes_without_kube_proxy_say_what_brute_force_says(seed in any::<u64>()) {
        check_without_kube_proxy(&mut Dice::new(seed))?;
    }

    #[test]
    fn classes_of_unlike_targets_say_what_brute_force_says(seed in any::<u64>()) {
        let dice = &mut Dice::new(seed);
        let text = dice::cluster(dice);
        let mut cluster = written(&text);
        targets::vary(&mut cluster, dice);
        check(&cluster, &format!("{:#?}\n{:#?}\n{text}", cluster.services, cluster.ingresses))?;
    }

    #[test]
    fn classes_beside_pods_without_addresses_say_what_brute_force_says(seed in any::<u64>()) {
        check_without_addresses(&mut Dice::new(seed))?;
    }

    #[test]
    fn classes_of_products_say_what_brute_force_says(seed in any::<u64>()) {
        check_products(&mut Dice::new(seed))?;
    }

    #[test]
    fn classes_of_clouds_say_what_brute_force_says(seed in any::<u64>()) {
        check_clouds(&mut Dice::new(seed))?;
    }

    #[test]
    fn classes_of_announced_addresses_say_what_brute_force_says(seed in any::<u64>()) {
        check_announced(&mut Dice::new(seed))?;
    }

    #[test]
    fn classes_of_stated_balancers_say_what_brute_force_says(seed in any::<u64>()) {
        check_stated(&mut Dice::new(seed))?;
    }

    #[test]
    fn classes_beside_oddities_say_what_brute_force_says(seed in any::<u64>()) {
        let dice = &mut Dice::new(seed);
        let text = dice::cluster(dice);
        let mut cluster = written(&text);
        oddities::add(&mut cluster, dice);
        check(&cluster, &format!("{:#?} {:#?}\n{text}", cluster.nodes, cluster.services))?;
    }

    #[test]
    fn classes_beside_captures_say_what_brute_force_says(seed in any::<u64>()) {
        check_beside_captures(&mut Dice::new(seed))?;
    }
}

/// The dice ask for load balancers of every kind.
#[test]
fn every_kind_of_product_occurs() {
    let mut met = BTreeSet::new();
    let mut on_nodes = 0;
    for seed in 0..60 {
        let dice = &mut Dice::new(seed);
        let text = dice::cluster(dice).replacen("provider: tke", products::PROVIDER, 1);
        let mut cluster = written(&text);
        products::ask(&mut cluster, dice);
        let balancers = uturn_clouds::controller::load_balancers(&cluster);
        let listeners = balancers.iter().flat_map(|balancer| &balancer.listeners);
        met.extend(listeners.map(|listener| listener.profile.name.to_string()));
        on_nodes += uturn_clouds::on_nodes::all(&cluster).len();
    }
    for name in
        ["AWS NLB", "OpenStack Octavia", "OpenStack Octavia (OVN)", "Exoscale NLB", "F5 BIG-IP"]
    {
        assert!(met.contains(name), "{name} is not among {met:?}");
    }
    assert!(on_nodes > 0, "none has its addresses from nodes");
}

/// The dice throw clusters in which a controller's pods serve Ingresses, and requests through them
/// end in several ways.
#[test]
fn controllers_in_the_cluster_occur() {
    let mut ends = BTreeSet::new();
    for seed in 0..120 {
        let text = dice::cluster(&mut Dice::new(seed));
        let cluster = written(&text);
        if !cluster.ingresses.values().any(|ingress| ingress.controller.is_some()) {
            continue;
        }
        let engine = Engine::new(&cluster).expect("rules that can be walked");
        let scanner = Scanner::new(&engine);
        let is_served = |object: &uturn_model::ObjectRef| {
            let name = object.namespaced_name();
            let ingress = name.and_then(|name| cluster.ingresses.get(&name));
            object.kind == uturn_model::ObjectKind::Ingress
                && ingress.is_some_and(|ingress| ingress.controller.is_some())
        };
        let mut targets = scanner.targets();
        targets.retain(|target| is_served(&target.object));
        for result in scanner.scan(&targets).expect("verdicts") {
            let outcomes = result.verdicts.iter().flat_map(|verdict| &verdict.outcomes);
            ends.extend(outcomes.map(|(outcome, _)| outcome.to_string()));
        }
    }
    for end in ["answered at once", "503 at once", "502 at once", "504 after 2 s"] {
        assert!(ends.contains(end), "{end} is not among {ends:?}");
    }
}

/// The dice throw addresses that some nodes announce, that all do, and that none does.
#[test]
fn announcements_occur() {
    let mut met = BTreeSet::new();
    for seed in 0..80 {
        let dice = &mut Dice::new(seed);
        let mut cluster = written(&dice::cluster(dice));
        announced::add(&mut cluster, dice);
        for balancer in uturn_clouds::controller::load_balancers(&cluster) {
            let rules = balancer.listeners.iter().flat_map(|listener| &listener.rules);
            met.extend(rules.map(|rule| match rule.targets.len() {
                0 => "none",
                some if some < cluster.nodes.len() => "some",
                _ => "all",
            }));
        }
    }
    assert_eq!(met.into_iter().collect::<Vec<_>>(), ["all", "none", "some"]);
}

/// The dice throw load balancers of every product that [`clouds`] has, and weights that differ.
#[test]
fn products_of_clouds_occur() {
    let (mut names, mut heaviest) = (BTreeSet::new(), 0);
    for seed in 0..120 {
        let dice = &mut Dice::new(seed);
        let text = dice::cluster(dice).replacen("provider: tke", products::PROVIDER, 1);
        let mut cluster = written(&text);
        clouds::ask(&mut cluster, dice);
        let engine = Engine::new(&cluster).expect("rules that can be walked");
        for listener in engine.balancers().iter().flat_map(|balancer| &balancer.listeners) {
            names.insert(listener.profile.name.to_string());
            let targets = listener.rules.iter().flat_map(|rule| &rule.targets);
            heaviest = targets.map(|target| target.weight).fold(heaviest, u32::max);
        }
    }
    let expected = [
        "Alibaba Cloud CLB",
        "Alibaba Cloud NLB",
        "Huawei Cloud dedicated ELB",
        "Huawei Cloud shared ELB",
        "IBM Cloud ALB for VPC",
        "IBM Cloud NLB 1.0",
        "IBM Cloud NLB 2.0",
        "IBM Cloud NLB for VPC",
        "Oracle Cloud Load Balancer",
        "Oracle Cloud Network Load Balancer",
    ];
    for name in expected {
        assert!(names.contains(name), "{name} is not among {names:?}");
    }
    assert!(heaviest > 1, "no node has two pods of a Service");
}

/// The dice throw Ingresses that load balancers of clouds serve, and requests of them end in several
/// ways.
#[test]
fn ingresses_of_products_occur() {
    let mut ends = BTreeSet::new();
    for seed in 0..120 {
        let (cluster, _) = with_products(&mut Dice::new(seed));
        let engine = Engine::new(&cluster).expect("rules that can be walked");
        let scanner = Scanner::new(&engine);
        let mut targets = scanner.targets();
        targets.retain(|target| target.object.kind == uturn_model::ObjectKind::Ingress);
        for result in scanner.scan(&targets).expect("verdicts") {
            let outcomes = result.verdicts.iter().flat_map(|verdict| &verdict.outcomes);
            ends.extend(outcomes.map(|(outcome, _)| outcome.to_string()));
        }
    }
    for end in ["answered at once", "503 at once", "502 at once", "not known"] {
        assert!(ends.contains(end), "{end} is not among {ends:?}");
    }
}

/// The dice throw Gateways with routes, and requests through them end in several ways.
#[test]
fn routes_occur() {
    let mut ends = BTreeSet::new();
    for seed in 0..200 {
        let text = dice::cluster(&mut Dice::new(seed));
        let cluster = written(&text);
        if !cluster.ingresses.values().any(|ingress| ingress.route.is_some()) {
            continue;
        }
        let engine = Engine::new(&cluster).expect("rules that can be walked");
        let scanner = Scanner::new(&engine);
        let mut targets = scanner.targets();
        targets.retain(|target| target.object.kind == uturn_model::ObjectKind::HttpRoute);
        for result in scanner.scan(&targets).expect("verdicts") {
            let outcomes = result.verdicts.iter().flat_map(|verdict| &verdict.outcomes);
            ends.extend(outcomes.map(|(outcome, _)| outcome.to_string()));
        }
    }
    for end in ["answered at once", "500 at once", "503 at once", "404 at once"] {
        assert!(ends.contains(end), "{end} is not among {ends:?}");
    }
}

/// The dice throw routes of connections, and what is passed on by them ends in several ways.
#[test]
fn routes_of_connections_occur() {
    const WANTED: [&str; 3] = ["answered at once", "empty reply", "TLS error"];
    let (mut ends, mut kinds) = (BTreeSet::new(), BTreeSet::new());
    let has_all = |ends: &BTreeSet<String>| WANTED.iter().all(|end| ends.contains(*end));
    for seed in 0..1000 {
        if has_all(&ends) && kinds.len() == 2 {
            break;
        }
        let text = dice::cluster(&mut Dice::new(seed));
        let cluster = written(&text);
        let engine = Engine::new(&cluster).expect("rules that can be walked");
        let scanner = Scanner::new(&engine);
        let mut targets = scanner.targets();
        targets.retain(|target| target.object.kind.is_route_of_connections());
        kinds.extend(targets.iter().map(|target| target.object.kind.as_str()));
        for result in scanner.scan(&targets).expect("verdicts") {
            let outcomes = result.verdicts.iter().flat_map(|verdict| &verdict.outcomes);
            ends.extend(outcomes.map(|(outcome, _)| outcome.to_string()));
        }
    }
    assert_eq!(kinds.into_iter().collect::<Vec<_>>(), ["TCPRoute", "TLSRoute"]);
    assert!(has_all(&ends), "not all of {WANTED:?} are among {ends:?}");
}
