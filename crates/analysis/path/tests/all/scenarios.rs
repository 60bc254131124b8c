//! Every scenario of the tree, predicted: what the lab measures, without a lab.

#![allow(clippy::unwrap_used, reason = "a helper of a test may fail like the test")]

use std::fs;
use std::path::Path;

use uturn_path::{Engine, Health};
use uturn_snapshot::Source;
use uturn_snapshot::scenario::{Alive, ExpectedFlow, ExpectedProbes, Scenario, read_all};

fn scenarios() -> Vec<Scenario> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../scenarios");
    let mut sources: Vec<Source> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .map(|path| Source {
            name: path.file_name().unwrap().to_string_lossy().into(),
            text: fs::read_to_string(&path).unwrap(),
        })
        .collect();
    sources.sort_by(|a, b| a.name.cmp(&b.name));
    assert!(!sources.is_empty());
    read_all(sources).unwrap()
}

/// What a Scenario says is stated: nothing of it is put under a condition, or not judged.
#[test]
fn what_is_stated_has_verdicts_without_a_condition() {
    let (mut without, mut others) = (0, Vec::new());
    for scenario in scenarios() {
        for case in &scenario.cases {
            let engine = Engine::new(&case.cluster).unwrap();
            for flow in &case.flows {
                for verdict in engine.cases(&flow.flow).unwrap() {
                    if verdict.conditions.is_empty() && !verdict.is_open() {
                        without += 1;
                    } else {
                        others.push(format!(
                            "{} ({}): {} to {}: {:?}",
                            scenario.name,
                            case.label,
                            flow.flow.from,
                            flow.flow.to,
                            verdict.conditions
                        ));
                    }
                }
            }
        }
    }
    println!("{without} verdicts without a condition, {} others", others.len());
    assert!(others.is_empty(), "{}", others.join("\n"));
}

#[test]
fn every_scenario_is_predicted_as_it_expects() {
    let mut faults = Vec::new();
    for scenario in scenarios() {
        for case in &scenario.cases {
            let what = format!("{} ({})", scenario.name, case.label);
            let engine = match Engine::new(&case.cluster) {
                Ok(engine) => engine,
                Err(why) => {
                    faults.push(format!("{what}: {why:?}"));
                    continue;
                }
            };
            assert!(!case.flows.is_empty(), "{what} has no flows");
            for flow in &case.flows {
                let flow_what = format!("{what}: {} to {}", flow.flow.from, flow.flow.to);
                faults.extend(check(&engine, flow).map(|fault| format!("{flow_what}: {fault}")));
            }
            for probes in &case.probes {
                let fault = check_probes(&engine, probes);
                faults.extend(fault.map(|fault| format!("{what}: {}: {fault}", probes.listener)));
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

fn check(engine: &Engine<'_>, expected: &ExpectedFlow) -> Option<String> {
    let verdict = match engine.verdict(&expected.flow) {
        Ok(verdict) => verdict,
        Err(why) => return Some(why.to_string()),
    };
    let mut wanted = expected.outcomes.clone();
    wanted.sort_by_key(|end| end.0);
    let mut found = verdict.outcomes.clone();
    found.sort_by_key(|end| end.0);
    let alike = wanted.len() == found.len()
        && wanted.iter().zip(&found).all(|(a, b)| a.0 == b.0 && a.1.is_about(b.1));
    if !alike {
        return Some(format!(
            "{wanted:?} expected, {found:?} predicted ({:?})",
            verdict.mechanisms
        ));
    }
    match &expected.mechanisms {
        Some(wanted) if *wanted != verdict.mechanisms => {
            Some(format!("{wanted:?} expected, {:?} predicted", verdict.mechanisms))
        }
        _ => None,
    }
}

fn check_probes(engine: &Engine<'_>, expected: &ExpectedProbes) -> Option<String> {
    let Some(found) = engine.health(expected.listener, expected.protocol).unwrap() else {
        return Some("no load balancer listens there".to_owned());
    };
    if found.is_empty() {
        return Some("there are no targets".to_owned());
    }
    let wanted = |health: &Health| match &expected.alive {
        Alive::All => true,
        Alive::None => false,
        Alive::Only(nodes) => health.node.as_ref().is_some_and(|node| nodes.contains(node)),
    };
    let wrong: Vec<&Health> =
        found.iter().filter(|health| health.alive != wanted(health)).collect();
    if !wrong.is_empty() {
        return Some(format!("{:?} expected, but {wrong:?}", expected.alive));
    }
    let mut mechanisms: Vec<_> =
        found.iter().flat_map(|health| health.mechanisms.clone()).collect();
    mechanisms.sort_unstable();
    mechanisms.dedup();
    match &expected.mechanisms {
        Some(wanted) if *wanted != mechanisms => {
            Some(format!("{wanted:?} expected, {mechanisms:?} predicted"))
        }
        _ => None,
    }
}
