//! The part of the table that belongs to one listener: maps, sets and chains, and the commands that
//! change one such part to another.

use std::collections::BTreeMap;
use std::fmt::{Display, Write as _};
use std::net::{IpAddr, SocketAddr};

use super::TABLE;

/// The part of the table that belongs to one listener.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Block {
    /// Maps to targets, by name.
    pub(super) maps: BTreeMap<String, Map>,
    /// The types of the sets that rules fill, by the names of the sets.
    pub(super) sets: BTreeMap<String, String>,
    /// The rules of each chain.
    pub(super) chains: BTreeMap<String, Vec<String>>,
}

/// A map to targets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Map {
    pub(super) kind: String,
    pub(super) elements: BTreeMap<Key, SocketAddr>,
}

/// The key of an element of a map.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key {
    /// The client's address, in maps that differ between clients.
    pub(super) client: Option<IpAddr>,
    pub(super) place: u32,
}

impl Block {
    /// Returns the block without targets.
    pub(super) fn closed(&self, first_chain: &str) -> Self {
        let chains = BTreeMap::from([(first_chain.to_owned(), vec!["drop".to_owned()])]);
        Self { chains, ..Self::default() }
    }

    /// Adds every map, set and chain that `before` lacks.
    pub(super) fn declare(&self, before: &Self, text: &mut String) {
        for (name, map) in &self.maps {
            if !before.maps.contains_key(name) {
                let _ = writeln!(text, "add map {TABLE} {name} {{ {}; }}", map.kind);
            }
        }
        for (name, kind) in &self.sets {
            if !before.sets.contains_key(name) {
                let _ = writeln!(text, "add set {TABLE} {name} {{ {kind} }}");
            }
        }
        for name in self.chains.keys() {
            if !before.chains.contains_key(name) {
                let _ = writeln!(text, "add chain {TABLE} {name}");
            }
        }
    }

    /// Changes the elements and rules of `before` to those of this block, after [`Block::declare`].
    /// Parts that both have are kept, with their counters.
    pub(super) fn fill(&self, before: &Self, text: &mut String) {
        let none = BTreeMap::new();
        for (name, map) in &self.maps {
            let before = before.maps.get(name).map_or(&none, |before| &before.elements);
            let is_in = |of: &BTreeMap<Key, SocketAddr>, key, target| of.get(key) == Some(target);
            let gone = before.iter().filter(|(key, target)| !is_in(&map.elements, key, target));
            elements(text, "delete", name, gone.map(|(key, _)| key));
            let new = map.elements.iter().filter(|(key, target)| !is_in(before, key, target));
            let new =
                new.map(|(key, target)| format!("{key} : {} . {}", target.ip(), target.port()));
            elements(text, "add", name, new);
        }
        for (name, rules) in &self.chains {
            let before = before.chains.get(name);
            if before == Some(rules) {
                continue;
            }
            if before.is_some() {
                let _ = writeln!(text, "flush chain {TABLE} {name}");
            }
            for rule in rules {
                let _ = writeln!(text, "add rule {TABLE} {name} {rule}");
            }
        }
    }

    /// Changes another block of the same listener to this one.
    pub(super) fn replace(&self, before: &Self, text: &mut String) {
        self.declare(before, text);
        self.fill(before, text);
        let gone: Vec<_> =
            before.chains.keys().filter(|name| !self.chains.contains_key(*name)).collect();
        // The chains may refer to each other.
        for action in ["flush", "delete"] {
            for name in &gone {
                let _ = writeln!(text, "{action} chain {TABLE} {name}");
            }
        }
        for name in before.maps.keys().filter(|name| !self.maps.contains_key(*name)) {
            let _ = writeln!(text, "delete map {TABLE} {name}");
        }
        for name in before.sets.keys().filter(|name| !self.sets.contains_key(*name)) {
            let _ = writeln!(text, "delete set {TABLE} {name}");
        }
    }
}

impl Display for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.client {
            Some(client) => write!(f, "{client} . {}", self.place),
            None => write!(f, "{}", self.place),
        }
    }
}

fn elements(
    text: &mut String,
    action: &str,
    map: &str,
    mut elements: impl Iterator<Item = impl Display>,
) {
    let Some(first) = elements.next() else { return };
    let _ = write!(text, "{action} element {TABLE} {map} {{ {first}");
    for element in elements {
        let _ = write!(text, ", {element}");
    }
    text.push_str(" }\n");
}
