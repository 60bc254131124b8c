//! Targets that differ in little more than the port: they are walked in one reduced cluster.

use std::net::IpAddr;
use std::sync::Arc;

use super::First;
use crate::partition::target_classes::Granularity;
use crate::schedule::target_walk::TargetJob;

/// So many batches wait for more targets.
const OPEN: usize = 8;

/// More targets than these are several batches, for several processors.
const MOST: usize = 4096;

/// What a reduced cluster is made of: what packets can meet and the classes, by their places in memory,
/// and the address asked.
type BatchKey = (usize, usize, IpAddr);

/// Batches that wait for more targets, the one that got its last before all others first.
#[derive(Default)]
pub(super) struct Batches<'a>(Vec<(BatchKey, Vec<First<'a>>)>);

impl<'a> Batches<'a> {
    /// Adds a target to its batch. Hands out what does not wait any longer.
    pub(super) fn add(&mut self, first: First<'a>, hand_out: &mut dyn FnMut(Vec<First<'a>>)) {
        let Self(open) = self;
        let Some(key) = key(&first.1.1) else { return hand_out(vec![first]) };
        let mut batch = match open.iter().position(|(known, _)| *known == key) {
            Some(at) => open.remove(at).1,
            None => Vec::new(),
        };
        batch.push(first);
        if batch.len() == MOST {
            return hand_out(batch);
        }
        if open.len() == OPEN {
            hand_out(open.remove(0).1);
        }
        open.push((key, batch));
    }

    /// Hands out all that wait.
    pub(super) fn hand_out(self, hand_out: &mut dyn FnMut(Vec<First<'a>>)) {
        self.0.into_iter().for_each(|(_, batch)| hand_out(batch));
    }
}

/// The key of a target's batch; `None` if its reduced cluster is like no other. Of an Ingress it has only
/// the rule for the request, and a load balancer that tries one target after the other has a list of them.
fn key(job: &TargetJob<'_>) -> Option<BatchKey> {
    let classes = &job.target_classes;
    let scope = &classes.scope;
    let is_alone = job.granularity != Granularity::Classes
        || !scope.ingresses.is_empty()
        || scope.tries_again().is_some();
    let met = Arc::as_ptr(&scope.met).addr();
    let partition = Arc::as_ptr(&classes.partition).addr();
    (!is_alone).then(|| (met, partition, scope.asked.to.ip()))
}
