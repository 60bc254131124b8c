//! The known results of one target while its clients are walked, and what is kept of them.

use std::sync::Arc;

use uturn_model::{Destination, Protocol, Verdict};
use uturn_netfilter::hash::FastMap;

use super::found::FoundForClient;
use super::inputs::{Standing, WalkInputs};
use super::{KnownTarget, KnownWalks};
use crate::targets::ScanTarget;

/// A class of clients, by its number, and a client of it that tries targets in another order.
type Part = (usize, Standing);

/// The known results of one target.
pub(crate) struct TargetMemory<'k> {
    all: &'k KnownWalks,
    target: (Destination, Protocol),
    source: Source,
}

enum Source {
    /// The target was walked in a former scan. The number is that of the next client.
    Known(Arc<KnownTarget>, usize),
    /// The target is walked now.
    New(Box<NewTarget>),
    /// The target is walked now, and the results cannot be kept.
    Lost,
}

struct NewTarget {
    inputs: WalkInputs,
    clients: Vec<FoundForClient>,
    parts: FastMap<Part, Arc<[Verdict]>>,
}

impl<'k> TargetMemory<'k> {
    /// Looks up the results of walks with these inputs.
    pub(crate) fn new(all: &'k KnownWalks, target: &ScanTarget, inputs: WalkInputs) -> Self {
        let target = (target.to.clone(), target.protocol);
        let source = match all.find(&target, &inputs) {
            Some(known) => Source::Known(known, 0),
            None => {
                let (clients, parts) = (Vec::new(), FastMap::default());
                Source::New(Box::new(NewTarget { inputs, clients, parts }))
            }
        };
        Self { all, target, source }
    }

    /// Returns the results for the next client. Returns `None` if it has to be walked.
    pub(crate) fn next(&mut self) -> Option<FoundForClient> {
        let Source::Known(known, next) = &mut self.source else { return None };
        let found = known.clients.get(*next)?.clone();
        *next += 1;
        self.all.count_reuse();
        Some(found)
    }

    /// Records the results of walking the next client; `None` if they cannot be kept.
    pub(crate) fn add(&mut self, found: Option<FoundForClient>) {
        self.all.count_walk();
        match (&mut self.source, found) {
            (Source::New(new), Some(found)) => new.clients.push(found),
            (source, _) => *source = Source::Lost,
        }
    }

    /// Returns the verdicts of clients of a class that try targets in another order.
    pub(crate) fn part(&self, part: Part) -> Option<Arc<[Verdict]>> {
        let known = match &self.source {
            Source::Known(known, _) => known.part(part.0, part.1),
            Source::New(_) | Source::Lost => None,
        };
        known.inspect(|_| self.all.count_reuse())
    }

    /// Records the verdicts of such clients.
    pub(crate) fn add_part(&mut self, part: Part, verdicts: &Arc<[Verdict]>) {
        self.all.count_walk();
        match &mut self.source {
            Source::Known(known, _) => known.keep_part(part.0, part.1, Arc::clone(verdicts)),
            Source::New(new) => drop(new.parts.insert(part, Arc::clone(verdicts))),
            Source::Lost => {}
        }
    }

    /// Keeps the results, once all clients are walked.
    pub(crate) fn keep(self) {
        if let Source::New(new) = self.source {
            let NewTarget { inputs, clients, parts } = *new;
            self.all.keep(self.target, inputs, clients, parts);
        }
    }
}
