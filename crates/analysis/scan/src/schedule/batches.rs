//! Batches of targets that differ in little more than the port and are walked in one reduced
//! cluster.

use std::net::IpAddr;
use std::sync::Arc;

use super::First;
use crate::partition::target_classes::Granularity;
use crate::schedule::target_walk::TargetJob;

/// The number of batches that wait for more targets.
const OPEN: usize = 8;

/// The largest number of targets in a batch. More are several batches, for several processors.
const MOST: usize = 4096;

/// The key of a reduced cluster: what packets can meet and the classes, by their places in memory,
/// and the called address.
type BatchKey = (usize, usize, IpAddr);

/// Batches that wait for more targets, ordered by when they got the last one, the earliest first.
#[derive(Default)]
pub(super) struct Batches<'a>(Vec<(BatchKey, Vec<First<'a>>)>);

impl<'a> Batches<'a> {
    /// Adds a target to its batch. Hands out batches that do not wait any longer.
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

    /// Hands out all batches that wait.
    pub(super) fn hand_out(self, hand_out: &mut dyn FnMut(Vec<First<'a>>)) {
        self.0.into_iter().for_each(|(_, batch)| hand_out(batch));
    }
}

/// Returns the key of a target's batch. Returns `None` if its reduced cluster has no equal: it has
/// only the request's rule of an Ingress, and a list for a load balancer that tries one target
/// after the other.
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
