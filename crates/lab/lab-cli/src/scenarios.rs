//! Reads scenarios: those of files, and the built-in ones.

use std::path::PathBuf;

use uturn_cli::{Failure, faulty};
use uturn_model::misspelt;
use uturn_snapshot::Source;
use uturn_snapshot::scenario::{self, Scenario};

use crate::built_in_scenarios::BUILT_IN;

/// Reads the texts of the user's own files.
pub(crate) fn own(files: &[PathBuf]) -> Result<Vec<Source>, Failure> {
    let (own, faults) = uturn_document::gather(files);
    if faults.is_empty() { Ok(own) } else { Err(faulty(&faults)) }
}

/// Reads the built-in scenarios and the user's own, which replace built-in ones of the same names.
pub(crate) fn read(own: Vec<Source>) -> Result<Vec<Scenario>, Failure> {
    let own = read_only(own)?;
    let mut all = read_only(built_in_beside(&own))?;
    all.extend(own);
    Ok(all)
}

/// Reads these scenarios and no others.
pub(crate) fn read_only(sources: Vec<Source>) -> Result<Vec<Scenario>, Failure> {
    scenario::read_all(sources).map_err(|faults| faulty(&faults))
}

/// Returns the texts of the built-in scenarios whose names differ from all of these.
pub(crate) fn built_in_beside(own: &[Scenario]) -> Vec<Source> {
    let source = |(name, text): &(&str, &str)| Source {
        name: format!("scenarios/{name}.yaml").into(),
        text: (*text).into(),
    };
    let is_other = |(name, _): &&(&str, &str)| own.iter().all(|mine| *mine.name != **name);
    BUILT_IN.iter().filter(is_other).map(source).collect()
}

/// Returns the names of the requested scenarios: those that were given, else all of the user's own
/// files. An empty list means all.
pub(crate) fn wanted(names: &[String], own: &[Source]) -> Result<Vec<String>, Failure> {
    if !names.is_empty() || own.is_empty() {
        return Ok(names.to_vec());
    }
    let of_files = read_only(own.to_vec())?;
    if of_files.is_empty() {
        let files: Vec<&str> = own.iter().map(|source| &*source.name).collect();
        return Err(Failure::usage(format!("there is no Scenario in {}", files.join(", "))));
    }
    Ok(of_files.iter().map(|scenario| scenario.name.to_string()).collect())
}

/// Returns the scenarios of these names, or all if no names are given.
pub(crate) fn pick(scenarios: Vec<Scenario>, names: &[String]) -> Result<Vec<Scenario>, Failure> {
    let mut known: Vec<&str> = scenarios.iter().map(|scenario| &*scenario.name).collect();
    let mut missing = |name: &String| {
        misspelt::sort_likest_first(&mut known, name);
        let likest = known.first().map(|likest| format!("; did you mean {likest}?"));
        let likest = likest.unwrap_or_default();
        format!("there is no scenario {name:?}{likest} (uturn lab list shows all)")
    };
    let is_unknown = |name: &&String| !scenarios.iter().any(|scenario| *scenario.name == ***name);
    let unknown: Vec<String> = names.iter().filter(is_unknown).map(&mut missing).collect();
    if !unknown.is_empty() {
        return Err(Failure::input(unknown));
    }
    let picked =
        |scenario: &Scenario| names.is_empty() || names.iter().any(|name| *scenario.name == **name);
    Ok(scenarios.into_iter().filter(picked).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_scenarios_take_the_place_of_built_in_ones() {
        let (name, text) = BUILT_IN[0];
        let own = Source { name: "mine.yaml".into(), text: text.into() };
        let all = read(vec![own.clone()]).unwrap();
        assert_eq!(all.len(), BUILT_IN.len());
        let of_name: Vec<_> = all.iter().filter(|scenario| *scenario.name == *name).collect();
        let [only] = of_name[..] else { panic!("{} of {name}", of_name.len()) };
        assert!(only.origin.to_string().starts_with("mine.yaml:"), "{}", only.origin);
        assert_eq!(wanted(&[], &[own]).unwrap(), [name]);
    }

    #[test]
    fn every_scenario_of_the_tree_is_built_in() {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../scenarios");
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
