//! Calls of clients outside of the cluster.
//!
//! Each is walked in the whole cluster, so there is a limit to their number.

use std::cell::OnceCell;
use std::collections::BTreeMap;

use uturn_model::{Client, Flow};
use uturn_path::Engine;
use uturn_scan::{AddressKind, ScanTarget};

use super::end::End;

/// The maximum number of calls that are walked for all losses together. If there are more, none is.
const MAX: usize = 2_000;

/// The targets that clients outside of the cluster call: addresses of load balancers, and external IPs.
pub(super) struct OutsideCalls {
    targets: Vec<usize>,
    before: OnceCell<BTreeMap<usize, End>>,
}

impl OutsideCalls {
    pub(super) fn of(targets: &[ScanTarget]) -> Self {
        let outer = |(_, target): &(usize, &ScanTarget)| target.at == AddressKind::Other;
        let targets = targets.iter().enumerate().filter(outer).map(|(at, _)| at).collect();
        Self { targets, before: OnceCell::new() }
    }

    /// Returns how the calls end before any loss, by target.
    pub(super) fn before(&self, all: &[ScanTarget], engine: &Engine<'_>) -> &BTreeMap<usize, End> {
        self.before.get_or_init(|| ends(all, engine, &self.targets))
    }

    /// Returns how the calls of some targets end in the cluster of an engine, by target. Empty if
    /// there are too many for this number of losses.
    pub(super) fn ends(
        &self,
        all: &[ScanTarget],
        engine: &Engine<'_>,
        targets: &[usize],
        losses: usize,
    ) -> BTreeMap<usize, End> {
        if !self.are_walked(losses) {
            return BTreeMap::new();
        }
        let called = self.targets.iter().filter(|target| targets.contains(target));
        ends(all, engine, &called.copied().collect::<Vec<usize>>())
    }

    /// Returns whether the calls are walked for this number of losses.
    pub(super) fn are_walked(&self, losses: usize) -> bool {
        self.targets.len() * losses <= MAX
    }
}

fn ends(all: &[ScanTarget], engine: &Engine<'_>, targets: &[usize]) -> BTreeMap<usize, End> {
    if targets.is_empty() {
        return BTreeMap::new();
    }
    let engine = engine.with_met_services();
    let end = |target: &usize| {
        let own = &all[*target];
        let flow = Flow { from: Client::Outside(None), to: own.to.clone(), protocol: own.protocol };
        let verdict = engine.verdict(&flow).ok()?;
        Some((*target, End::of_verdict(&verdict)))
    };
    targets.iter().filter_map(end).collect()
}
