//! Every scenario of the tree, predicted: what the lab measures, without a lab.

use std::fs;
use std::path::Path;

use uturn_path::Engine;
use uturn_snapshot::Source;
use uturn_snapshot::scenario::{ExpectedFlow, read_all};

#[test]
fn every_scenario_is_predicted_as_it_expects() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios");
    let sources: Vec<Source> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .map(|path| Source {
            name: path.file_name().unwrap().to_string_lossy().into(),
            text: fs::read_to_string(&path).unwrap(),
        })
        .collect();
    assert!(!sources.is_empty());
    for scenario in read_all(sources).unwrap() {
        for case in &scenario.cases {
            let engine = Engine::new(&case.cluster).unwrap();
            assert!(!case.flows.is_empty(), "{} has no flows", scenario.name);
            for flow in &case.flows {
                check(&engine, flow, &format!("{} ({})", scenario.name, case.label));
            }
        }
    }
}

fn check(engine: &Engine<'_>, expected: &ExpectedFlow, what: &str) {
    let verdicts = engine.verdicts(&expected.flow).expect(what);
    assert_eq!(verdicts.len(), 1, "{what}");
    let said = &verdicts[0];
    let mut wanted = expected.outcomes.clone();
    wanted.sort_by_key(|one| one.0);
    let mut found = said.outcomes.clone();
    found.sort_by_key(|one| one.0);
    assert_eq!(wanted.len(), found.len(), "{what}: {wanted:?} expected, {found:?} predicted");
    for (wanted, found) in wanted.iter().zip(&found) {
        assert_eq!(wanted.0, found.0, "{what}");
        assert!((wanted.1 - found.1).abs() < 1e-6, "{what}: {wanted:?} is not {found:?}");
    }
    if let Some(mechanisms) = &expected.mechanisms {
        assert_eq!(*mechanisms, said.mechanisms, "{what}");
    }
}
