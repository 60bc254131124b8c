//! The observed state of the load balancers, which is kept between rounds.
//!
//! A load balancer is known either by its head (from a list of all) or as a whole (with its
//! listeners and targets). The effects of the controllers' own calls are noted; changes by others
//! are noticed when the load balancer is read again.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use tokio::time::Instant;

use crate::observed::Balancer;
use crate::tags;

/// The observed state of the load balancers.
#[derive(Clone, Debug, Default)]
pub struct Mirror {
    seen: BTreeMap<String, Seen>,
    /// The ids of load balancers by the UID of the object that they were made for.
    by_uid: BTreeMap<String, BTreeSet<String>>,
    is_listed: bool,
    /// The number of notes so far.
    clock: u64,
}

/// A load balancer that was seen.
#[derive(Clone, Debug)]
pub struct Seen {
    /// The load balancer.
    pub balancer: Arc<Balancer>,
    /// Whether its listeners and targets are known.
    pub is_whole: bool,
    /// The time at which the load balancer was last read.
    pub looked: Instant,
    /// The clock at the last note.
    noted: u64,
}

impl Mirror {
    /// Returns whether the load balancers of the cluster were listed.
    pub fn is_listed(&self) -> bool {
        self.is_listed
    }

    /// Returns a number that increases with each note.
    pub fn clock(&self) -> u64 {
        self.clock
    }

    /// Returns the number of known load balancers.
    pub fn len(&self) -> usize {
        self.seen.len()
    }

    /// Returns whether no load balancer is known.
    pub fn is_empty(&self) -> bool {
        self.seen.is_empty()
    }

    /// Returns the observed state of a load balancer.
    pub fn seen(&self, id: &str) -> Option<&Seen> {
        self.seen.get(id)
    }

    /// Returns all load balancers.
    pub fn all(&self) -> impl Iterator<Item = &Balancer> {
        self.seen.values().map(|seen| &*seen.balancer)
    }

    /// Returns the ids of the load balancers that were made for the object with this UID.
    pub fn of_uid(&self, uid: &str) -> impl Iterator<Item = &String> {
        self.by_uid.get(uid).into_iter().flatten()
    }

    /// Notes a list of all load balancers of the cluster, which was requested when the clock was
    /// `asked`. Returns the ids of load balancers that are new, changed or gone. Notes made since
    /// then are newer than the list, and take precedence.
    pub fn list(&mut self, heads: Vec<Balancer>, asked: u64, now: Instant) -> BTreeSet<String> {
        self.is_listed = true;
        let mut changed = BTreeSet::new();
        let mut listed = BTreeSet::new();
        for head in heads {
            listed.insert(head.id.clone());
            let seen = self.seen.get(&head.id);
            let is_news =
                seen.is_none_or(|seen| seen.noted <= asked && !has_head(&seen.balancer, &head));
            if is_news {
                changed.insert(head.id.clone());
                self.insert(head, false, now);
            }
        }
        let gone: Vec<String> = self
            .seen
            .values()
            .filter(|seen| seen.noted <= asked && seen.balancer.is_own())
            .map(|seen| seen.balancer.id.clone())
            .filter(|id| !listed.contains(id))
            .collect();
        for id in gone {
            self.remove(&id);
            changed.insert(id);
        }
        changed
    }

    /// Notes the current state of a load balancer, or that it does not exist, and the time of
    /// reading it, if it was read.
    pub fn note(&mut self, id: &str, balancer: Option<Balancer>, looked: Option<Instant>) {
        match balancer {
            Some(balancer) => {
                let before = self.seen.get(id).map(|seen| seen.looked);
                self.insert(balancer, true, looked.or(before).unwrap_or_else(Instant::now));
            }
            None => self.remove(id),
        }
    }

    /// Notes that a load balancer may have changed since it was read, and is being read again.
    pub fn doubt(&mut self, id: &str, now: Instant) {
        if let Some(seen) = self.seen.get_mut(id) {
            (seen.is_whole, seen.looked) = (false, now);
        }
    }

    /// Notes that all load balancers may have changed since they were read, and that there may be
    /// others.
    pub fn doubt_all(&mut self) {
        self.is_listed = false;
        for seen in self.seen.values_mut() {
            seen.is_whole = false;
        }
    }

    /// Returns the load balancers that were last read at `before` or earlier, the least recently
    /// read first; at most `most`.
    pub fn oldest(&self, before: Instant, most: usize) -> Vec<String> {
        let old = self.seen.values().filter(|seen| seen.looked <= before);
        let mut old: Vec<&Seen> = old.collect();
        old.sort_by_key(|seen| seen.looked);
        old.into_iter().take(most).map(|seen| seen.balancer.id.clone()).collect()
    }

    fn insert(&mut self, balancer: Balancer, is_whole: bool, now: Instant) {
        self.remove(&balancer.id);
        if let Some(uid) = uid(&balancer) {
            self.by_uid.entry(uid.to_owned()).or_default().insert(balancer.id.clone());
        }
        let id = balancer.id.clone();
        let balancer = Arc::new(balancer);
        self.seen.insert(id, Seen { balancer, is_whole, looked: now, noted: self.clock });
    }

    fn remove(&mut self, id: &str) {
        self.clock += 1;
        let Some(seen) = self.seen.remove(id) else { return };
        let Some(uid) = uid(&seen.balancer) else { return };
        if let Some(ids) = self.by_uid.get_mut(uid) {
            ids.remove(id);
            if ids.is_empty() {
                self.by_uid.remove(uid);
            }
        }
    }
}

/// Returns the UID of the object that a load balancer was made for.
pub fn uid(balancer: &Balancer) -> Option<&str> {
    let keys = [tags::SERVICE_UID, tags::INGRESS_UID];
    keys.into_iter().find_map(|key| balancer.tags.get(key)).map(String::as_str)
}

/// Returns whether a list's head of a load balancer equals the known one.
fn has_head(known: &Balancer, head: &Balancer) -> bool {
    known.is_public == head.is_public
        && known.subnet == head.subnet
        && known.addresses == head.addresses
        && known.domain == head.domain
        && known.tags == head.tags
        && known.settings == head.settings
        && known.unserved == head.unserved
        && known.has_unserved_listeners == head.has_unserved_listeners
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clb::BalancerSettings;

    fn balancer(id: &str, uid: &str) -> Balancer {
        let tags = [(tags::CREATED_BY, tags::CREATED), (tags::SERVICE_UID, uid)];
        Balancer {
            id: id.to_owned(),
            is_public: true,
            subnet: None,
            addresses: Vec::new(),
            domain: None,
            tags: tags.map(|(key, value)| (key.to_owned(), value.to_owned())).into(),
            settings: BalancerSettings::default(),
            unserved: None,
            has_unserved_listeners: false,
            listeners: BTreeMap::new(),
            foreign: Vec::new(),
        }
    }

    fn set(ids: &[&str]) -> BTreeSet<String> {
        ids.iter().map(|id| (*id).to_owned()).collect()
    }

    #[test]
    fn a_list_tells_what_is_new_changed_or_gone() {
        let (mut mirror, now) = (Mirror::default(), Instant::now());
        let heads = vec![balancer("lb-1", "u1"), balancer("lb-2", "u2")];
        assert_eq!(mirror.list(heads.clone(), 0, now), set(&["lb-1", "lb-2"]));
        let asked = mirror.clock();
        assert_eq!(mirror.list(heads, asked, now), set(&[]));
        let unserved = || Balancer {
            unserved: Some(uturn_cloud_api::unserved::Unserved::Unreachable),
            ..balancer("lb-1", "u1")
        };
        let heads = vec![unserved(), balancer("lb-2", "u2")];
        assert_eq!(mirror.list(heads, asked, now), set(&["lb-1"]), "it is not served any more");
        let asked = mirror.clock();
        let partly = Balancer { has_unserved_listeners: true, ..balancer("lb-2", "u2") };
        let heads = vec![unserved(), partly];
        assert_eq!(mirror.list(heads, asked, now), set(&["lb-2"]), "a part of it is not");
        let asked = mirror.clock();
        let changed = Balancer { is_public: false, ..balancer("lb-2", "u2") };
        let heads = vec![changed, balancer("lb-3", "u3")];
        assert_eq!(mirror.list(heads, asked, now), set(&["lb-1", "lb-2", "lb-3"]));
        assert_eq!(mirror.of_uid("u1").count(), 0);
        assert_eq!(mirror.of_uid("u3").collect::<Vec<_>>(), ["lb-3"]);
    }

    #[test]
    fn a_list_does_not_undo_what_was_noted_after_it_was_asked_for() {
        let (mut mirror, now) = (Mirror::default(), Instant::now());
        mirror.note("lb-1", Some(balancer("lb-1", "u1")), Some(now));
        let asked = mirror.clock();
        mirror.note("lb-2", Some(balancer("lb-2", "u2")), Some(now));
        assert_eq!(mirror.list(vec![balancer("lb-1", "u1")], asked, now), set(&[]));
        assert!(mirror.seen("lb-2").is_some_and(|seen| seen.is_whole));
        let asked = mirror.clock();
        assert_eq!(mirror.list(vec![balancer("lb-1", "u1")], asked, now), set(&["lb-2"]));
    }

    #[test]
    fn those_are_looked_at_first_that_were_looked_at_the_longest_time_ago() {
        let (mut mirror, start) = (Mirror::default(), Instant::now());
        let at = |seconds| start + std::time::Duration::from_secs(seconds);
        for (id, seconds) in [("lb-1", 2), ("lb-2", 1), ("lb-3", 9)] {
            mirror.note(id, Some(balancer(id, id)), Some(at(seconds)));
        }
        assert_eq!(mirror.oldest(at(5), 9), ["lb-2", "lb-1"]);
        assert_eq!(mirror.oldest(at(5), 1), ["lb-2"]);
    }
}
