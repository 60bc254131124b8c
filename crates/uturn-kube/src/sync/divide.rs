//! The work in groups: objects that share load balancers, and no others.

use std::collections::{BTreeMap, BTreeSet};

use uturn_model::ObjectRef;
use uturn_operator::mirror::{self, Mirror};
use uturn_operator::observed::Balancer;

use super::group::Group;
use crate::cluster::{self, Live, LiveObject};
use crate::queue::Work;
use crate::related;
use crate::store::Store;

/// Objects that share load balancers, and these.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Members {
    pub(super) objects: BTreeSet<ObjectRef>,
    /// The ids of load balancers that they have, had, or name.
    pub(super) balancers: BTreeSet<String>,
}

impl Members {
    pub(super) fn is_empty(&self) -> bool {
        self.objects.is_empty() && self.balancers.is_empty()
    }

    /// All of them.
    pub(super) fn works(&self) -> BTreeSet<Work> {
        let objects = self.objects.iter().cloned().map(Work::Object);
        objects.chain(self.balancers.iter().cloned().map(Work::Balancer)).collect()
    }

    /// A name for what is tried again.
    pub(super) fn name(&self) -> Work {
        let object = self.objects.first().cloned().map(Work::Object);
        let balancer = || self.balancers.first().cloned().unwrap_or_default();
        object.unwrap_or_else(|| Work::Balancer(balancer()))
    }
}

/// Which objects have, had or name which load balancers.
#[derive(Debug, Default)]
pub(super) struct Index {
    objects: BTreeMap<ObjectRef, Note>,
    by_uid: BTreeMap<String, ObjectRef>,
    by_id: BTreeMap<String, BTreeSet<ObjectRef>>,
}

#[derive(Debug)]
struct Note {
    uid: String,
    balancers: BTreeSet<String>,
}

impl Index {
    pub(super) fn of(store: &Store) -> Self {
        let mut index = Self::default();
        for (object, value) in related::all(store).filter(|(_, value)| related::is_served(value)) {
            let uid = value["metadata"]["uid"].as_str().unwrap_or_default().to_owned();
            let balancers = cluster::existing(value);
            index.by_uid.insert(uid.clone(), object.clone());
            for id in &balancers {
                index.by_id.entry(id.clone()).or_default().insert(object.clone());
            }
            index.objects.insert(object, Note { uid, balancers });
        }
        index
    }

    /// Whether a load balancer was made for an object that is gone.
    pub(super) fn is_orphan(&self, balancer: &Balancer) -> bool {
        let uid = mirror::uid(balancer).unwrap_or_default();
        balancer.is_own()
            && !self.by_uid.contains_key(uid)
            && !self.by_id.contains_key(&balancer.id)
    }

    /// The group of an object or a load balancer.
    pub(super) fn members(&self, work: &Work, mirror: &Mirror) -> Members {
        let mut members = Members::default();
        let mut open = vec![work.clone()];
        while let Some(work) = open.pop() {
            match work {
                Work::Object(object) => {
                    let Some(note) = self.objects.get(&object) else { continue };
                    if members.objects.insert(object) {
                        let balancers = note.balancers.iter().chain(mirror.of_uid(&note.uid));
                        open.extend(balancers.cloned().map(Work::Balancer));
                    }
                }
                Work::Balancer(id) => {
                    let users = self.by_id.get(&id).into_iter().flatten();
                    let uid = mirror.seen(&id).and_then(|seen| mirror::uid(&seen.balancer));
                    let owner = uid.and_then(|uid| self.by_uid.get(uid));
                    let objects: Vec<Work> =
                        users.chain(owner).cloned().map(Work::Object).collect();
                    if members.balancers.insert(id) {
                        open.extend(objects);
                    }
                }
            }
        }
        let is_known = |id: &String| mirror.seen(id).is_some();
        if members.objects.is_empty() && !members.balancers.iter().any(is_known) {
            return Members::default();
        }
        members
    }
}

/// Reads groups from the store, with what could not be read. Such objects do not keep others from
/// being read.
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
            let fault = Some(more.join("; "));
            faults.extend(more);
            for members in groups {
                let objects = members.objects.iter().filter_map(|object| {
                    let value = related::live(store, object)?.clone();
                    Some((object.clone(), LiveObject { value }))
                });
                let live = Live { objects: objects.collect(), ..Live::default() };
                read.push(Group { members, live, fault: fault.clone() });
            }
        }
        Err(_) => {
            let others = groups.split_off(groups.len() / 2);
            read_some(store, groups, read, faults);
            read_some(store, others, read, faults);
        }
    }
}

/// The part of a group.
fn part(members: Members, all: &Live) -> Group {
    let mut objects = BTreeMap::new();
    let mut configs = BTreeMap::new();
    for object in &members.objects {
        let Some(live) = all.objects.get(object) else { continue };
        for name in related::configs(object, &live.value) {
            let found = all.configs.iter().find(|(key, _)| {
                key.name.as_str() == name && Some(&key.namespace) == object.namespace.as_ref()
            });
            configs.extend(found.map(|(key, value)| (key.clone(), value.clone())));
        }
        objects.insert(object.clone(), live.clone());
    }
    let live = Live { cluster: all.cluster.clone(), objects, configs };
    Group { members, live, fault: None }
}
