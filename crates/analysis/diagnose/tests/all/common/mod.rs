//! What these tests share.

use std::fs;
use std::path::Path;

use uturn_diagnose::cure::CaseState;
use uturn_snapshot::scenario::{Case, Scenario, read_all};
use uturn_snapshot::{Manifests, Source};

/// Every scenario of the tree with its text, by name.
pub(crate) fn scenarios() -> Vec<(Source, Scenario)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../scenarios");
    let files = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut all: Vec<(Source, Scenario)> = files
        .map(|path| {
            let name = path.file_name().unwrap().to_string_lossy().into();
            let source = Source { name, text: fs::read_to_string(&path).unwrap() };
            let scenario = read_all(vec![source.clone()]).unwrap().remove(0);
            (source, scenario)
        })
        .collect();
    all.sort_by(|a, b| a.1.name.cmp(&b.1.name));
    all
}

/// The texts of a case.
pub(crate) fn case_of(source: &Source, scenario: &Scenario, case: &Case) -> Manifests {
    Manifests::of(vec![source.clone()]).with_case(&scenario.name, &case.label)
}

/// A case's state in a line.
pub(crate) fn case_state(state: &CaseState) -> String {
    match state {
        CaseState::Flow { outcomes, .. } => {
            let ends: Vec<String> = outcomes
                .iter()
                .map(|(outcome, share)| format!("{:.0} % {outcome}", share.get() * 100.0))
                .collect();
            ends.join(", ")
        }
        CaseState::Probes { alive, of, .. } => format!("{alive} of {of} targets alive"),
        CaseState::Object { faults, .. } => faults.join("; "),
    }
}
