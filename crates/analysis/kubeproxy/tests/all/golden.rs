//! What kube-proxy v1.34.4 left in the kernels of three nodes, rule by rule.
//!
//! `golden/objects.yaml` is what it was given; `golden/iptables-*` is what iptables 1.8.9
//! then saved on each node. Accounting objects existed there.

#![allow(clippy::unwrap_used, reason = "what is wrong here fails the test")]

use std::fs;

use crate::support::*;
use uturn_kubeproxy::{Options, compile_with};
use uturn_model::{Cluster, Family};

#[test]
fn objects_become_the_dumps() {
    let paths = [golden("objects.yaml"), golden("beside.yaml")];
    let mut cluster = uturn_snapshot::load(&paths).unwrap().cluster;
    for (node, number) in cluster.nodes.values_mut().zip(11..) {
        // The objects do not say it; kube-proxy had it from the nodes' status.
        node.internal_ips = vec![[10, 0, 0, number].into()];
    }
    cluster.proxy = settings();
    equals_the_dumps(&cluster);
}

#[test]
fn the_same_by_hand_becomes_the_dumps() {
    equals_the_dumps(&every_kind::cluster());
}

fn equals_the_dumps(cluster: &Cluster) {
    assert_eq!(cluster.nodes.len(), 3);
    for node in cluster.nodes.keys() {
        for (family, file) in [(Family::V4, "iptables.save"), (Family::V6, "ip6tables.save")] {
            let options = Options { accounting: true, ..Options::default() };
            let program = compile_with(cluster, node, &cluster.proxy, family, options).unwrap();
            let dump = fs::read_to_string(golden(&format!("iptables-{node}")).join(file)).unwrap();
            let (mut ours, mut theirs) = (Saved::parse(&program.iptables), Saved::parse(&dump));
            ours.sort_by_service();
            theirs.sort_by_service();
            for (table, chains) in &theirs.0 {
                for (chain, rules) in chains {
                    assert_eq!(ours.chain(table, chain), rules, "{node} {file} {table} {chain}");
                }
                let names = |chains: &Chains| chains.keys().cloned().collect::<Vec<_>>();
                assert_eq!(names(&ours.0[table]), names(chains), "{node} {file} {table}");
            }
            assert_eq!(ours.0.len(), theirs.0.len());
        }
    }
}
