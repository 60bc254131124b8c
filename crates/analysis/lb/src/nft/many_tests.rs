//! Tests of tables with more targets than can have a chain each.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::many::OTHERS;
use super::tests::{decided, listener};
use super::*;

/// A table as commands build it: rules and elements by the names of chains and maps.
#[derive(Clone, Debug, Default, PartialEq)]
struct State {
    chains: BTreeMap<String, Vec<String>>,
    maps: BTreeMap<String, BTreeMap<String, String>>,
}

impl State {
    /// Executes the commands that concern listeners.
    fn load(&mut self, text: &str) {
        for line in text.lines() {
            let line = line.replacen(" inet uturn_lb ", " ", 1);
            let words: Vec<&str> = line.splitn(4, ' ').collect();
            match words[..] {
                ["delete", "table", ..] => *self = Self::default(),
                ["add", "chain", name] => {
                    assert!(self.chains.insert(name.into(), Vec::new()).is_none(), "{line}");
                }
                ["add", "rule", chain, rule] => {
                    self.chains.get_mut(chain).unwrap().push(rule.into());
                }
                ["flush", "chain", chain] => self.chains.get_mut(chain).unwrap().clear(),
                ["delete", "chain", chain] => {
                    assert_eq!(self.chains.remove(chain), Some(Vec::new()), "{line}");
                    let to_chain = format!("goto {chain} ");
                    let mut rules = self.chains.values().flatten();
                    assert!(!rules.any(|rule| format!("{rule} ").contains(&to_chain)), "{line}");
                }
                ["add", "map", name, _] => {
                    assert!(self.maps.insert(name.into(), BTreeMap::new()).is_none(), "{line}");
                }
                ["delete", "map", name] => assert!(self.maps.remove(name).is_some(), "{line}"),
                ["add", "element", map, elements] => {
                    for element in listed(elements) {
                        let (key, value) = element.split_once(" : ").unwrap();
                        let map = self.maps.get_mut(map).unwrap();
                        assert!(map.insert(key.into(), value.into()).is_none(), "{line}");
                    }
                }
                ["delete", "element", map, elements] => {
                    for key in listed(elements) {
                        assert!(self.maps.get_mut(map).unwrap().remove(key).is_some(), "{line}");
                    }
                }
                _ => {}
            }
        }
    }

    /// Returns the targets of a map, each with its number of places. Places have no gap.
    fn targets(&self, map: &str) -> BTreeMap<SocketAddr, usize> {
        let elements = &self.maps[map];
        let mut targets = BTreeMap::new();
        for place in 0..elements.len() {
            *targets.entry(address(&elements[&place.to_string()])).or_default() += 1;
        }
        targets
    }

    /// Returns the share of each target for clients that are none of the targets.
    fn shares(&self) -> BTreeMap<SocketAddr, f64> {
        let mut shares = BTreeMap::new();
        // The share that no rule has taken yet.
        let mut left = 1.0;
        for rule in &self.chains["tcp-10.0.0.200-80-pick"] {
            let words: Vec<&str> = rule.split(' ').collect();
            let (share, chain) = match words[..] {
                ["ip", "saddr", ..] => continue,
                ["drop"] => return shares,
                ["numgen", "random", "mod", of, "<", part, "goto", chain] => {
                    let (of, part): (f64, f64) = (of.parse().unwrap(), part.parse().unwrap());
                    (left * part / of, chain)
                }
                ["goto", chain] => (left, chain),
                _ if rule.contains("saddr . numgen") => continue,
                _ => return self.shares_in(rule, 1.0),
            };
            shares.extend(self.shares_in(&self.chains[chain][0], share));
            left -= share;
        }
        assert!(left.abs() < 1e-9);
        shares
    }

    fn shares_in(&self, rule: &str, of: f64) -> BTreeMap<SocketAddr, f64> {
        let (place, map) = rule.split_once(" map @").unwrap();
        let length: usize = place.rsplit_once("mod ").unwrap().1.parse().unwrap();
        let targets = self.targets(map);
        // The map may have two rounds with the same targets.
        let places: usize = targets.values().sum();
        assert_eq!(places % length, 0);
        targets.into_iter().map(|(a, count)| (a, of * count as f64 / places as f64)).collect()
    }
}

fn listed(elements: &str) -> impl Iterator<Item = &str> {
    elements.strip_prefix("{ ").unwrap().strip_suffix(" }").unwrap().split(", ")
}

fn address(element: &str) -> SocketAddr {
    element.replace(" . ", ":").parse().unwrap()
}

fn many(count: usize, weight: impl Fn(usize) -> u32) -> Forwarded {
    let target = |i: usize| (format!("10.1.{}.{}:80", i / 250, i % 250 + 1), weight(i));
    listener(&(0..count).map(target).collect::<Vec<_>>())
}

fn ruleset(forwarded: &Forwarded) -> Ruleset {
    Ruleset::new(std::slice::from_ref(forwarded)).unwrap()
}

fn changed(before: &Ruleset, forwarded: &Forwarded) -> (Ruleset, String) {
    let after = before.next(std::slice::from_ref(forwarded)).unwrap();
    let change = after.change_from(before).unwrap_or_default();
    (after, change)
}

/// Returns the number of elements that a text adds and deletes.
fn count(change: &str) -> usize {
    let elements = change.lines().filter_map(|line| line.split_once(" { "));
    elements.map(|(_, elements)| elements.split(", ").count()).sum()
}

#[test]
fn the_cost_of_a_change_does_not_grow_with_the_targets() {
    for weight in [|_| 10, |i: usize| 1 + (i * 7 % 100) as u32] {
        let mut forwarded = many(5000, weight);
        let all = ruleset(&forwarded);
        assert!(count(&all.text()) < 5000 * (2 + OTHERS as usize));
        forwarded.alive[1234] = false;
        let (without, change) = changed(&all, &forwarded);
        assert!(count(&change) < 250, "{}", count(&change));
        forwarded.alive[1234] = true;
        let (_, change) = changed(&without, &forwarded);
        assert!(count(&change) < 250, "{}", count(&change));
        // One target is added, and one removed.
        let mut targets = forwarded.listener.rules[0].targets.clone();
        targets[2000].address.set_port(81);
        forwarded.listener.rules[0].targets = targets;
        let (_, change) = changed(&without, &forwarded);
        assert!(count(&change) < 400, "{}", count(&change));
    }
}

#[test]
fn weights_are_exact_however_many_targets_there_are() {
    let forwarded = many(5000, |i| (i % 101) as u32);
    let mut state = State::default();
    state.load(&ruleset(&forwarded).text());
    let targets = &forwarded.listener.rules[0].targets;
    let total: u32 = targets.iter().map(|target| target.weight).sum();
    let shares = state.shares();
    for target in targets {
        let share = shares.get(&target.address).copied().unwrap_or(0.0);
        assert!((share - f64::from(target.weight) / f64::from(total)).abs() < 1e-9);
    }
}

#[test]
fn a_client_with_the_only_address_is_dropped() {
    let target = |port: usize| (format!("10.0.0.11:{port}"), 10);
    let forwarded = listener(&(1..=5000).map(target).collect::<Vec<_>>());
    let text = ruleset(&forwarded).text();
    assert!(text.contains("tcp-10.0.0.200-80-pick ip saddr 10.0.0.11 drop\n"));
}

#[test]
fn clients_with_a_targets_address_are_spread_as_weights_say() {
    let forwarded = many(4000, |i| if i < 2000 { 10 } else { 30 });
    let mut state = State::default();
    state.load(&ruleset(&forwarded).text());
    let others = &state.maps["others-tcp-10.0.0.200-80"];
    assert_eq!(others.len(), 4000 * OTHERS as usize);
    let heavy: BTreeSet<_> = forwarded.targets().skip(2000).collect();
    let to_heavy = others.values().filter(|target| heavy.contains(&address(target))).count();
    let share = to_heavy as f64 / others.len() as f64;
    assert!((share - 0.75).abs() < 0.02, "{share}");
}

/// A change of the targets.
#[derive(Clone, Debug)]
enum Change {
    Health(usize, bool),
    Weight(usize, u32),
    Remove(usize),
    Add(usize, u32),
}

fn change() -> impl Strategy<Value = Change> {
    prop_oneof![
        (any::<usize>(), any::<bool>()).prop_map(|(i, alive)| Change::Health(i, alive)),
        (any::<usize>(), 0u32..=100).prop_map(|(i, weight)| Change::Weight(i, weight)),
        any::<usize>().prop_map(Change::Remove),
        (any::<usize>(), 0u32..=100).prop_map(|(i, weight)| Change::Add(i, weight)),
    ]
}

fn apply(forwarded: &mut Forwarded, change: &Change, number: usize) {
    let targets = &mut forwarded.listener.rules[0].targets;
    let length = targets.len();
    match *change {
        Change::Health(i, alive) => forwarded.alive[i % length] = alive,
        Change::Weight(i, weight) => targets[i % length].weight = weight,
        Change::Remove(i) if length > 1 => {
            targets.remove(i % length);
            forwarded.alive.remove(i % length);
        }
        Change::Add(i, weight) => {
            let mut target = targets[i % length].clone();
            target.address.set_port(1000 + number as u16);
            target.weight = weight;
            targets.insert(i % length, target);
            forwarded.alive.insert(i % length, true);
        }
        Change::Remove(_) => {}
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn random_changes_make_what_the_decision_says(
        weights in prop_oneof![
            prop::collection::vec(0u32..=100, 1..90),
            prop::collection::vec(10u32..=10, 60..90),
        ],
        changes in prop::collection::vec(prop::collection::vec(change(), 1..4), 1..12),
    ) {
        let mut forwarded = many(weights.len(), |i| weights[i]);
        let mut ruleset = ruleset(&forwarded);
        let mut state = State::default();
        state.load(&ruleset.text());
        for (number, changes) in changes.iter().enumerate() {
            for (i, change) in changes.iter().enumerate() {
                apply(&mut forwarded, change, number * 10 + i);
            }
            let (after, change) = changed(&ruleset, &forwarded);
            state.load(&change);
            let mut anew = State::default();
            anew.load(&after.text());
            prop_assert_eq!(&state, &anew);
            ruleset = after;

            let Listener { profile, rules, .. } = &forwarded.listener;
            let targets = &rules[0].targets;
            let outside = IpAddr::from([10, 9, 9, 9]);
            let choice =
                crate::decide::Choice::new(profile, targets, &forwarded.alive, outside);
            let candidates: Vec<_> = choice.candidates();
            let total: u32 = candidates.iter().map(|i| targets[*i].weight).sum();
            let shares = state.shares();
            prop_assert_eq!(shares.len(), candidates.len());
            for i in &candidates {
                let expected = f64::from(targets[*i].weight) / f64::from(total);
                prop_assert!((shares[&targets[*i].address] - expected).abs() < 1e-9);
            }
            if let Some(others) = state.maps.get("others-tcp-10.0.0.200-80") {
                let own: BTreeSet<_> =
                    candidates.iter().map(|i| targets[*i].address.ip()).collect();
                prop_assert_eq!(others.len(), own.len() * OTHERS as usize);
                for (key, target) in others {
                    let client: IpAddr = key.split(' ').next().unwrap().parse().unwrap();
                    prop_assert_ne!(address(target).ip(), client);
                    prop_assert!(shares.contains_key(&address(target)));
                }
            }
            // Clients with and without a target's address have a target exactly if the decision
            // says so.
            prop_assert_eq!(shares.is_empty(), decided(&forwarded, outside, 1).is_empty());
        }
    }
}
