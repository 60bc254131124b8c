//! Divides the work into groups of the objects that share load balancers.

use std::collections::{BTreeMap, BTreeSet};

use uturn_model::{NamespacedName, ObjectRef};
use uturn_operator::mirror::{self, Mirror};
use uturn_operator::observed::Balancer;

use super::group::Group;
use crate::cluster::{self, Live, LiveObject};
use crate::index::Index;
use crate::queue::Work;
use crate::records::Records;
use crate::related;
use crate::store::Store;

/// The objects of a group, which share load balancers, and these load balancers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Members {
    pub(super) objects: BTreeSet<ObjectRef>,
    /// The ids of load balancers that the objects have, had, or name.
    pub(super) balancers: BTreeSet<String>,
}

impl Members {
    pub(super) fn is_empty(&self) -> bool {
        self.objects.is_empty() && self.balancers.is_empty()
    }

    /// Returns all objects and load balancers.
    pub(super) fn works(&self) -> BTreeSet<Work> {
        let objects = self.objects.iter().cloned().map(Work::Object);
        objects.chain(self.balancers.iter().cloned().map(Work::Balancer)).collect()
    }
}

/// Returns whether a load balancer was created for an object that is gone.
pub(super) fn is_orphan(index: &Index, balancer: &Balancer) -> bool {
    let uid = mirror::uid(balancer).unwrap_or_default();
    balancer.is_own()
        && index.with_uid(uid).next().is_none()
        && index.users_of_balancer(&balancer.id).next().is_none()
}

/// Returns whether an object that is gone has something in the record of a load balancer.
pub(super) fn has_orphans(index: &Index, records: &Records, id: &str) -> bool {
    records.uids(id).iter().any(|uid| index.with_uid(uid).next().is_none())
}

/// Returns the group of an object or a load balancer.
pub(super) fn members(index: &Index, work: &Work, mirror: &Mirror, records: &Records) -> Members {
    let mut members = Members::default();
    let mut open = vec![work.clone()];
    while let Some(work) = open.pop() {
        match work {
            Work::Object(object) => {
                let Some(uid) = index.uid(&object) else { continue };
                let balancers = index.balancers_of(&object).chain(mirror.of_uid(uid)).cloned();
                let balancers = balancers.chain(records.of_uid(uid));
                let balancers: Vec<Work> = balancers.map(Work::Balancer).collect();
                if members.objects.insert(object) {
                    open.extend(balancers);
                }
            }
            Work::Balancer(id) => {
                let uid = mirror.seen(&id).and_then(|seen| mirror::uid(&seen.balancer));
                let owners = uid.into_iter().flat_map(|uid| index.with_uid(uid));
                let holders = records.uids(&id);
                let holders = holders.iter().flat_map(|uid| index.with_uid(uid));
                let objects = index.users_of_balancer(&id).chain(owners).chain(holders);
                let objects: Vec<Work> = objects.cloned().map(Work::Object).collect();
                // Load balancers with the same UID in their tags are processed together, also if
                // their object is gone.
                let alike = uid.into_iter().flat_map(|uid| mirror.of_uid(uid));
                let alike: Vec<Work> = alike.cloned().map(Work::Balancer).collect();
                if members.balancers.insert(id) {
                    open.extend(objects);
                    open.extend(alike);
                }
            }
        }
    }
    let is_known = |id: &String| mirror.seen(id).is_some() || !records.uids(id).is_empty();
    if members.objects.is_empty() && !members.balancers.iter().any(is_known) {
        return Members::default();
    }
    members
}

/// Reads groups from the store. Returns them with the errors of objects that cannot be read, which
/// do not keep others from being read.
pub(super) fn read(store: &Store, groups: Vec<Members>) -> (Vec<Group>, Vec<String>) {
    let (mut read, mut faults) = (Vec::new(), Vec::new());
    let (orphans, groups): (Vec<_>, Vec<_>) =
        groups.into_iter().partition(|members| members.objects.is_empty());
    let orphans = orphans.into_iter();
    read.extend(orphans.map(|members| Group { members, live: Live::default(), fault: None }));
    read_some(store, groups, &mut read, &mut faults);
    (read, faults)
}

fn read_some(
    store: &Store,
    mut groups: Vec<Members>,
    read: &mut Vec<Group>,
    faults: &mut Vec<String>,
) {
    if groups.is_empty() {
        return;
    }
    let meant = groups.iter().flat_map(|members| members.objects.iter().cloned()).collect();
    match cluster::read(store, &meant) {
        Ok(live) => read.extend(groups.into_iter().map(|members| part(members, &live))),
        Err(more) if groups.len() == 1 => {
            for members in groups {
                faults.extend(more.iter().cloned());
                read.push(without_unreadable(store, members, &more));
            }
        }
        Err(_) => {
            let others = groups.split_off(groups.len() / 2);
            read_some(store, groups, read, faults);
            read_some(store, others, read, faults);
        }
    }
}

/// Reads a group that has an error. Objects that cannot be read are left out, and the others are
/// processed. If no object can be read, the whole group has the error.
fn without_unreadable(store: &Store, members: Members, faults: &[String]) -> Group {
    let all: Vec<ObjectRef> = members.objects.iter().cloned().collect();
    let mut unread = BTreeMap::new();
    if all.len() > 1 {
        find_unreadable(store, &all, faults, &mut unread);
    }
    let readable: BTreeSet<ObjectRef> =
        all.iter().filter(|object| !unread.contains_key(*object)).cloned().collect();
    let live_of = |objects: &mut dyn Iterator<Item = &ObjectRef>| {
        objects
            .filter_map(|object| {
                let value = related::live(store, object)?.clone();
                Some((object.clone(), LiveObject { value }))
            })
            .collect::<BTreeMap<_, _>>()
    };
    // If objects can be read one by one, but not together, the error is of all of them.
    let together = (!readable.is_empty() && !unread.is_empty())
        .then(|| cluster::read(store, &readable).ok())
        .flatten();
    match together {
        Some(mut live) => {
            live.objects.extend(live_of(&mut unread.keys()));
            live.unread = unread;
            part(members, &live)
        }
        None => {
            let live = Live { objects: live_of(&mut all.iter()), ..Live::default() };
            Group { members, live, fault: Some(faults.join("; ")) }
        }
    }
}

/// Finds the objects that cannot be read, by bisection: a few among many take few readings.
fn find_unreadable(
    store: &Store,
    objects: &[ObjectRef],
    faults: &[String],
    unread: &mut BTreeMap<ObjectRef, String>,
) {
    if let [object] = objects {
        unread.insert(object.clone(), faults.join("; "));
        return;
    }
    let (first, second) = objects.split_at(objects.len() / 2);
    for half in [first, second] {
        if let Err(faults) = cluster::read(store, &half.iter().cloned().collect()) {
            find_unreadable(store, half, &faults, unread);
        }
    }
}

/// Returns the group with its part of what was read.
fn part(members: Members, all: &Live) -> Group {
    let mut objects = BTreeMap::new();
    let mut configs = BTreeMap::new();
    for object in &members.objects {
        let Some(live) = all.objects.get(object) else { continue };
        for name in related::configs(object, &live.value) {
            let (namespace, _) = related::key_of(object);
            let name = NamespacedName::new(&namespace, &name).ok();
            let found = name.and_then(|name| all.configs.get_key_value(&name));
            configs.extend(found.map(|(name, value)| (name.clone(), value.clone())));
        }
        objects.insert(object.clone(), live.clone());
    }
    let unread = all.unread.clone();
    let live = Live { cluster: all.cluster.clone(), objects, configs, unread };
    Group { members, live, fault: None }
}
