//! What iptables mode wrote in versions past: the same Services, other rules.

#![allow(clippy::unwrap_used, reason = "what is wrong here fails the test")]

use std::collections::BTreeSet;

use crate::support::any::any_cluster;
use crate::support::every_kind::{
    everywhere, external_local, internal_local, load_balancer, node_port,
};
use crate::support::*;
use proptest::prelude::*;
use uturn_kubeproxy::compile;
use uturn_model::proxy::NodePortAddresses;
use uturn_model::service::IpMode;
use uturn_model::{Cluster, Endpoint, Family, Version};

const VIP: &str = "203.0.113.10";

#[test]
fn policy_local_without_a_local_endpoint() {
    let local = external_local(load_balancer("s", "172.16.1.1", 30000, VIP));
    let there = vec![endpoint("10.1.2.10", "n2")];
    let rules = |minor| saved(&cluster_with(local.clone(), there.clone()), minor);
    let new = rules(25);
    assert!(new.chain("filter", "KUBE-EXTERNAL-SERVICES")[0].ends_with("-j DROP"));
    assert!(starting(&new, "KUBE-SVL-").is_empty());
    let marks = "-m comment --comment \"shop/s has no local endpoints\" -j KUBE-MARK-DROP";
    for (minor, prefix) in [(24, "KUBE-SVL-"), (23, "KUBE-XLB-"), (22, "KUBE-XLB-")] {
        let old = rules(minor);
        assert!(old.chain("filter", "KUBE-EXTERNAL-SERVICES").is_empty());
        let chain = starting(&old, prefix);
        assert!(chain.last().unwrap().ends_with(marks), "{minor}: {chain:?}");
        let drops = ["-m mark --mark 0x8000/0x8000 -j DROP", "DNAT -j DROP"];
        for (rule, end) in old.chain("filter", "KUBE-FIREWALL").iter().zip(drops) {
            assert!(rule.ends_with(end), "{rule}");
        }
    }
}

#[test]
fn the_old_chain_of_a_port_masquerades_for_all_its_addresses() {
    let mut plain = load_balancer("s", "172.16.1.1", 30000, VIP);
    plain.external_ips = vec![ip("192.0.2.7")];
    let old = saved(&cluster_with(plain.clone(), everywhere()), 23);
    let chain = starting(&old, "KUBE-SVC-");
    assert_eq!(chain.len(), 3 + 4);
    let heads =
        ["! -s 10.1.0.0/16 -d 172.16.1.1/32 ", "! -s 10.1.0.0/16 -d 192.0.2.7/32 ", "-p tcp "];
    for (rule, head) in chain.iter().zip(heads) {
        let (_, words) = rule.split_once(' ').unwrap().1.split_once(' ').unwrap();
        assert!(words.starts_with(head) && words.ends_with("-j KUBE-MARK-MASQ"), "{rule}");
    }
    assert_eq!(starting(&old, "KUBE-FW-").len(), 3);
    assert!(starting(&old, "KUBE-EXT-").is_empty());
    let new = saved(&cluster_with(plain, everywhere()), 24);
    assert_eq!(starting(&new, "KUBE-SVC-").len(), 1 + 4);
    assert!(starting(&new, "KUBE-FW-").is_empty());
    assert_eq!(starting(&new, "KUBE-EXT-").len(), 2);
}

#[test]
fn what_a_version_does_not_know_yet_it_ignores() {
    // Endpoints that are going.
    let mut going = everywhere();
    going.iter_mut().for_each(|endpoint| (endpoint.ready, endpoint.terminating) = (false, true));
    let cluster = cluster_with(service("s", "172.16.1.1"), going);
    assert_eq!(starting(&saved(&cluster, 26), "KUBE-SVC-").len(), 5);
    assert!(starting(&saved(&cluster, 25), "KUBE-SVC-").is_empty());
    // Hints.
    let mut hinted = everywhere();
    hinted.iter_mut().for_each(|endpoint| endpoint.zone_hints.push("z1".into()));
    hinted[0].node_hints.push(name("n1"));
    hinted[1..].iter_mut().for_each(|endpoint| endpoint.node_hints.push(name("n2")));
    hinted[3].zone_hints = vec!["z3".into()];
    let count = |minor, note: Option<(&str, &str)>| {
        let mut plain = service("s", "172.16.1.1");
        plain.annotations = note.into_iter().map(|(key, value)| (key, value.to_owned())).collect();
        starting(&saved(&cluster_with(plain, hinted.clone()), minor), "KUBE-SVC-").len() - 1
    };
    let old = "service.kubernetes.io/topology-aware-hints";
    let new = "service.kubernetes.io/topology-mode";
    assert_eq!((count(34, None), count(33, None), count(31, None)), (1, 3, 3));
    assert_eq!((count(30, None), count(30, Some((new, "Auto")))), (4, 3));
    assert_eq!((count(27, Some((new, "Disabled"))), count(27, Some((old, "x")))), (4, 3));
    assert_eq!((count(26, Some((new, "Auto"))), count(26, Some((old, "Auto")))), (4, 3));
    assert_eq!((count(26, Some((old, "x"))), count(23, Some((old, "Auto")))), (4, 4));
    // Addresses that are the load balancer's own affair.
    let mut by_proxy = load_balancer("s", "172.16.1.1", 30000, VIP);
    by_proxy.load_balancer[0].mode = IpMode::Proxy;
    let cluster = cluster_with(by_proxy, everywhere());
    let mentions = |minor| format!("{:?}", saved(&cluster, minor)).contains(VIP);
    assert_eq!((mentions(30), mentions(29)), (false, true));
}

#[test]
fn the_internal_policy_was_once_for_every_address() {
    let local = internal_local(node_port("s", "172.16.1.1", 30000));
    let cluster = cluster_with(local, vec![endpoint("10.1.2.10", "n2")]);
    let refused = |minor| saved(&cluster, minor).chain("filter", "KUBE-EXTERNAL-SERVICES").len();
    assert_eq!((refused(23), refused(24)), (1, 0));
}

#[test]
fn of_two_pods_with_one_address_the_running_one_counts_since_v1_36() {
    let going =
        Endpoint { ready: false, serving: false, terminating: true, ..endpoint("10.1.2.10", "n2") };
    let refused = |endpoints: [&Endpoint; 2]| {
        let endpoints = endpoints.map(Endpoint::clone).to_vec();
        let cluster = cluster_with(node_port("s", "172.16.1.1", 30000), endpoints);
        [35, 36].map(|minor| saved(&cluster, minor).chain("filter", "KUBE-SERVICES").len())
    };
    let running = endpoint("10.1.2.10", "n2");
    assert_eq!(refused([&going, &running]), [1, 0]);
    assert_eq!(refused([&running, &going]), [0, 0]);
    // On its own node the last counts, or the last that is not going.
    let here = |endpoint: &Endpoint| Endpoint { node: Some(name("n1")), ..endpoint.clone() };
    assert_eq!(refused([&here(&running), &here(&going)]), [1, 0]);
}

#[test]
fn localhost_and_replies() {
    let mut cluster = cluster_with(node_port("s", "172.16.1.1", 30000), everywhere());
    cluster.proxy.node_port_addresses = NodePortAddresses::All;
    cluster.proxy.localhost_node_ports = false;
    let last = |minor| {
        let saved = saved(&cluster, minor);
        saved.chain("nat", "KUBE-SERVICES").last().unwrap().contains("! -d 127.0.0.0/8")
    };
    assert_eq!((last(25), last(26)), (false, true));
    cluster.proxy.conntrack_tcp_be_liberal = true;
    let forward = |minor| saved(&cluster, minor).chain("filter", "KUBE-FORWARD").len();
    assert_eq!((forward(22), forward(23), forward(28), forward(29)), (4, 3, 3, 2));
}

#[test]
fn ranges_of_the_other_family_counted_once() {
    let mut cluster = cluster_with(node_port("s", "172.16.1.1", 30000), everywhere());
    let taken = |cluster: &Cluster| {
        [26, 27, 28].map(|minor| {
            let saved = saved(cluster, minor);
            let last = saved.chain("nat", "KUBE-SERVICES").last().unwrap();
            last.split_once(" -m comment").unwrap().0.trim_start_matches("-A ").to_owned()
        })
    };
    let ranges = |nets: &[&str]| {
        NodePortAddresses::Ranges(nets.iter().map(|net| net.parse().unwrap()).collect())
    };
    cluster.proxy.node_port_addresses = ranges(&["fd00::/8"]);
    let all = "KUBE-SERVICES";
    assert_eq!(taken(&cluster), [all, "KUBE-SERVICES -d 172.16.1.1/32 -p tcp", all]);
    cluster.proxy.node_port_addresses = ranges(&["::/0", "10.0.0.0/24"]);
    let own = "KUBE-SERVICES -d 10.0.0.11/32";
    assert_eq!(taken(&cluster), [own, all, own]);
}

proptest! {
    #[test]
    fn every_jump_lands_in_every_version(cluster in any_cluster(), minor in 9..37u16) {
        let mut cluster = cluster;
        cluster.proxy.version = known(Version::new(1, minor, 0));
        for node in cluster.nodes.keys() {
            for family in Family::BOTH {
                let program = compile(&cluster, node, &cluster.proxy, family).unwrap();
                for (table, chains) in &Saved::parse(&program.iptables).0 {
                    let mut reached = BTreeSet::new();
                    for rule in chains.values().flatten() {
                        let Some((_, rest)) = rule.split_once(" -j ") else { continue };
                        let target = rest.split(' ').next().unwrap();
                        reached.insert(target);
                        let is_built_in = !target.starts_with("KUBE-");
                        assert!(is_built_in || chains.contains_key(target), "{table}: {rule}");
                    }
                    // But for KUBE-XLB, which every Service under policy Local has, and for
                    // KUBE-EXT of NodePorts that no address of the node takes.
                    let is_for_someone = |chain: &&String| {
                        let all = ["KUBE-SVC-", "KUBE-SEP-", "KUBE-FW-", "KUBE-SVL-", "KUBE-EXT-"];
                        let known = if minor < 27 { &all[..4] } else { &all };
                        known.iter().any(|prefix| chain.starts_with(prefix))
                    };
                    for chain in chains.keys().filter(is_for_someone) {
                        assert!(reached.contains(&**chain), "{table} {chain}");
                    }
                }
            }
        }
    }
}

/// The rules of a version on the first node.
fn saved(cluster: &Cluster, minor: u16) -> Saved {
    let mut settings = cluster.proxy.clone();
    settings.version = known(Version::new(1, minor, 0));
    Saved::parse(&compile(cluster, &name("n1"), &settings, Family::V4).unwrap().iptables)
}

/// The rules of the nat table's chains whose names start so.
fn starting(saved: &Saved, prefix: &str) -> Vec<String> {
    let chains = saved.0["nat"].iter().filter(|(chain, _)| chain.starts_with(prefix));
    chains.flat_map(|(_, rules)| rules.clone()).collect()
}
