//! Runs the cases one by one: real programs on one side, uturn on the other.

use std::fs;
use std::path::PathBuf;
use std::time::Instant;

use serde_json::Value;
use uturn_model::Version;

use crate::arguments::Arguments;
use crate::case::Case;
use crate::control_plane::{self, ControlPlane};
use crate::fault::{During as _, Fault, Outcome};
use crate::generate;
use crate::summary::Summary;
use crate::trial::{self, Trial};
use crate::workspace::Workspace;

/// A case, the version of kube-proxy to try it with, and the seed of its packets.
struct Planned {
    case: Case,
    version: Version,
    seed: u64,
}

/// Runs all cases. Returns whether uturn agrees in every one.
pub(crate) fn run(
    arguments: &Arguments,
    workspace: &Workspace,
    control: &ControlPlane<'_>,
) -> Outcome<bool> {
    let plan = plan(arguments)?;
    let mut sum = Summary::default();
    for planned in &plan {
        let Planned { case, version, seed } = planned;
        let start = Instant::now();
        let before = sum.differences();
        let mut trial = Trial {
            arguments,
            workspace,
            control,
            case,
            version: *version,
            seed: *seed,
            sum: &mut sum,
            quiet: false,
        };
        let named = format!("{version} {}", case.name);
        trial.run().map_err(|fault| Fault::new(format!("{named}: {fault}")))?;
        let found = match sum.differences() - before {
            0 => "all equal".to_owned(),
            count => format!("{count} DIFFERENCES"),
        };
        println!("{named}: {found} ({:.1} s)", start.elapsed().as_secs_f64());
        if sum.differences() > before {
            shrink(arguments, workspace, control, planned)?;
        }
    }
    println!("{sum}");
    let unproven = sum.unproven().join(", ");
    if !unproven.is_empty() {
        let why = "the judges saw no difference in a spoiled dump, or had none to spoil";
        // A single case may be too small to show it.
        match arguments.case {
            Some(_) => println!("{unproven}: {why}"),
            None => return Err(Fault::new(format!("{unproven}: {why}: they cannot be trusted"))),
        }
    }
    Ok(sum.differences() == 0)
}

/// Plans the fixed cases with every version, and `count` random ones for each version.
fn plan(arguments: &Arguments) -> Outcome<Vec<Planned>> {
    let Arguments { versions, seed, count, .. } = arguments;
    let mut cases = Vec::new();
    if let Some(path) = &arguments.case {
        let case = Case::read(path)?;
        let own = case.version().filter(|own| versions.contains(own));
        let of = own.map_or_else(|| versions.clone(), |own| vec![own]);
        for version in of {
            cases.push((case.of_version(version)?, version));
        }
    } else {
        let fixed = fixed(arguments)?;
        println!("{} fixed cases and {count} random ones for each version", fixed.len());
        let mut number = 0;
        for version in versions {
            for case in &fixed {
                cases.push((case.of_version(*version)?, *version));
            }
            for _ in 0..*count {
                number += 1;
                cases.push((generate::case(*seed, number, *version), *version));
            }
        }
    }
    let names: Vec<String> = versions.iter().map(ToString::to_string).collect();
    println!("kube-proxy {}; --seed {seed}", names.join(", "));
    let seeds = (0..).map(|nth| seed.wrapping_add(nth));
    let planned =
        cases.into_iter().zip(seeds).map(|((case, version), seed)| Planned { case, version, seed });
    Ok(planned.collect())
}

fn fixed(arguments: &Arguments) -> Outcome<Vec<Case>> {
    let mut paths: Vec<PathBuf> = Vec::new();
    if let Some(folder) = &arguments.cases {
        for entry in fs::read_dir(folder).during(folder.display())? {
            paths.push(entry.during(folder.display())?.path());
        }
    }
    paths.retain(|path| path.extension().is_some_and(|end| end == "json"));
    paths.sort();
    paths.iter().map(|path| Case::read(path)).collect()
}

/// Removes Services as long as a difference remains, and saves the smallest case.
fn shrink(
    arguments: &Arguments,
    workspace: &Workspace,
    control: &ControlPlane<'_>,
    planned: &Planned,
) -> Outcome<()> {
    let Planned { case, version, seed } = planned;
    let (mut smallest, mut services) = (case.clone(), case.services());
    let mut portion = services.len().div_ceil(2);
    while portion > 0 {
        let mut from = 0;
        while from < services.len() {
            let to = services.len().min(from + portion);
            let fewer = smallest.without(&services[from..to]);
            let mut sum = Summary::default();
            let (case, version, seed) = (&fewer, *version, *seed);
            let sums = &mut sum;
            Trial { arguments, workspace, control, case, version, seed, sum: sums, quiet: true }
                .run()?;
            if sum.differences() > 0 {
                smallest = fewer;
                services.drain(from..to);
            } else {
                from = to;
            }
        }
        portion /= 2;
    }
    let file = trial::folder(arguments, *version, case).join("smallest.json");
    let items: &[Value] = &smallest.items;
    fs::write(&file, control_plane::list(items).to_string()).during(file.display())?;
    let (name, services) = (&case.name, services.join(", "));
    println!("{version} {name}: still differs with {services} alone: {}", file.display());
    println!(
        "to have it tried in every run, move it to conformance/cases under a name that says why\n"
    );
    Ok(())
}
