//! What health checks found, held against what a scenario expects and the engine predicts.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use uturn_lab::MeasuredFlow;
use uturn_model::Mechanism;
use uturn_path::{Engine, Health, WalkError};
use uturn_report::lab::ProbeReport;
use uturn_snapshot::scenario::{Alive, ExpectedProbes};

/// Judges one listener's targets. What was measured of them stands beside the case's flows.
pub(super) fn judge(
    engine: &Engine<'_>,
    expected: &ExpectedProbes,
    measured: &[MeasuredFlow],
    predicts: bool,
) -> Result<ProbeReport, WalkError> {
    let found = engine.health(expected.listener, expected.protocol)?.unwrap_or_default();
    let seen: BTreeMap<SocketAddr, bool> = measured
        .iter()
        .flat_map(|one| &one.evidence.health)
        .map(|one| (one.target, one.alive))
        .collect();
    let measured: Vec<(SocketAddr, bool)> =
        found.iter().filter_map(|one| Some((one.target, *seen.get(&one.target)?))).collect();
    let mut differences = Vec::new();
    if found.is_empty() {
        differences.push("no load balancer has targets there".to_owned());
    }
    for one in &found {
        let wanted = is_wanted(&expected.alive, one);
        match seen.get(&one.target) {
            None => differences.push(format!("{} was not probed", one.target)),
            Some(alive) if *alive != wanted => differences.push(format!(
                "measured against expected: {} is {}",
                one.target,
                word(*alive)
            )),
            Some(_) => {}
        }
        if predicts && one.alive != wanted {
            differences.push(format!(
                "predicted against expected: {} is {}",
                one.target,
                word(one.alive)
            ));
        }
    }
    if predicts && let Some(wanted) = &expected.mechanisms {
        let mut said: Vec<Mechanism> =
            found.iter().flat_map(|one| one.mechanisms.iter().copied()).collect();
        said.sort_unstable();
        said.dedup();
        if said != *wanted {
            differences.push(format!(
                "mechanism: {} expected, {} predicted",
                names(wanted),
                names(&said)
            ));
        }
    }
    Ok(ProbeReport {
        listener: expected.listener,
        predicted: predicts.then(|| found.iter().map(|one| (one.target, one.alive)).collect()),
        measured,
        differences,
    })
}

fn is_wanted(expected: &Alive, one: &Health) -> bool {
    match expected {
        Alive::All => true,
        Alive::None => false,
        Alive::Only(nodes) => one.node.as_ref().is_some_and(|node| nodes.contains(node)),
    }
}

fn word(alive: bool) -> &'static str {
    if alive { "alive" } else { "dead" }
}

fn names(mechanisms: &[Mechanism]) -> String {
    let names: Vec<&str> = mechanisms.iter().map(|one| one.as_str()).collect();
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}
