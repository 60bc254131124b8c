//! Real `iptables-restore` takes the text, and `iptables-save` prints it back word for word.

#![allow(clippy::unwrap_used, reason = "what is wrong here fails the test")]
#![allow(clippy::print_stdout, reason = "says why nothing was tried")]

use crate::support::any::any_cluster;
use crate::support::dual_stack::dual_stack;
use crate::support::*;
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::TestRunner;
use uturn_kubeproxy::compile;
use uturn_model::proxy::{LocalDetector, NodePortAddresses};
use uturn_model::{Cluster, Family, ProxySettings, Version};

#[test]
fn nft_back_end_prints_it_back() {
    prints_back("nft");
}

#[test]
fn legacy_back_end_prints_it_back() {
    prints_back("legacy");
}

fn prints_back(back_end: &str) {
    for family in Family::BOTH {
        let tool = Tool { back_end, family };
        if let Err(reason) = tool.load("*nat\n:TRIAL - [0:0]\nCOMMIT\n") {
            uturn_testing::skip(uturn_testing::Requirement::Kernel, &tool.name("restore"), reason);
            continue;
        }
        for cluster in clusters() {
            for node in cluster.nodes.keys() {
                let program = compile(&cluster, node, &cluster.proxy, family).unwrap();
                let saved = tool.load(&program.iptables).unwrap_or_else(|reason| {
                    panic!("{}: {reason}\n{}", tool.name("restore"), program.iptables)
                });
                let (ours, kernels) = (Saved::parse(&program.iptables), Saved::parse(&saved));
                for (table, chains) in &ours.0 {
                    assert_eq!(kernels.0[table], *chains, "{back_end} {family} {node} {table}");
                    assert_eq!(
                        chains_in_order(&saved, table),
                        chains_in_order(&program.iptables, table)
                    );
                }
            }
        }
    }
}

fn chains_in_order<'t>(text: &'t str, table: &str) -> Vec<&'t str> {
    let lines = text.lines().skip_while(|line| line.strip_prefix('*') != Some(table)).skip(1);
    let chains = lines.skip_while(|line| line.starts_with('#'));
    chains.map_while(|line| line.strip_prefix(':')).collect()
}

/// Every kind of Service under every setting that changes a rule, and some of all sorts.
fn clusters() -> Vec<Cluster> {
    let mut settings: Vec<ProxySettings> = vec![settings()];
    let mut with = |change: &dyn Fn(&mut ProxySettings)| {
        let mut changed = settings[0].clone();
        change(&mut changed);
        settings.push(changed);
    };
    for minor in [22, 23, 24, 25, 26, 28] {
        with(&|settings| settings.version = known(Version::new(1, minor, 0)));
    }
    with(&|settings| settings.detector = known(LocalDetector::None));
    with(&|settings| settings.detector = known(LocalDetector::NodeCidr));
    with(&|settings| settings.detector = known(LocalDetector::BridgeInterface("cbr0".into())));
    with(&|settings| settings.detector = known(LocalDetector::InterfaceNamePrefix("veth".into())));
    with(&|settings| settings.masquerade_all = true);
    with(&|settings| settings.masquerade_bit = 31);
    with(&|settings| settings.conntrack_tcp_be_liberal = true);
    with(&|settings| settings.node_port_addresses = NodePortAddresses::All);
    with(&|settings| {
        settings.node_port_addresses = NodePortAddresses::All;
        settings.localhost_node_ports = false;
    });
    with(&|settings| {
        let nets = ["10.0.0.0/24", "127.0.0.0/8"].map(|net| net.parse().unwrap());
        settings.node_port_addresses = NodePortAddresses::Ranges(nets.into());
    });
    let with_settings = |proxy| dual_stack(Cluster { proxy, ..every_kind::cluster() });
    let mut runner = TestRunner::deterministic();
    let mut some = || any_cluster().new_tree(&mut runner).unwrap().current();
    settings.into_iter().map(with_settings).chain((0..12).map(|_| some())).collect()
}

struct Tool<'t> {
    back_end: &'t str,
    family: Family,
}

impl Tool<'_> {
    fn name(&self, verb: &str) -> String {
        let stem = if self.family == Family::V4 { "iptables" } else { "ip6tables" };
        format!("{stem}-{}-{verb}", self.back_end)
    }

    /// Loads text into a network namespace that lives as long as the command, and gives
    /// what it holds then.
    fn load(&self, text: &str) -> Result<String, String> {
        let script = format!("{} -w 60 && {}", self.name("restore"), self.name("save"));
        uturn_testing::in_a_namespace(&script, text)
    }
}
