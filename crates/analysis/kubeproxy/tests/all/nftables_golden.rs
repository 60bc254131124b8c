//! What kube-proxy in nftables mode left in kernels.
//!
//! `golden/objects.yaml` is what it was given; `golden/nftables-n*` is what nft 1.0.6 then
//! listed on each of three nodes with v1.34.4, `golden/nftables-v*` on the first with other
//! versions.

#![allow(clippy::unwrap_used, reason = "what is wrong here fails the test")]
#![allow(clippy::print_stdout, reason = "says why nothing was tried")]

use std::fs;

use crate::support::nft::{Listed, load, trouble};
use crate::support::*;
use uturn_kubeproxy::compile;
use uturn_model::{Cluster, Family, Name, ProxyMode};

#[test]
fn objects_become_the_dumps() {
    let cluster = from_objects();
    for node in cluster.nodes.keys() {
        same(&rules(&cluster, node), &dump(node), node.as_str());
    }
}

#[test]
fn the_same_by_hand_becomes_the_dumps() {
    let mut cluster = every_kind::cluster();
    as_it_was(&mut cluster);
    for node in cluster.nodes.keys() {
        same(&rules(&cluster, node), &dump(node), node.as_str());
    }
}

/// What the Proxier of other versions made of the same cluster on node n1 (where it was told
/// of no IPv6 address; v1.30 is as the whole program does it then, which tells it of ::1).
#[test]
fn other_versions() {
    for version in ["v1.30.14", "v1.31.14", "v1.33.13", "v1.36.3"] {
        let mut cluster = every_kind::cluster();
        as_it_was(&mut cluster);
        cluster.proxy.version = known(version.parse().unwrap());
        let dump = fs::read_to_string(golden(&format!("nftables-{version}")).join("nft.txt"));
        same(&rules(&cluster, &name("n1")), &dump.unwrap(), version);
    }
}

#[test]
fn the_kernel_makes_the_same_of_both() {
    if let Some(reason) = trouble() {
        println!("skipped: nft cannot be used here: {reason}");
        return;
    }
    let cluster = from_objects();
    for node in cluster.nodes.keys() {
        let (ours, theirs) = (rules(&cluster, node), dump(node));
        let (ours, theirs) = (load(&ours).unwrap(), load(&theirs).unwrap());
        same(&ours, &theirs, node.as_str());
    }
}

#[test]
fn the_kernel_prints_it_back_to_the_letter() {
    if let Some(reason) = trouble() {
        println!("skipped: nft cannot be used here: {reason}");
        return;
    }
    let cluster = from_objects();
    for node in cluster.nodes.keys() {
        let ours = rules(&cluster, node);
        assert_eq!(load(&ours).unwrap(), ours, "{node}");
    }
}

/// Set by set, map by map and chain by chain, to the letter. kube-proxy goes through
/// Services in no order; what is there without any has its place.
fn same(ours: &str, theirs: &str, whose: &str) {
    let (ours, theirs) = (Listed::parse(ours), Listed::parse(theirs));
    for (name, lines) in &theirs.blocks {
        assert_eq!(ours.blocks.get(name), Some(lines), "{whose}: {name}");
    }
    let names = |listed: &Listed| listed.blocks.keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(&ours), names(&theirs), "{whose}");
    assert_eq!(ours.fixed(), theirs.fixed(), "{whose}");
    assert!(theirs.blocks.len() > 80, "{whose}: too few to tell");
}

fn rules(cluster: &Cluster, node: &Name) -> String {
    let of = |family| compile(cluster, node, &cluster.proxy, family).unwrap().nft;
    Family::BOTH.map(of).concat()
}

fn dump(node: &Name) -> String {
    fs::read_to_string(golden(&format!("nftables-{node}")).join("nft.txt")).unwrap()
}

fn from_objects() -> Cluster {
    let paths = [golden("objects.yaml"), golden("beside.yaml")];
    let mut cluster = uturn_snapshot::load(&paths).unwrap().cluster;
    for (node, number) in cluster.nodes.values_mut().zip(11..) {
        // The objects do not say it; kube-proxy had it from the nodes' status.
        node.internal_ips = vec![[10, 0, 0, number].into()];
    }
    cluster.proxy = settings();
    as_it_was(&mut cluster);
    assert_eq!(cluster.nodes.len(), 3);
    cluster
}

fn as_it_was(cluster: &mut Cluster) {
    cluster.proxy.mode = known(ProxyMode::Nftables);
    cluster.network.service_cidrs = known(vec!["172.16.0.0/16".parse().unwrap()]);
}
