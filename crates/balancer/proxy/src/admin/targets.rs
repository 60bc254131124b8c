//! `/targets`: the state of each target.

use std::net::SocketAddr;
use std::time::Instant;

use serde::Serialize;
use uturn_lb::event::ProbeResult;

use super::Known;
use super::overview::{ShownListener, ShownTarget};
use crate::timestamp::Clock;

#[derive(Debug, Serialize)]
struct Page<'a> {
    targets: Vec<Row<'a>>,
}

#[derive(Debug, Serialize)]
struct Row<'a> {
    load_balancer: &'a str,
    listener: SocketAddr,
    protocol: String,
    rule: &'a str,
    /// The position of the rule in the listener, from 0.
    rule_index: usize,
    target: &'a str,
    weight: u32,
    alive: bool,
    /// Whether health checks have decided `alive`.
    decided: bool,
    /// The result of the latest health check.
    probe: Option<ProbeResult>,
    /// The end of the target's rest; `null` if the target does not rest.
    resting_until: Option<String>,
    /// The number of requests and connections under way; `null` if the kernel forwards.
    open: Option<u64>,
}

/// Returns the page, as JSON.
pub(super) fn page(known: &Known) -> String {
    let overview = known.overview.load();
    let (clock, now) = (Clock::now(), Instant::now());
    let rows = |listener| rows(listener, &clock, now);
    let page = Page {
        targets: overview.listeners.iter().map(|listener| &**listener).flat_map(rows).collect(),
    };
    let mut text = serde_json::to_string_pretty(&page).expect("strings and numbers only");
    text.push('\n');
    text
}

fn rows<'a>(listener: &'a ShownListener, clock: &Clock, now: Instant) -> Vec<Row<'a>> {
    let row = |target: &'a ShownTarget| {
        let probes = target.probes.state();
        let rest_ends = target.state.as_ref().and_then(|state| state.rest_ends(now));
        Row {
            load_balancer: &listener.load_balancer,
            listener: listener.address,
            protocol: listener.protocol.to_string(),
            rule: &target.rule,
            rule_index: target.rule_index,
            target: &target.name,
            weight: target.weight,
            alive: target.is_alive(),
            decided: probes.alive.is_some(),
            probe: probes.latest,
            resting_until: rest_ends.map(|moment| clock.text(moment)),
            open: target.state.as_ref().map(|state| state.open()),
        }
    };
    listener.targets.iter().map(row).collect()
}
