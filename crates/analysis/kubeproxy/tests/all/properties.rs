//! What holds for every cluster.

#![allow(clippy::unwrap_used, reason = "what is wrong here fails the test")]

use std::collections::BTreeSet;

use crate::support::any::any_cluster;
use crate::support::*;
use proptest::prelude::*;
use uturn_kubeproxy::compile;
use uturn_model::service::Policy;
use uturn_model::{Cluster, Endpoint, Family};

proptest! {
    #[test]
    fn every_jump_lands_and_every_chain_is_reached(cluster in any_cluster()) {
        for_each_program(&cluster, |_, saved, _| {
            for (table, chains) in &saved.0 {
                let mut reached = BTreeSet::new();
                for rule in chains.values().flatten() {
                    let Some((_, rest)) = rule.split_once(" -j ") else {
                        assert!(rule.contains("will be dropped by KUBE-PROXY-FIREWALL"), "{rule}");
                        continue;
                    };
                    let target = rest.split(' ').next().unwrap();
                    reached.insert(target);
                    assert!(
                        chains.contains_key(target) || BUILT_IN_TARGETS.contains(&target),
                        "{table}: {rule}"
                    );
                }
                for chain in chains.keys() {
                    assert!(chain.len() <= 28, "{chain}");
                    let of_a_service = HASHED.iter().any(|prefix| chain.starts_with(prefix));
                    assert!(!of_a_service || reached.contains(chain.as_str()), "{chain}");
                }
            }
        });
    }

    #[test]
    fn endpoints_share_alike(cluster in any_cluster()) {
        for_each_program(&cluster, |_, saved, _| {
            for (chain, rules) in &saved.0["nat"] {
                if !chain.starts_with("KUBE-SVC-") && !chain.starts_with("KUBE-SVL-") {
                    continue;
                }
                let choices: Vec<&String> = rules
                    .iter()
                    .filter(|rule| rule.contains(" -j KUBE-SEP-") && !rule.contains("--rcheck"))
                    .collect();
                let mut rest = 1.0;
                for (place, rule) in choices.iter().enumerate() {
                    let odds = rule.split_once("--probability ").map(|(_, rest)| {
                        rest.split(' ').next().unwrap().parse::<f64>().unwrap()
                    });
                    assert_eq!(odds.is_none(), place + 1 == choices.len(), "{rule}");
                    let taken = rest * odds.unwrap_or(1.0);
                    assert!((taken * choices.len() as f64 - 1.0).abs() < 1e-7, "{rule}");
                    rest -= taken;
                }
                let remembered = rules.iter().filter(|rule| rule.contains("--rcheck")).count();
                assert!(remembered == 0 || remembered == choices.len(), "{chain}");
            }
        });
    }

    #[test]
    fn the_cluster_ip_is_served_dropped_or_refused(cluster in any_cluster()) {
        for_each_program(&cluster, |node, saved, family| {
            for service in cluster.services.values() {
                let Some(ip) = service.cluster_ip(family) else { continue };
                let usable = |endpoint: &&Endpoint| endpoint.ready || (endpoint.serving && endpoint.terminating);
                let all: Vec<&Endpoint> = endpoints(&cluster, service).filter(usable).collect();
                let here = all.iter().any(|endpoint| endpoint.node.as_ref().unwrap().as_str() == node);
                let to = format!(" -d {ip}/");
                let ending = |table: &str| -> BTreeSet<String> {
                    let rules = saved.chain(table, "KUBE-SERVICES").iter();
                    let rules = rules.filter(|rule| rule.contains(&to));
                    rules.map(|rule| rule.split_once(" -j ").unwrap().1[..4].to_owned()).collect()
                };
                let (nat, filter): (&[&str], &[&str]) = match service.internal_policy {
                    _ if all.is_empty() => (&[], &["REJE"]),
                    Policy::Local if !here => (&[], &["DROP"]),
                    _ => (&["KUBE"], &[]),
                };
                let set = |all: &[&str]| all.iter().map(|name| (*name).to_owned()).collect();
                assert_eq!(ending("nat"), set(nat), "{}", service.name);
                assert_eq!(ending("filter"), set(filter), "{}", service.name);
            }
        });
    }

    #[test]
    fn nothing_leads_to_an_endpoint_that_does_not_answer(cluster in any_cluster()) {
        for_each_program(&cluster, |node, saved, family| {
            for service in cluster.services.values() {
                let marker = format!("\"{}", service.name);
                let answers = |endpoint: &Endpoint| endpoint.ready || (endpoint.serving && endpoint.terminating);
                for (chain, rules) in &saved.0["nat"] {
                    let [only, ..] = rules.as_slice() else { continue };
                    if !only.contains(&marker) || !chain.starts_with("KUBE-SV") {
                        continue;
                    }
                    let local = chain.starts_with("KUBE-SVL-");
                    for endpoint in endpoints(&cluster, service) {
                        let led = rules.iter().any(|rule| {
                            rule.contains(&format!("-> {}:", endpoint.address))
                                || rule.contains(&format!("-> [{}]:", endpoint.address))
                        });
                        let here = endpoint.node.as_ref().unwrap().as_str() == node;
                        assert!(!led || answers(endpoint), "{chain} {}", endpoint.address);
                        assert!(!led || !local || here, "{chain} {}", endpoint.address);
                        assert!(!led || Family::of(endpoint.address) == family);
                    }
                }
            }
        });
    }

    #[test]
    fn the_order_of_what_is_known_changes_nothing(cluster in any_cluster()) {
        let mut turned = cluster.clone();
        for slices in turned.endpoints.values_mut() {
            slices.reverse();
            slices.iter_mut().for_each(|slice| slice.endpoints.reverse());
        }
        for node in cluster.nodes.keys() {
            for family in Family::BOTH {
                prop_assert_eq!(
                    compile(&cluster, node, &cluster.proxy, family),
                    compile(&turned, node, &cluster.proxy, family)
                );
            }
        }
    }
}

const HASHED: [&str; 5] = ["KUBE-SVC-", "KUBE-SVL-", "KUBE-EXT-", "KUBE-FW-", "KUBE-SEP-"];
const BUILT_IN_TARGETS: [&str; 7] =
    ["ACCEPT", "DROP", "REJECT", "RETURN", "MARK", "MASQUERADE", "DNAT"];

fn for_each_program(cluster: &Cluster, mut check: impl FnMut(&str, &Saved, Family)) {
    for node in cluster.nodes.keys() {
        for family in Family::BOTH {
            let program = compile(cluster, node, &cluster.proxy, family).unwrap();
            check(node.as_str(), &Saved::parse(&program.iptables), family);
        }
    }
}
