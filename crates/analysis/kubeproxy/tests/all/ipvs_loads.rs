//! Real `ipset restore` and `iptables-restore` take the texts, one after the other, and the
//! kernel gives them back.

#![allow(clippy::unwrap_used, reason = "what is wrong here fails the test")]
#![allow(clippy::print_stdout, reason = "says why nothing was tried")]

use std::collections::BTreeSet;

use crate::support::any::any_cluster;
use crate::support::dual_stack::dual_stack;
use crate::support::*;
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::TestRunner;
use uturn_kubeproxy::compile;
use uturn_model::proxy::LocalDetector;
use uturn_model::{Cluster, Family, ProxyMode, Version};

#[test]
fn nft_back_end_gives_it_back() {
    gives_back("nft");
}

#[test]
fn legacy_back_end_gives_it_back() {
    gives_back("legacy");
}

fn gives_back(back_end: &str) {
    for family in Family::BOTH {
        let trial = "*nat\n-A OUTPUT -m set --match-set TRIAL dst -j ACCEPT\nCOMMIT\n";
        let family_word = if family == Family::V4 { "inet" } else { "inet6" };
        let set = format!("create TRIAL hash:ip family {family_word}\n");
        if let Err(reason) = load(back_end, family, &set, trial) {
            println!("skipped: ipset and {back_end} iptables cannot be used here: {reason}");
            continue;
        }
        let knows_ipvs = load(
            back_end,
            family,
            &set,
            &trial.replace("set --match-set TRIAL dst", "ipvs --ipvs"),
        );
        if let Err(reason) = &knows_ipvs {
            println!("without rules that ask IPVS itself: {reason}");
        }
        for cluster in clusters() {
            for node in cluster.nodes.keys() {
                let program = compile(&cluster, node, &cluster.proxy, family).unwrap();
                let is_taken = |line: &&str| knows_ipvs.is_ok() || !line.contains(" -m ipvs ");
                let rules: String =
                    program.iptables.split_inclusive('\n').filter(is_taken).collect();
                let (sets, saved) = load(back_end, family, &program.ipset, &rules)
                    .unwrap_or_else(|reason| panic!("{reason}\n{}{rules}", program.ipset));
                let at = format!("{back_end} {family} {node} {}", cluster.proxy.version.value);
                assert_eq!(lines(&sets), lines(&program.ipset), "{at}");
                let (ours, kernels) = (Saved::parse(&rules), Saved::parse(&saved));
                for (table, chains) in &ours.0 {
                    assert_eq!(kernels.0[table], *chains, "{at} {table}");
                }
            }
        }
    }
}

/// What is in the sets; the seeds of their hashes are the kernel's own.
fn lines(text: &str) -> BTreeSet<&str> {
    text.lines().map(|line| line.split(" initval ").next().unwrap()).collect()
}

/// Every kind of Service, in every version that changed something, and some of all sorts.
fn clusters() -> Vec<Cluster> {
    let mut all = Vec::new();
    for minor in [22, 23, 24, 25, 26, 27, 28, 29, 34, 36] {
        let mut cluster = dual_stack(every_kind::cluster());
        cluster.proxy.version = known(Version::new(1, minor, 0));
        all.push(cluster);
    }
    for detector in [
        LocalDetector::None,
        LocalDetector::BridgeInterface("cbr0".into()),
        LocalDetector::InterfaceNamePrefix("veth".into()),
    ] {
        let mut cluster = dual_stack(every_kind::cluster());
        cluster.proxy.detector = known(detector);
        all.push(cluster);
    }
    let mut runner = TestRunner::deterministic();
    all.extend((0..12).map(|_| any_cluster().new_tree(&mut runner).unwrap().current()));
    all.iter_mut().for_each(|cluster| cluster.proxy.mode = known(ProxyMode::Ipvs));
    all
}

/// Loads both texts into a network namespace that lives as long as the command, and gives
/// what it holds then.
fn load(
    back_end: &str,
    family: Family,
    sets: &str,
    rules: &str,
) -> Result<(String, String), String> {
    let tool = match family {
        Family::V4 => format!("iptables-{back_end}"),
        Family::V6 => format!("ip6tables-{back_end}"),
    };
    let script = format!(
        "ipset restore <<'@@'\n{sets}\n@@\n{tool}-restore -w 60; ipset save; echo @@; {tool}-save"
    );
    let text = uturn_testing::in_a_namespace(&script, rules)?;
    let (sets, rules) = text.split_once("@@\n").unwrap();
    Ok((sets.to_owned(), rules.to_owned()))
}
