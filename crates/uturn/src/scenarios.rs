//! The scenarios that are built in: one for each row of the design.

use std::path::PathBuf;

use uturn_snapshot::Source;
use uturn_snapshot::scenario::{self, Scenario};

use crate::status::Failure;

macro_rules! built_in {
    ($($name:literal),* $(,)?) => {
        const BUILT_IN: &[(&str, &str)] =
            &[$(($name, include_str!(concat!("../../../scenarios/", $name, ".yaml")))),*];
    };
}

built_in!["l4-iptables", "l7-loop"];

/// The built-in scenarios and those of the user's files; `names` picks among them.
pub(crate) fn load(files: &[PathBuf], names: &[String]) -> Result<Vec<Scenario>, Failure> {
    let (own, mut faults) = uturn_snapshot::gather(files);
    let mut sources: Vec<Source> = BUILT_IN
        .iter()
        .map(|(name, text)| Source {
            name: format!("scenarios/{name}.yaml").into(),
            text: (*text).into(),
        })
        .collect();
    sources.extend(own);
    let scenarios = match scenario::read_all(sources) {
        Ok(scenarios) => scenarios,
        Err(more) => {
            faults.extend(more);
            Vec::new()
        }
    };
    if !faults.is_empty() {
        return Err(Failure::input(faults.iter().map(ToString::to_string).collect()));
    }
    let unknown: Vec<String> = names
        .iter()
        .filter(|name| !scenarios.iter().any(|one| *one.name == ***name))
        .map(|name| format!("there is no scenario {name:?}: uturn lab list shows all"))
        .collect();
    if !unknown.is_empty() {
        return Err(Failure::input(unknown));
    }
    let picked = |one: &Scenario| names.is_empty() || names.iter().any(|name| *one.name == **name);
    Ok(scenarios.into_iter().filter(picked).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_scenario_of_the_tree_is_built_in() {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios");
        let mut files: Vec<String> = std::fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        files.sort();
        let mut names: Vec<String> =
            BUILT_IN.iter().map(|(name, _)| format!("{name}.yaml")).collect();
        names.sort();
        assert_eq!(files, names);
    }
}
