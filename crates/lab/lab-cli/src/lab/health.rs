//! Compares the measured health of targets with what a scenario expects and the engine predicts.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use uturn_lab::MeasuredFlow;
use uturn_model::Mechanism;
use uturn_path::{Engine, Health, WalkError};
use uturn_report::lab::ProbeReport;
use uturn_snapshot::scenario::{Alive, ExpectedProbes};

/// Judges one listener's targets. Their measured health is part of the case's flows.
pub(super) fn judge(
    engine: &Engine<'_>,
    expected: &ExpectedProbes,
    measured: &[MeasuredFlow],
    predicts: bool,
) -> Result<ProbeReport, WalkError> {
    let found = engine.health(expected.listener, expected.protocol)?.unwrap_or_default();
    let seen: BTreeMap<SocketAddr, bool> = measured
        .iter()
        .flat_map(|flow| &flow.evidence.health)
        .map(|target| (target.target, target.alive))
        .collect();
    let measured: Vec<(SocketAddr, bool)> = found
        .iter()
        .filter_map(|health| Some((health.target, *seen.get(&health.target)?)))
        .collect();
    let mut differences = Vec::new();
    if found.is_empty() {
        differences.push("no load balancer has targets there".to_owned());
    }
    for health in &found {
        let wanted = is_wanted(&expected.alive, health);
        match seen.get(&health.target) {
            None => differences.push(format!("{} was not probed", health.target)),
            Some(alive) if *alive != wanted => differences.push(format!(
                "measured against expected: {} is {}",
                health.target,
                word(*alive)
            )),
            Some(_) => {}
        }
        if predicts && health.alive != wanted {
            differences.push(format!(
                "predicted against expected: {} is {}",
                health.target,
                word(health.alive)
            ));
        }
    }
    if predicts && let Some(wanted) = &expected.mechanisms {
        let mut found: Vec<Mechanism> =
            found.iter().flat_map(|health| health.mechanisms.iter().copied()).collect();
        found.sort_unstable();
        found.dedup();
        if found != *wanted {
            differences.push(format!(
                "mechanism: {} expected, {} predicted",
                names(wanted),
                names(&found)
            ));
        }
    }
    Ok(ProbeReport {
        listener: expected.listener,
        predicted: predicts
            .then(|| found.iter().map(|health| (health.target, health.alive)).collect()),
        measured,
        differences,
    })
}

fn is_wanted(expected: &Alive, health: &Health) -> bool {
    match expected {
        Alive::All => true,
        Alive::None => false,
        Alive::Only(nodes) => health.node.as_ref().is_some_and(|node| nodes.contains(node)),
    }
}

fn word(alive: bool) -> &'static str {
    if alive { "alive" } else { "dead" }
}

fn names(mechanisms: &[Mechanism]) -> String {
    let names: Vec<&str> = mechanisms.iter().map(|mechanism| mechanism.as_str()).collect();
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}
