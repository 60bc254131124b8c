use std::collections::HashMap;

use proptest::prelude::*;
use uturn_model::lb::{Layer, ListenerProtocol, Rule, Scheduler, Target, TargetKind};
use uturn_model::{NamespacedName, ObjectKind, ObjectRef, Origin, Port};

use super::*;
use crate::config::{RuleSettings, Stickiness};
use crate::decide::Choice;
use crate::hash::place_of;
use crate::test_profile;

/// Makes a listener at 10.0.0.200:80 with targets that have these addresses and weights.
pub(super) fn listener(targets: &[(String, u32)]) -> Forwarded {
    let service = NamespacedName::new("shop", "api").unwrap();
    let target = |(address, weight): &(String, u32)| Target {
        address: address.parse().unwrap(),
        weight: *weight,
        kind: TargetKind::NodePort("n1".parse().unwrap()),
    };
    let rule = Rule {
        host: None,
        path: None,
        service: service.clone(),
        owner: ObjectRef::namespaced(ObjectKind::Service, &service),
        targets: targets.iter().map(target).collect(),
        redirect: None,
    };
    Forwarded {
        vip: "10.0.0.200".parse().unwrap(),
        listener: Listener {
            port: Port::new(80).unwrap(),
            protocol: ListenerProtocol::Tcp,
            profile: test_profile::profile(Layer::L4),
            rules: vec![rule],
        },
        settings: ListenerSettings::default(),
        security: None,
        alive: vec![true; targets.len()],
    }
}

fn with_weights(weights: &[u32]) -> Forwarded {
    let target = |(i, weight): (usize, &u32)| (format!("10.0.0.{}:30090", 11 + i), *weight);
    listener(&weights.iter().enumerate().map(target).collect::<Vec<_>>())
}

fn text(forwarded: &Forwarded) -> String {
    Ruleset::new(std::slice::from_ref(forwarded)).unwrap().text()
}

/// A model of the kernel that applies the rules of a table to new connections to 10.0.0.200:80.
struct Kernel<'t> {
    text: &'t str,
    /// The number of times that each rule has counted.
    counts: HashMap<&'t str, usize>,
}

impl<'t> Kernel<'t> {
    fn new(text: &'t str) -> Self {
        Self { text, counts: HashMap::new() }
    }

    fn connect(&mut self, client: IpAddr) -> Option<SocketAddr> {
        let mut chain = "tcp-10.0.0.200-80".to_owned();
        'chain: loop {
            let prefix = format!("add rule inet uturn_lb {chain} ");
            for rule in self.text.lines().filter_map(|line| line.strip_prefix(&prefix)) {
                if rule.starts_with("ct timeout") {
                    continue;
                }
                if rule == "drop" {
                    return None;
                }
                if let Some(next) = rule.strip_prefix("goto ") {
                    chain = next.to_owned();
                    continue 'chain;
                }
                if let Some(to_chains) = rule.strip_prefix("ip saddr vmap ") {
                    let chains = pairs(to_chains);
                    if let Some(next) = chains.get(&*client.to_string()) {
                        chain = next.strip_prefix("goto ").unwrap().to_owned();
                        continue 'chain;
                    }
                    continue;
                }
                return Some(self.pick(rule, client));
            }
            panic!("no rule decides");
        }
    }

    fn pick(&mut self, rule: &'t str, client: IpAddr) -> SocketAddr {
        let words: Vec<&str> = rule.split_whitespace().collect();
        let after = |name: &str| {
            let at = words.iter().position(|word| *word == name)?;
            words[at + 1].parse::<usize>().ok()
        };
        let length = after("mod").unwrap();
        let number = if rule.starts_with("meta l4proto tcp dnat ip to jhash ip saddr mod ") {
            place_of(client, length).unwrap()
        } else {
            assert!(rule.starts_with("meta l4proto tcp dnat ip to numgen inc mod "), "{rule}");
            let count = self.counts.entry(rule).or_default();
            *count += 1;
            (*count - 1) % length
        };
        let place = number + after("offset").unwrap_or(0);
        let map = rule.split_once(" map ").unwrap().1;
        let elements = match map.strip_prefix('@') {
            None => map,
            Some(name) => {
                let prefix = format!("add element inet uturn_lb {name} ");
                self.text.lines().find_map(|line| line.strip_prefix(&prefix)).unwrap()
            }
        };
        pairs(elements)[&*place.to_string()].replace(" . ", ":").parse().unwrap()
    }
}

/// Reads the elements of a map of IPv4 addresses.
fn pairs(elements: &str) -> HashMap<&str, &str> {
    let elements = elements.strip_prefix("{ ").and_then(|rest| rest.strip_suffix(" }"));
    elements.unwrap().split(", ").map(|element| element.split_once(" : ").unwrap()).collect()
}

/// Returns the targets that the decision picks, turn by turn.
pub(super) fn decided(forwarded: &Forwarded, client: IpAddr, turns: u64) -> Vec<SocketAddr> {
    let Listener { profile, rules, .. } = &forwarded.listener;
    let choice = Choice::new(profile, &rules[0].targets, &forwarded.alive, client);
    let address = |turn| choice.pick(turn).map(|i| rules[0].targets[i].address);
    (0..turns).filter_map(address).collect()
}

#[test]
fn a_table() {
    let expected = "\
add table inet uturn_lb
delete table inet uturn_lb
add table inet uturn_lb
add map inet uturn_lb targets-tcp-10.0.0.200-80 { typeof numgen inc mod 2 : ip daddr . tcp dport; }
add chain inet uturn_lb tcp-10.0.0.200-80
add chain inet uturn_lb tcp-10.0.0.200-80-from-10.0.0.11
add chain inet uturn_lb tcp-10.0.0.200-80-from-10.0.0.12
add chain inet uturn_lb tcp-10.0.0.200-80-pick
table inet uturn_lb {
  ct timeout idle-tcp-ip-75 {
    protocol tcp
    l3proto ip
    policy = { established : 75 }
  }
}
add map inet uturn_lb listeners-ip { type ipv4_addr . inet_proto . inet_service : verdict; }
add element inet uturn_lb listeners-ip { 10.0.0.200 . tcp . 80 : goto tcp-10.0.0.200-80 }
table inet uturn_lb {
  chain prerouting {
    type nat hook prerouting priority dstnat
    ip daddr . meta l4proto . th dport vmap @listeners-ip
  }
}
table inet uturn_lb {
  chain output {
    type nat hook output priority -100
    ip daddr . meta l4proto . th dport vmap @listeners-ip
  }
}
table inet uturn_lb {
  chain postrouting {
    type nat hook postrouting priority srcnat
  }
}
add element inet uturn_lb targets-tcp-10.0.0.200-80 { 0 : 10.0.0.11 . 30090, 1 : 10.0.0.12 . 30090, 2 : 10.0.0.11 . 30090, 3 : 10.0.0.12 . 30090 }
add rule inet uturn_lb tcp-10.0.0.200-80 ct timeout set \"idle-tcp-ip-75\"
add rule inet uturn_lb tcp-10.0.0.200-80 goto tcp-10.0.0.200-80-pick
add rule inet uturn_lb tcp-10.0.0.200-80-from-10.0.0.11 meta l4proto tcp dnat ip to numgen inc mod 1 offset 1 map @targets-tcp-10.0.0.200-80
add rule inet uturn_lb tcp-10.0.0.200-80-from-10.0.0.11 drop
add rule inet uturn_lb tcp-10.0.0.200-80-from-10.0.0.12 meta l4proto tcp dnat ip to numgen inc mod 1 offset 2 map @targets-tcp-10.0.0.200-80
add rule inet uturn_lb tcp-10.0.0.200-80-from-10.0.0.12 drop
add rule inet uturn_lb tcp-10.0.0.200-80-pick ip saddr vmap { 10.0.0.11 : goto tcp-10.0.0.200-80-from-10.0.0.11, 10.0.0.12 : goto tcp-10.0.0.200-80-from-10.0.0.12 }
add rule inet uturn_lb tcp-10.0.0.200-80-pick meta l4proto tcp dnat ip to numgen inc mod 2 map @targets-tcp-10.0.0.200-80
add rule inet uturn_lb tcp-10.0.0.200-80-pick drop
";
    assert_eq!(text(&with_weights(&[10, 10])), expected);
}

#[test]
fn without_a_candidate_connections_are_dropped() {
    for weights in [&[][..], &[0]] {
        let text = text(&with_weights(weights));
        assert!(text.ends_with(" tcp-10.0.0.200-80-pick drop\n"), "{text}");
    }
    let text = text(&with_weights(&[10]));
    assert!(text.contains(" tcp-10.0.0.200-80-from-10.0.0.11 drop\n"), "{text}");
}

#[test]
fn a_replaced_source_is_replaced() {
    let mut forwarded = with_weights(&[10]);
    forwarded.listener.profile.source = Source::Replaced("100.127.0.0/16".parse().unwrap());
    let text = text(&forwarded);
    assert!(text.contains("sources-ip-tcp { 10.0.0.200 . 80 : 100.127.0.1 }"), "{text}");
    assert!(text.contains("snat ip to ct original ip daddr . ct original proto-dst"), "{text}");
}

#[test]
fn a_hash_of_the_address_is_the_kernels() {
    let mut by_hash = with_weights(&[10, 20]);
    by_hash.listener.profile.scheduler = Scheduler::SourceHash;
    let mut sticky = with_weights(&[10, 20]);
    let stickiness = Some(Stickiness::Source(std::time::Duration::from_secs(60)));
    sticky.settings.rules = vec![RuleSettings { stickiness, ..RuleSettings::default() }];
    for forwarded in [by_hash, sticky] {
        let text = text(&forwarded);
        assert!(text.contains("dnat ip to jhash ip saddr mod 3 seed"), "{text}");
        assert!(!text.contains("to numgen"), "{text}");
    }
}

#[test]
fn the_first_rule_of_a_security_group_decides() {
    let rule = |accept, protocol, ports, peer: Option<&str>| SecurityRule {
        accept,
        protocol,
        ports,
        peer: peer.map(|peer| peer.parse().unwrap()),
        origin: Origin::file("lb.yaml"),
    };
    let mut forwarded = with_weights(&[10]);
    forwarded.security = Some(vec![
        rule(false, None, None, Some("10.1.1.0/24")),
        rule(true, Some(Protocol::Udp), None, None),
        rule(true, Some(Protocol::Tcp), Some((1, 79)), None),
        rule(true, None, None, Some("fd00::/8")),
        rule(true, Some(Protocol::Tcp), Some((80, 80)), Some("10.1.0.0/16")),
    ]);
    let text = text(&forwarded);
    let prefix = "add rule inet uturn_lb tcp-10.0.0.200-80 ";
    let rules: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix(prefix)).collect();
    let admitted = "ip saddr 10.1.0.0/16 goto tcp-10.0.0.200-80-admitted";
    assert_eq!(rules, ["ip saddr 10.1.1.0/24 drop", admitted, "drop"]);
}

#[test]
fn families_do_not_mix() {
    let forwarded = listener(&[("[fd00::1]:80".into(), 10)]);
    assert_eq!(
        Ruleset::new(&[forwarded]).unwrap_err().to_string(),
        "10.0.0.200:80 and its target [fd00::1]:80 are of different address families"
    );
}

#[test]
fn a_change_of_targets_leaves_everything_else_alone() {
    let other = |alive| {
        let mut other = with_weights(&[10, 10]);
        other.listener.port = Port::new(81).unwrap();
        other.alive = vec![true, alive];
        other
    };
    let all = |alive| Ruleset::new(&[with_weights(&[10, 10]), other(alive)]).unwrap();
    assert_eq!(all(true).change_from(&all(true)), None);
    let change = all(false).change_from(&all(true)).unwrap();
    let expected = "\
delete element inet uturn_lb targets-tcp-10.0.0.200-81 { 1, 2, 3 }
add element inet uturn_lb targets-tcp-10.0.0.200-81 { 1 : 10.0.0.11 . 30090 }
flush chain inet uturn_lb tcp-10.0.0.200-81-from-10.0.0.11
add rule inet uturn_lb tcp-10.0.0.200-81-from-10.0.0.11 drop
add rule inet uturn_lb tcp-10.0.0.200-81-from-10.0.0.11 drop
flush chain inet uturn_lb tcp-10.0.0.200-81-pick
add rule inet uturn_lb tcp-10.0.0.200-81-pick ip saddr vmap { 10.0.0.11 : goto tcp-10.0.0.200-81-from-10.0.0.11 }
add rule inet uturn_lb tcp-10.0.0.200-81-pick meta l4proto tcp dnat ip to numgen inc mod 1 map @targets-tcp-10.0.0.200-81
add rule inet uturn_lb tcp-10.0.0.200-81-pick drop
flush chain inet uturn_lb tcp-10.0.0.200-81-from-10.0.0.12
delete chain inet uturn_lb tcp-10.0.0.200-81-from-10.0.0.12
";
    assert_eq!(change, expected);
}

#[test]
fn another_listener_replaces_the_table() {
    let before = Ruleset::new(&[]).unwrap();
    let after = Ruleset::new(&[with_weights(&[10])]).unwrap();
    assert_eq!(after.change_from(&before), Some(after.text()));
}

#[test]
fn a_limit_that_is_new_has_its_set() {
    let before = with_weights(&[10]);
    let mut after = before.clone();
    after.settings.limits.connections_per_client = Some(2);
    let [before, after] = [before, after].map(|forwarded| Ruleset::new(&[forwarded]).unwrap());
    let set = "add set inet uturn_lb clients-tcp-10.0.0.200-80 ";
    assert!(after.change_from(&before).unwrap().contains(set));
    let change = before.change_from(&after).unwrap();
    assert!(change.ends_with("delete set inet uturn_lb clients-tcp-10.0.0.200-80\n"), "{change}");
}

#[test]
fn a_change_of_targets_keeps_what_limits_have_counted() {
    let mut before = with_weights(&[10, 10]);
    before.settings.limits.connections = Some(2);
    let mut after = before.clone();
    after.alive[1] = false;
    let [before, after] = [before, after].map(|forwarded| Ruleset::new(&[forwarded]).unwrap());
    let change = after.change_from(&before).unwrap();
    assert!(!change.contains("flush chain inet uturn_lb tcp-10.0.0.200-80\n"), "{change}");
}

proptest! {
    #[test]
    fn connections_meet_targets_in_the_order_of_the_decision(
        weights in prop::collection::vec(0u32..4, 0..6),
        dead in prop::collection::vec(any::<bool>(), 6),
        client in 1u8..20,
    ) {
        let mut forwarded = with_weights(&weights);
        forwarded.alive = dead[..weights.len()].to_vec();
        let client = IpAddr::from([10, 1, 1, client]);
        let text = text(&forwarded);
        let mut kernel = Kernel::new(&text);
        let met: Vec<SocketAddr> = (0..50).filter_map(|_| kernel.connect(client)).collect();
        prop_assert_eq!(met, decided(&forwarded, client, 50));
    }

    #[test]
    fn targets_as_clients_meet_the_others_in_the_same_order(
        targets in prop::collection::vec((0u8..4, 0u16..3, 0u32..4), 1..6),
        equal in any::<bool>(),
        dead in prop::collection::vec(any::<bool>(), 6),
        client in 0u8..4,
    ) {
        let target = |(host, port, weight): &(u8, u16, u32)| {
            (format!("10.0.0.{}:{}", 11 + host, 80 + port), if equal { 10 } else { *weight })
        };
        let mut forwarded = listener(&targets.iter().map(target).collect::<Vec<_>>());
        forwarded.alive = dead[..targets.len()].to_vec();
        let client = IpAddr::from([10, 0, 0, 11 + client]);
        let text = text(&forwarded);
        let mut kernel = Kernel::new(&text);
        let met: Vec<SocketAddr> = (0..60).filter_map(|_| kernel.connect(client)).collect();
        let decided = decided(&forwarded, client, 120);
        prop_assert_eq!(met.is_empty(), decided.is_empty());
        prop_assert!(met.iter().all(|target| target.ip() != client));
        let begins_later = (0..decided.len().min(60)).any(|first| decided[first..][..60] == met);
        prop_assert!(met.is_empty() || begins_later, "{met:?} {decided:?}");
    }

    #[test]
    fn a_hash_meets_the_target_of_the_decision(
        targets in prop::collection::vec((0u8..6, 0u16..3, 0u32..4), 1..8),
        equal in any::<bool>(),
        dead in prop::collection::vec(any::<bool>(), 8),
        client in 0u8..12,
    ) {
        let target = |(host, port, weight): &(u8, u16, u32)| {
            (format!("10.0.0.{}:{}", 11 + host, 80 + port), if equal { 10 } else { *weight })
        };
        let mut forwarded = listener(&targets.iter().map(target).collect::<Vec<_>>());
        forwarded.listener.profile.scheduler = Scheduler::SourceHash;
        forwarded.alive = dead[..targets.len()].to_vec();
        let client = IpAddr::from([10, 0, 0, 11 + client]);
        let text = text(&forwarded);
        let met = Kernel::new(&text).connect(client);
        prop_assert_eq!(met, decided(&forwarded, client, 1).first().copied());
    }
}
