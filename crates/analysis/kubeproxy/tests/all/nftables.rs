//! The rules of nftables mode, for clusters of all sorts.

#![allow(clippy::unwrap_used, reason = "what is wrong here fails the test")]
#![allow(clippy::print_stdout, reason = "says why nothing was tried")]

use std::collections::BTreeSet;

use crate::support::any::any_cluster;
use crate::support::dual_stack::dual_stack;
use crate::support::every_kind::{everywhere, external_local, load_balancer, node_port};
use crate::support::nft::{Listed, load, trouble};
use crate::support::*;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use uturn_kubeproxy::{Unsupported, compile};
use uturn_model::proxy::{LocalDetector, NodePortAddresses};
use uturn_model::service::Policy;
use uturn_model::{Cluster, Endpoint, Family, ProxyMode, ProxySettings, Service, Version};

/// A version of each shape of rules.
const VERSIONS: [Version; 5] = [
    Version::new(1, 30, 14),
    Version::new(1, 31, 14),
    Version::new(1, 33, 13),
    Version::new(1, 34, 4),
    Version::new(1, 36, 3),
];

proptest! {
    #[test]
    fn what_is_named_is_there_and_what_is_there_is_named(cluster in any_cluster()) {
        for_each_table(&cluster, |listed, ip| {
            let mut named = BTreeSet::new();
            let remarks = |line: &&String| line.starts_with("comment ");
            for line in listed.blocks.values().flatten().filter(|line| !remarks(line)) {
                let words: Vec<&str> = line.split([' ', ',']).collect();
                for pair in words.windows(2) {
                    if let ["jump" | "goto", chain] = pair {
                        named.insert(format!("{ip} chain {chain}"));
                    }
                }
                for name in words.iter().filter_map(|word| word.strip_prefix('@')) {
                    let kinds = ["set", "map"].map(|kind| format!("{ip} {kind} {name}"));
                    let known = kinds.into_iter().find(|name| listed.blocks.contains_key(name));
                    named.insert(known.unwrap_or_else(|| panic!("no {name}: {line}")));
                }
            }
            for name in &named {
                assert!(listed.blocks.contains_key(name), "no {name}");
            }
            for (name, lines) in &listed.blocks {
                let begins = lines.iter().any(|line| line.contains(" hook "));
                // Where the port has no such address, or its traffic takes other ways.
                assert!(begins || named.contains(name) || is_spare(name, listed), "{name}");
            }
        });
    }

    #[test]
    fn endpoints_share_alike(cluster in any_cluster()) {
        for_each_table(&cluster, |listed, _| {
            for rule in listed.blocks.values().flatten() {
                let Some((_, rest)) = rule.split_once("numgen random mod ") else { continue };
                let (count, rest) = rest.split_once(' ').unwrap();
                let (_, inner) = rest.split_once("{ ").unwrap();
                let ends: Vec<&str> = inner.trim_end_matches(" }").split(", ").collect();
                let count: usize = count.parse().unwrap();
                assert_eq!(ends.len(), count, "{rule}");
                let places = ends.iter().map(|end| end.split(" : ").next().unwrap().parse::<usize>().unwrap());
                assert!(places.eq(0..count), "{rule}");
                let different: BTreeSet<_> = ends.iter().map(|end| end.split(" : ").nth(1)).collect();
                assert_eq!(different.len(), count, "{rule}");
            }
        });
    }

    #[test]
    fn the_cluster_ip_is_served_dropped_or_refused(cluster in any_cluster()) {
        for version in VERSIONS {
            for (node, family) in each(&cluster) {
                let listed = listed(&cluster, node, family, version);
                for service in cluster.services.values() {
                    let Some(address) = service.cluster_ip(family) else { continue };
                    let ip = if family == Family::V4 { "ip" } else { "ip6" };
                    let start = format!("{address} . ");
                    let verdicts = |map: &str| -> BTreeSet<String> {
                        let all = listed.elements(&format!("{ip} map {map}"));
                        let all = all.iter().filter(|element| element.starts_with(&start));
                        let verdict = |element: &String| element.rsplit(" : ").next().unwrap().to_owned();
                        all.map(|element| verdict(element)[..4].to_owned()).collect()
                    };
                    let usable = |endpoint: &&Endpoint| endpoint.ready || (endpoint.serving && endpoint.terminating);
                    let all: Vec<_> = endpoints(&cluster, service).filter(usable).collect();
                    let here = all.iter().any(|endpoint| endpoint.node.as_ref().unwrap().as_str() == node);
                    let (served, not): (&[&str], &[&str]) = match service.internal_policy {
                        _ if all.is_empty() => (&[], &["goto"]),
                        Policy::Local if !here => (&[], &["drop"]),
                        _ => (&["goto"], &[]),
                    };
                    let set = |all: &[&str]| all.iter().map(|name| (*name).to_owned()).collect();
                    assert_eq!(verdicts("service-ips"), set(served), "{}", service.name);
                    assert_eq!(verdicts("no-endpoint-services"), set(not), "{}", service.name);
                    let known = listed.elements(&format!("{ip} set cluster-ips"));
                    assert!(known.contains(&address.to_string()));
                }
            }
        }
    }

    #[test]
    fn the_order_of_what_is_known_changes_nothing(cluster in any_cluster()) {
        let mut turned = cluster.clone();
        for slices in turned.endpoints.values_mut() {
            slices.reverse();
            slices.iter_mut().for_each(|slice| slice.endpoints.reverse());
        }
        for version in VERSIONS {
            for (node, family) in each(&cluster) {
                let (straight, other) = [&cluster, &turned].map(|it| text(it, node, family, version)).into();
                prop_assert_eq!(straight, other);
            }
        }
    }
}

#[test]
fn nft_loads_it_and_prints_it_back_to_the_letter() {
    if let Some(reason) = trouble() {
        println!("skipped: nft cannot be used here: {reason}");
        return;
    }
    for cluster in clusters() {
        for version in VERSIONS {
            for (node, family) in each(&cluster).take(2) {
                let ours = text(&cluster, node, family, version);
                let kernels = load(&ours).unwrap_or_else(|error| panic!("{error}\n{ours}"));
                assert_eq!(kernels, ours, "{version} {family} {node}");
            }
        }
    }
}

#[test]
fn known_names() {
    let mut cluster = cluster(1);
    let mut service = service("svc1", "172.16.1.1");
    service.name = uturn_model::NamespacedName::new("ns1", "svc1").unwrap();
    service.ports[0].name = Some("p80".into());
    add(&mut cluster, service, vec![endpoint("10.180.0.1", "n1")]);
    cluster.endpoints.values_mut().flatten().for_each(|slice| slice.ports[0].port = port(80));
    let listed = listed(&cluster, "n1", Family::V4, VERSIONS[3]);
    let door = "endpoint-5OJB2KTY-ns1/svc1/tcp/p80__10.180.0.1/80";
    assert_eq!(
        listed.chain("ip", "service-ULMVA6XW-ns1/svc1/tcp/p80").last().unwrap(),
        &format!("numgen random mod 1 vmap {{ 0 : goto {door} }}")
    );
    assert_eq!(listed.chain("ip", door).len(), 2);
}

#[test]
fn a_pod_that_is_its_own_client() {
    let cluster = cluster_with(service("s", "172.16.1.1"), everywhere());
    let listed = listed(&cluster, "n1", Family::V4, VERSIONS[4]);
    let set = listed.elements("ip set hairpin-connections");
    let here = ["10.1.1.10", "10.1.1.11"].map(|ip| format!("{ip} . {ip} . tcp . 8080"));
    assert_eq!(set, here);
    assert!(
        listed.order.iter().all(|name| !name.contains("chain endpoint-")),
        "{:?}",
        listed.order
    );
}

#[test]
fn clients_are_remembered_by_endpoint() {
    for version in VERSIONS {
        let service = Service { affinity_seconds: Some(90061), ..service("s", "172.16.1.1") };
        let listed = listed(&cluster_with(service, everywhere()), "n1", Family::V4, version);
        let is_kind = |kind: &'static str| move |name: &&String| name.starts_with(kind);
        let sets: Vec<_> = listed.order.iter().filter(is_kind("ip set affinity-")).collect();
        assert_eq!(sets.len(), 4);
        for set in sets {
            assert!(listed.blocks[set].contains(&"timeout 1d1h1m1s".to_owned()));
        }
        assert_eq!(listed.order.iter().filter(is_kind("ip chain endpoint-")).count(), 4);
    }
}

#[test]
fn source_ranges_and_the_node_within_them() {
    let mut service = load_balancer("s", "172.16.1.1", 30000, "203.0.113.14");
    let fence = |ranges: &[&str]| {
        service.source_ranges = ranges.iter().map(|net| net.parse().unwrap()).collect();
        let listed =
            listed(&cluster_with(service.clone(), everywhere()), "n1", Family::V4, VERSIONS[3]);
        let name = listed
            .order
            .iter()
            .find(|name| name.starts_with("ip chain firewall-") && name.contains('/'));
        name.map(|name| listed.blocks[name].concat())
    };
    let mut fence = fence;
    assert_eq!(fence(&[]), None);
    assert_eq!(fence(&["0.0.0.0/0"]), None);
    assert_eq!(fence(&["198.51.100.0/24"]).unwrap(), "ip saddr != 198.51.100.0/24 drop");
    assert_eq!(
        fence(&["10.0.0.0/16", "198.51.100.0/24"]).unwrap(),
        "ip saddr != { 10.0.0.0/16, 198.51.100.0/24, 203.0.113.14 } drop"
    );
}

#[test]
fn localhost_takes_no_node_ports() {
    let mut cluster = cluster_with(node_port("s", "172.16.1.1", 30000), everywhere());
    let ranges = ["10.0.0.0/24", "127.0.0.0/8"].map(|net| net.parse().unwrap());
    cluster.proxy.node_port_addresses = NodePortAddresses::Ranges(ranges.into());
    let listed = listed(&cluster, "n1", Family::V4, VERSIONS[3]);
    assert_eq!(listed.elements("ip set nodeport-ips"), ["10.0.0.11"]);
}

#[test]
fn a_family_whose_ranges_nobody_states_had_its_primary_address_once() {
    let mut cluster = cluster_with(node_port("s", "172.16.1.1", 30000), everywhere());
    let ranges = ["fd00:aa::/64".parse().unwrap()];
    cluster.proxy.node_port_addresses = NodePortAddresses::Ranges(ranges.into());
    let old = listed(&cluster, "n1", Family::V4, Version::new(1, 30, 14));
    assert_eq!(old.elements("ip set nodeport-ips"), ["10.0.0.11"]);
    let later = listed(&cluster, "n1", Family::V4, Version::new(1, 31, 14));
    assert!(!later.blocks.contains_key("ip set nodeport-ips"));
    // Its node has no address of that family: none is localhost's only.
    cluster.proxy.node_port_addresses = NodePortAddresses::Primary;
    let old = listed(&cluster, "n1", Family::V6, Version::new(1, 30, 14));
    assert!(old.blocks.contains_key("ip6 set nodeport-ips"));
}

#[test]
fn of_two_services_with_one_address_one_is_served() {
    let mut cluster =
        cluster_with(load_balancer("a", "172.16.1.1", 30000, "203.0.113.14"), everywhere());
    add(&mut cluster, load_balancer("b", "172.16.1.2", 30000, "203.0.113.14"), everywhere());
    for version in VERSIONS {
        let listed = listed(&cluster, "n1", Family::V4, version);
        let services = listed.elements("ip map service-ips");
        assert_eq!(services.iter().filter(|element| element.starts_with("203.")).count(), 1);
        assert_eq!(listed.elements("ip map service-nodeports").len(), 1);
    }
}

#[test]
fn names_as_long_as_they_may_be() {
    let long = "x".repeat(63);
    let mut cluster = cluster(1);
    let mut service = external_local(load_balancer("s", "172.16.1.1", 30000, "203.0.113.1"));
    service.name = uturn_model::NamespacedName::new(&long, &long).unwrap();
    service.ports[0].name = Some(long.as_str().into());
    service.cluster_ips.push(ip("fd00::1"));
    let pod = "fd00:1111:2222:3333:4444:5555:6666:7777";
    add(&mut cluster, service, vec![endpoint(pod, "n2")]);
    cluster.endpoints.values_mut().flatten().for_each(|slice| slice.family = Family::V6);
    let listed = listed(&cluster, "n1", Family::V6, VERSIONS[3]);
    let named = |kind: &str| {
        let start = format!("ip6 chain {kind}-");
        let mut names = listed.order.iter().filter_map(move |name| name.strip_prefix(&start));
        names.find(|name| name.contains('/')).unwrap().to_owned()
    };
    assert_eq!(named("endpoint").len(), 240);
    assert!(named("endpoint").ends_with("..."));
    assert_eq!(named("service").len(), 8 + 1 + 63 * 3 + 4 + 2);
    if trouble().is_none() {
        let ours = text(&cluster, "n1", Family::V6, VERSIONS[3]);
        assert_eq!(load(&ours).unwrap(), ours);
    }
}

#[test]
fn names_that_no_api_server_takes_break_nothing() {
    for key in ["a\"b", "a b", "{}\n", "ü;", "#", "@x", ""] {
        let mut service = load_balancer("s", "172.16.1.1", 30000, "203.0.113.1");
        service.ports[0].name = Some(key.into());
        for ends in [vec![], everywhere()] {
            let ours = text(&cluster_with(service.clone(), ends), "n1", Family::V4, VERSIONS[3]);
            let listed = Listed::parse(&ours);
            assert!(!listed.blocks.is_empty());
            if trouble().is_none() {
                assert_eq!(load(&ours).unwrap(), ours, "{key:?}");
            }
        }
    }
}

#[test]
fn versions_without_the_mode_are_refused() {
    let mut cluster = cluster_with(service("s", "172.16.1.1"), everywhere());
    cluster.proxy.mode = known(ProxyMode::Nftables);
    cluster.proxy.version = known(Version::new(1, 28, 3));
    let error = compile(&cluster, &name("n1"), &cluster.proxy, Family::V4).unwrap_err();
    assert_eq!(error, Unsupported::NoNftables(Version::new(1, 28, 3)));
    assert_eq!(
        error.to_string(),
        "kube-proxy v1.28.3 has no nftables mode, or only a first trial of it: expected version \
         v1.30 or later"
    );
}

#[test]
fn rules_that_no_kernel_takes_are_refused() {
    let mut cluster = cluster_with(service("s", "172.16.1.1"), everywhere());
    cluster.proxy.mode = known(ProxyMode::Nftables);
    cluster.proxy.version = known(Version::new(1, 32, 2));
    cluster.proxy.detector = known(LocalDetector::InterfaceNamePrefix("eni".into()));
    let error = compile(&cluster, &name("n1"), &cluster.proxy, Family::V4).unwrap_err();
    assert_eq!(
        error.to_string(),
        "kube-proxy v1.32.2 in nftables mode loads no rules at all if its local detector is \
         InterfaceNamePrefix: expected another detector, or version v1.33.6, v1.34.2 or later"
    );
}

/// Every kind of Service under every setting that changes a rule, and some of all sorts.
fn clusters() -> Vec<Cluster> {
    let mut settings: Vec<ProxySettings> = vec![settings()];
    let mut with = |change: &dyn Fn(&mut ProxySettings)| {
        let mut changed = settings[0].clone();
        change(&mut changed);
        settings.push(changed);
    };
    with(&|settings| settings.detector = known(LocalDetector::None));
    with(&|settings| settings.detector = known(LocalDetector::BridgeInterface("cbr0".into())));
    with(&|settings| settings.detector = known(LocalDetector::InterfaceNamePrefix("veth".into())));
    with(&|settings| settings.masquerade_all = true);
    with(&|settings| settings.masquerade_bit = 31);
    with(&|settings| settings.masquerade_bit = 0);
    with(&|settings| settings.node_port_addresses = NodePortAddresses::All);
    let with_settings = |proxy| {
        let mut cluster = dual_stack(Cluster { proxy, ..every_kind::cluster() });
        let ranges = ["172.16.0.0/16", "fd00::ac10:0/112", "172.20.0.0/16"];
        cluster.network.service_cidrs = known(ranges.map(|net| net.parse().unwrap()).into());
        cluster
    };
    let mut runner = TestRunner::deterministic();
    let mut some = || any_cluster().new_tree(&mut runner).unwrap().current();
    settings.into_iter().map(with_settings).chain((0..12).map(|_| some())).collect()
}

/// Chains that kube-proxy makes though nothing leads to them: those of a port whose address
/// another one has, or whose traffic takes other ways, and shared ones without a use.
fn is_spare(name: &str, listed: &Listed) -> bool {
    let shared = ["mark-for-masquerade", "reject-chain"];
    let door = name.contains("chain endpoint-") || name.contains("set affinity-");
    name.contains('/') && !door
        || shared.iter().any(|shared| name.ends_with(shared))
        || listed.blocks[name].is_empty()
}

fn for_each_table(cluster: &Cluster, check: impl Fn(&Listed, &str)) {
    for version in VERSIONS {
        for (node, family) in each(cluster) {
            let ip = if family == Family::V4 { "ip" } else { "ip6" };
            check(&listed(cluster, node, family, version), ip);
        }
    }
}

fn each(cluster: &Cluster) -> impl Iterator<Item = (&str, Family)> {
    let nodes = cluster.nodes.keys();
    nodes.flat_map(|node| Family::BOTH.map(|family| (node.as_str(), family)))
}

fn listed(cluster: &Cluster, node: &str, family: Family, version: Version) -> Listed {
    Listed::parse(&text(cluster, node, family, version))
}

fn text(cluster: &Cluster, node: &str, family: Family, version: Version) -> String {
    let mode = known(ProxyMode::Nftables);
    let mut settings = ProxySettings { mode, version: known(version), ..cluster.proxy.clone() };
    let by_prefix = matches!(settings.detector.value, LocalDetector::InterfaceNamePrefix(_));
    if by_prefix && version < Version::new(1, 33, 0) {
        settings.detector = known(LocalDetector::BridgeInterface("cbr0".into()));
    }
    let program = compile(cluster, &name(node), &settings, family).unwrap();
    assert_eq!((program.iptables.as_str(), program.bound.len()), ("", 0));
    program.nft
}
