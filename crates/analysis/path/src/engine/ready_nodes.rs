//! The compiled kernels of nodes, limited by their total size.
//!
//! A kernel takes memory for each of its rules, and the walks of one call may pass every node of a
//! cluster, in turn. So the first kernels stay until their entries reach a limit, which spares
//! walks that pass the same nodes again as many compilations as any other choice. Of the rest only
//! the last few stay, since a packet and its answer meet a node several times.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use uturn_model::Name;
use uturn_netfilter::hash::FastMap;

use crate::error::WalkError;
use crate::node::NodeRuntime;

/// The largest total number of entries of the kernels that stay, of about 220 bytes each.
const MAX_FIRST: usize = 3_000_000;

/// The largest total number of entries of the last kernels, unless fewer than [`MIN_LAST`] stay.
const MAX_LAST: usize = 300_000;

/// The number of last kernels that stay however large they are: a packet passes from one node to
/// the next.
const MIN_LAST: usize = 2;

/// A kernel, or the error of compiling it, with the number of Services whose rules may be in it.
#[derive(Clone)]
pub(super) struct ReadyNode {
    pub(super) found: Result<Arc<NodeRuntime>, WalkError>,
    pub(super) services: usize,
}

/// The kernels of an engine.
pub(super) struct ReadyNodes<'a> {
    kept: Mutex<Kept<'a>>,
    max_first: usize,
    max_last: usize,
    made: AtomicUsize,
}

#[derive(Default)]
struct Kept<'a> {
    /// The kernels of another engine, which keeps them too.
    adopted: FastMap<&'a Name, ReadyNode>,
    first: FastMap<&'a Name, ReadyNode>,
    first_entries: usize,
    last: VecDeque<(&'a Name, ReadyNode)>,
    last_entries: usize,
}

/// Numbers of kernels that an engine keeps and has compiled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KernelCounts {
    /// The number of kernels that are kept, without those of other engines.
    pub kept: usize,
    /// The number of their entries: rules, members of sets, routes and the like.
    pub entries: usize,
    /// The number of kernels that were compiled so far.
    pub made: usize,
}

impl Default for ReadyNodes<'_> {
    fn default() -> Self {
        Self::limited_to(MAX_FIRST, MAX_LAST)
    }
}

impl<'a> ReadyNodes<'a> {
    pub(super) fn limited_to(max_first: usize, max_last: usize) -> Self {
        Self { kept: Mutex::default(), max_first, max_last, made: AtomicUsize::new(0) }
    }

    /// Returns a node's kernel, if it is kept.
    pub(super) fn get(&self, name: &Name) -> Option<ReadyNode> {
        let kept = self.lock();
        let early = kept.adopted.get(name).or_else(|| kept.first.get(name));
        let late = || kept.last.iter().find(|(known, _)| *known == name).map(|(_, node)| node);
        early.or_else(late).cloned()
    }

    /// Keeps a node's new kernel in place of the former one.
    pub(super) fn keep(&self, name: &'a Name, node: ReadyNode) {
        self.made.fetch_add(1, Ordering::Relaxed);
        let entries = node.entries();
        let kept = &mut *self.lock();
        if let Some(old) = kept.first.remove(name) {
            kept.first_entries -= old.entries();
        }
        if let Some(at) = kept.last.iter().position(|(known, _)| *known == name) {
            kept.drop_last(at);
        }
        if kept.first_entries + entries <= self.max_first {
            kept.first_entries += entries;
            kept.first.insert(name, node);
            return;
        }
        kept.last_entries += entries;
        kept.last.push_back((name, node));
        while kept.last_entries > self.max_last && kept.last.len() > MIN_LAST {
            kept.drop_last(0);
        }
    }

    /// Keeps a kernel that another engine compiled, unless the node has one already.
    pub(super) fn adopt(&self, name: &'a Name, runtime: &Arc<NodeRuntime>) {
        if self.get(name).is_none() {
            let adopted = ReadyNode { found: Ok(Arc::clone(runtime)), services: usize::MAX };
            self.lock().adopted.insert(name, adopted);
        }
    }

    /// Forgets the kernels that this engine keeps, except those of nodes for which `stays` holds.
    pub(super) fn forget_except(&self, stays: impl Fn(&Name) -> bool) {
        let kept = &mut *self.lock();
        kept.first.retain(|name, _| stays(name));
        kept.first_entries = kept.first.values().map(ReadyNode::entries).sum();
        kept.last.clear();
        kept.last_entries = 0;
    }

    /// Returns all kernels that are kept.
    pub(super) fn all(&self) -> Vec<(&'a Name, Arc<NodeRuntime>)> {
        let kept = self.lock();
        let early = kept.adopted.iter().chain(&kept.first).map(|(name, node)| (*name, node));
        let all = early.chain(kept.last.iter().map(|(name, node)| (*name, node)));
        all.filter_map(|(name, node)| Some((name, Arc::clone(node.found.as_ref().ok()?)))).collect()
    }

    pub(super) fn counts(&self) -> KernelCounts {
        let kept = self.lock();
        KernelCounts {
            kept: kept.first.len() + kept.last.len(),
            entries: kept.first_entries + kept.last_entries,
            made: self.made.load(Ordering::Relaxed),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Kept<'a>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Kept<'_> {
    fn drop_last(&mut self, at: usize) {
        if let Some((_, node)) = self.last.remove(at) {
            self.last_entries -= node.entries();
        }
    }
}

impl ReadyNode {
    fn entries(&self) -> usize {
        self.found.as_ref().map_or(1, |runtime| runtime.entries())
    }
}
