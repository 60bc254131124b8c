//! Compares predictions with measurements: outcomes of flows, and the health of targets.

use std::collections::BTreeSet;

use uturn_clouds::controller::{self, BalancerCall};
use uturn_lab::agree::{Agreement, agrees, within};
use uturn_lab::{MeasuredFlow, TargetHealth};
use uturn_model::{Destination, Flow, Mechanism, Outcome};
use uturn_path::{Engine, Health};
use uturn_snapshot::scenario::Case;

use crate::lab::engine;

/// A flow, predicted and measured.
#[derive(Clone, Debug)]
pub(super) struct Judged {
    pub(super) flow: Flow,
    pub(super) mechanisms: Vec<Mechanism>,
    pub(super) measured: Vec<(Outcome, u64)>,
    /// The number of targets whose health was predicted and measured.
    pub(super) probed: usize,
    /// Whether chance keeps deciding which targets are alive, so that outcomes cannot be
    /// compared.
    pub(super) by_chance: bool,
    /// Whether the prediction leaves an outcome open, which no measurement can settle.
    pub(super) is_open: bool,
    /// The differences between prediction and measurement.
    differences: Vec<String>,
    disagreement: Disagreement,
}

/// The kind of a disagreement. Disagreements of one kind probably have the same cause.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Disagreement {
    predicted: BTreeSet<String>,
    measured: BTreeSet<String>,
    /// Whether predicted and measured health differ: alive to dead, dead to alive.
    health: [bool; 2],
}

impl Judged {
    pub(super) fn agrees(&self) -> bool {
        self.differences.is_empty()
    }

    /// Returns whether another flow has the same disagreement.
    pub(super) fn is_like(&self, other: &Self) -> bool {
        !self.agrees() && self.flow == other.flow && self.disagreement == other.disagreement
    }

    /// Describes the disagreement, a line for each difference.
    pub(super) fn lines(&self) -> Vec<String> {
        let Flow { from, to, protocol } = &self.flow;
        let line = |what: &String| format!("{from} to {to} by {protocol}: {what}");
        self.differences.iter().map(line).collect()
    }
}

/// Judges every flow of a case.
///
/// # Errors
/// If nothing can be predicted, with the reason.
pub(super) fn judge(case: &Case, measured: Vec<MeasuredFlow>) -> Result<Vec<Judged>, String> {
    let engine = engine(&case.cluster).map_err(|why| {
        let why: Vec<String> = why.iter().map(ToString::to_string).collect();
        why.join("; ")
    })?;
    measured.into_iter().map(|measured| judge_flow(&engine, measured)).collect()
}

fn judge_flow(engine: &Engine<'_>, measured: MeasuredFlow) -> Result<Judged, String> {
    let verdict = engine.verdict(&measured.flow).map_err(|why| why.to_string())?;
    let mut disagreement = Disagreement::default();
    let mut differences = Vec::new();
    let exact = !verdict.is_by_chance();
    let health = health(engine, &measured.flow).unwrap_or_default();
    let by_chance = health.iter().any(is_intermittent);
    let seen = within(&verdict, measured.limit);
    let is_open = verdict.is_open();
    if !by_chance
        && !is_open
        && let Agreement::Differs(all) = agrees(&seen, &measured.counts, exact)
    {
        differences.extend(all.iter().map(ToString::to_string));
        disagreement.predicted =
            verdict.outcomes.iter().map(|(outcome, _)| word(*outcome)).collect();
        disagreement.measured = measured.counts.iter().map(|(outcome, _)| word(*outcome)).collect();
        let mechanisms: Vec<&str> =
            verdict.mechanisms.iter().map(|mechanism| mechanism.as_str()).collect();
        if !mechanisms.is_empty() {
            differences.push(format!("predicted because of {}", mechanisms.join(", ")));
        }
    }
    let mut probed = 0;
    for found in &measured.evidence.health {
        probed += 1;
        if let Some(what) = unlike(&health, found, &mut disagreement) {
            differences.push(what);
        }
    }
    Ok(Judged {
        flow: measured.flow,
        mechanisms: verdict.mechanisms,
        measured: measured.counts,
        probed,
        by_chance,
        is_open,
        differences,
        disagreement,
    })
}

fn word(outcome: Outcome) -> String {
    match outcome {
        Outcome::Status { code, .. } => format!("status {code}"),
        other => other.word().to_owned(),
    }
}

/// Returns whether a target answers only some of its probes.
fn is_intermittent(health: &Health) -> bool {
    health.answered.is_partial()
}

/// Returns the predicted health of the targets of the listener that a flow calls.
fn health(engine: &Engine<'_>, flow: &Flow) -> Option<Vec<Health>> {
    let rule = |vip, port: u16| engine.health((vip, port).into(), flow.protocol).ok()?;
    match &flow.to {
        Destination::Address(address) => rule(address.ip(), address.port()),
        Destination::Url { host, port, .. } | Destination::Host(host, port) => {
            let named = engine.cluster().dns.of_balancer(host);
            if !named.is_empty() {
                let all = named.iter().filter_map(|named| rule(named.address, port.number()));
                return Some(all.flatten().collect());
            }
            let outside = &engine.cluster().dns.outside;
            let stated = || outside.iter().find(|(name, _)| **name == **host).map(|(_, ip)| *ip);
            rule(host.parse().ok().or_else(stated)?, port.number())
        }
        Destination::Ingress { name, host, path, .. } => {
            let cluster = engine.cluster();
            let ingress = cluster.ingresses.get(name)?;
            let vip = ingress.load_balancer.iter().find_map(|entry| entry.ip)?;
            let call = controller::ingress_call(cluster, ingress, host.as_ref(), path.as_ref());
            rule(vip, call.port.number())
        }
        Destination::Service(..) => {
            let call = BalancerCall::of(engine.cluster(), &flow.from, &flow.to)?;
            let at = call.address()?;
            rule(at.ip(), at.port())
        }
        Destination::Pod(..) => None,
    }
}

fn unlike(
    predicted: &[Health],
    found: &TargetHealth,
    disagreement: &mut Disagreement,
) -> Option<String> {
    let target = found.target;
    let word = |alive| if alive { "alive" } else { "dead" };
    let Some(health) = predicted.iter().find(|health| health.target == target) else {
        return Some(format!("target {target} is probed, and nothing is predicted of it"));
    };
    if is_intermittent(health) || health.alive == found.alive {
        return None;
    }
    disagreement.health[usize::from(found.alive)] = true;
    let because: Vec<&str> = health.mechanisms.iter().map(|mechanism| mechanism.as_str()).collect();
    let because =
        if because.is_empty() { String::new() } else { format!(" ({})", because.join(", ")) };
    Some(format!(
        "target {target}: probes find it {} ({:?}), {} predicted{because}",
        word(found.alive),
        found.latest,
        word(health.alive),
    ))
}
