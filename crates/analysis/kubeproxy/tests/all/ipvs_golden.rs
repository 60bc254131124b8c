//! What kube-proxy v1.34.4 left in the kernels of two nodes in IPVS mode.
//!
//! `golden/objects.yaml` is what it was given. Each node was a separate machine, with the
//! same two addresses.

#![allow(clippy::unwrap_used, reason = "what is wrong here fails the test")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::net::IpAddr;

use crate::support::*;
use uturn_kubeproxy::{Program, compile};
use uturn_model::proxy::NodePortAddresses;
use uturn_model::{Cluster, Family, Name, ProxyMode};

#[test]
fn rules_equal_the_dumps() {
    for (node, dumps) in NODES {
        let (program, _) = programs(node);
        let (ours, theirs) =
            (Saved::parse(&program.iptables), Saved::parse(&read(dumps, "iptables.save")));
        for (table, chains) in &theirs.0 {
            for (chain, rules) in chains {
                assert_eq!(ours.chain(table, chain), rules, "{node} {table} {chain}");
            }
        }
        assert_eq!(ours, theirs);
    }
}

#[test]
fn sets_equal_the_dumps() {
    for (node, dumps) in NODES {
        let (v4, v6) = programs(node);
        let (ours, theirs) = (sets(&(v4.ipset + &v6.ipset)), sets(&read(dumps, "ipset.save")));
        for (name, set) in &theirs {
            assert_eq!(ours.get(name), Some(set), "{node} {name}");
        }
        assert_eq!(ours.len(), theirs.len());
    }
}

#[test]
fn virtual_servers_equal_the_dumps() {
    for (node, dumps) in NODES {
        let (v4, v6) = programs(node);
        let (ours, theirs) = (servers(&v4.ipvs), servers(&read(dumps, "ipvs.save")));
        for (name, server) in &theirs {
            assert_eq!(ours.get(name), Some(server), "{node} {name}");
        }
        assert_eq!(ours.len(), theirs.len());
        assert_eq!(v6.ipvs, "");
    }
}

#[test]
fn bound_addresses_equal_the_dumps() {
    for (node, dumps) in NODES {
        let dump = read(dumps, "addr");
        let (_, device) = dump.split_once(": kube-ipvs0: ").unwrap();
        let theirs: BTreeSet<IpAddr> = device
            .lines()
            .filter_map(|line| line.trim().strip_prefix("inet "))
            .map(|line| line.split('/').next().unwrap().parse().unwrap())
            .collect();
        let (v4, v6) = programs(node);
        assert_eq!(v4.bound, theirs.into_iter().collect::<Vec<_>>(), "{node}");
        assert!(v6.bound.is_empty());
    }
}

#[test]
fn kernel_settings_equal_the_dumps() {
    for (node, dumps) in NODES {
        let dump = read(dumps, "sysctl");
        let theirs: BTreeMap<_, _> =
            dump.lines().filter_map(|line| line.split_once(" = ")).collect();
        let (v4, v6) = programs(node);
        assert_eq!(v4.sysctls, v6.sysctls);
        let seen = v4.sysctls.iter().filter(|(name, _)| name != "net.ipv4.ip_forward");
        assert_eq!(seen.clone().count(), 3);
        for (name, value) in seen {
            assert_eq!(theirs.get(&**name), Some(&&**value), "{node} {name}");
        }
        assert_eq!(theirs["net.ipv4.vs.conn_reuse_mode"], "1", "the kernel's own");
    }
}

const NODES: [(&str, &str); 2] = [("n1", "ipvs-n1"), ("n2", "ipvs-n2")];

fn programs(node: &str) -> (Program, Program) {
    let cluster = cluster();
    let node = Name::new(node).unwrap();
    let of = |family| compile(&cluster, &node, &cluster.proxy, family).unwrap();
    (of(Family::V4), of(Family::V6))
}

fn cluster() -> Cluster {
    let paths = [golden("objects.yaml"), golden("beside.yaml")];
    let mut cluster = uturn_snapshot::load(&paths).unwrap().cluster;
    for node in cluster.nodes.values_mut() {
        // The objects do not say it.
        node.internal_ips = vec![ip("10.0.0.11"), ip("10.0.2.15")];
        node.kernel = Some("6.1.0-42-cloud-amd64".into());
    }
    cluster.proxy = settings();
    cluster.proxy.mode = known(ProxyMode::Ipvs);
    cluster.proxy.node_port_addresses = NodePortAddresses::All;
    cluster
}

/// Sets by name: how they are made, but for the seed, and what is in them.
fn sets(text: &str) -> BTreeMap<String, (String, BTreeSet<String>)> {
    let mut all = BTreeMap::new();
    for line in text.lines() {
        let (verb, rest) = line.split_once(' ').unwrap();
        let (name, rest) = rest.split_once(' ').unwrap();
        let rest = rest.split(" initval ").next().unwrap().to_owned();
        match verb {
            "create" => assert!(all.insert(name.to_owned(), (rest, BTreeSet::new())).is_none()),
            "add" => assert!(all.get_mut(name).unwrap().1.insert(rest), "twice: {line}"),
            _ => panic!("{line}"),
        }
    }
    all
}

/// Virtual servers by what they answer for: how they do, and the endpoints behind them.
fn servers(text: &str) -> BTreeMap<String, (String, Vec<String>)> {
    let mut all: BTreeMap<String, (String, Vec<String>)> = BTreeMap::new();
    for line in text.lines() {
        let (verb, rest) = line.split_once(' ').unwrap();
        let end = rest.match_indices(' ').nth(1).unwrap().0;
        let (name, rest) = (rest[..end].to_owned(), rest[end..].to_owned());
        match verb {
            "-A" => assert!(all.insert(name, (rest, Vec::new())).is_none(), "twice: {line}"),
            "-a" => all.get_mut(&name).unwrap().1.push(rest),
            _ => panic!("{line}"),
        }
    }
    all
}

fn read(dumps: &str, file: &str) -> String {
    fs::read_to_string(golden(dumps).join(file)).unwrap()
}
