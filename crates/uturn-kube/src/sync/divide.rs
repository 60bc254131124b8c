//! The work in groups: objects that share load balancers, and no others.

use std::collections::{BTreeMap, BTreeSet};

use uturn_model::{NamespacedName, ObjectRef};
use uturn_operator::mirror::{self, Mirror};
use uturn_operator::observed::Balancer;

use super::group::Group;
use crate::cluster::{self, Live, LiveObject};
use crate::index::Index;
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

/// Whether a load balancer was made for an object that is gone.
pub(super) fn is_orphan(index: &Index, balancer: &Balancer) -> bool {
    let uid = mirror::uid(balancer).unwrap_or_default();
    balancer.is_own()
        && index.with_uid(uid).next().is_none()
        && index.users_of_balancer(&balancer.id).next().is_none()
}

/// The group of an object or a load balancer.
pub(super) fn members(index: &Index, work: &Work, mirror: &Mirror) -> Members {
    let mut members = Members::default();
    let mut open = vec![work.clone()];
    while let Some(work) = open.pop() {
        match work {
            Work::Object(object) => {
                let Some(uid) = index.uid(&object) else { continue };
                let balancers = index.balancers_of(&object).chain(mirror.of_uid(uid));
                let balancers: Vec<Work> = balancers.cloned().map(Work::Balancer).collect();
                if members.objects.insert(object) {
                    open.extend(balancers);
                }
            }
            Work::Balancer(id) => {
                let uid = mirror.seen(&id).and_then(|seen| mirror::uid(&seen.balancer));
                let owners = uid.into_iter().flat_map(|uid| index.with_uid(uid));
                let objects = index.users_of_balancer(&id).chain(owners);
                let objects: Vec<Work> = objects.cloned().map(Work::Object).collect();
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
            let (namespace, _) = related::key_of(object);
            let name = NamespacedName::new(&namespace, &name).ok();
            let found = name.and_then(|name| all.configs.get_key_value(&name));
            configs.extend(found.map(|(name, value)| (name.clone(), value.clone())));
        }
        objects.insert(object.clone(), live.clone());
    }
    let live = Live { cluster: all.cluster.clone(), objects, configs };
    Group { members, live, fault: None }
}
