//! One case after the other: real programs on one side, uturn on the other.

use std::fs;
use std::path::PathBuf;
use std::time::Instant;

use serde_json::Value;

use crate::arguments::Arguments;
use crate::case::Case;
use crate::control::{self, Control};
use crate::fault::{During as _, Fault, Outcome};
use crate::generate;
use crate::trial::{Sum, Trial};
use crate::world::World;

/// Which kube-proxy `conformance/go.mod` names.
const VERSION: &str = "v1.34.4";

/// Whether uturn agrees with the real thing in every case.
pub(crate) fn run(arguments: &Arguments) -> Outcome<bool> {
    let cases = cases(arguments)?;
    let world = World::new(&arguments.programs, &arguments.work)?;
    let control = Control::start(&world)?;
    println!("left out: IPVS mode, since it needs a kernel with ip_vs; its golden dumps are tests");
    let mut sum = Sum::default();
    for case in &cases {
        let start = Instant::now();
        let before = sum.differences;
        let mut trial = Trial {
            arguments,
            world: &world,
            control: &control,
            case,
            sum: &mut sum,
            quiet: false,
        };
        trial.run().map_err(|fault| Fault::new(format!("{}: {fault}", case.name)))?;
        sum.cases += 1;
        let found = match sum.differences - before {
            0 => "all equal".to_owned(),
            count => format!("{count} DIFFERENCES"),
        };
        println!("{}: {found} ({:.1} s)", case.name, start.elapsed().as_secs_f64());
        if sum.differences > before {
            shrink(arguments, &world, &control, case)?;
        }
    }
    println!("{sum}");
    Ok(sum.differences == 0)
}

fn cases(arguments: &Arguments) -> Outcome<Vec<Case>> {
    if let Some(path) = &arguments.case {
        return Ok(vec![Case::read(path)?]);
    }
    let mut paths: Vec<PathBuf> = Vec::new();
    if let Some(folder) = &arguments.cases {
        for entry in fs::read_dir(folder).during(folder.display())? {
            paths.push(entry.during(folder.display())?.path());
        }
    }
    paths.retain(|path| path.extension().is_some_and(|end| end == "json"));
    paths.sort();
    let fixed: Outcome<Vec<Case>> = paths.iter().map(|path| Case::read(path)).collect();
    let (seed, count) = (arguments.seed, arguments.count);
    println!("{} fixed cases, {count} random ones of --seed {seed}", paths.len());
    let random = (1..=count).map(|number| generate::case(seed, number, VERSION));
    Ok(fixed?.into_iter().chain(random).collect())
}

/// Takes Services out for as long as a difference stays, and keeps what is left.
fn shrink(arguments: &Arguments, world: &World, control: &Control<'_>, case: &Case) -> Outcome<()> {
    let (mut smallest, mut services) = (case.clone(), case.services());
    let mut portion = services.len().div_ceil(2);
    while portion > 0 {
        let mut from = 0;
        while from < services.len() {
            let to = services.len().min(from + portion);
            let fewer = smallest.without(&services[from..to]);
            let mut sum = Sum::default();
            let case = &fewer;
            Trial { arguments, world, control, case, sum: &mut sum, quiet: true }.run()?;
            if sum.differences > 0 {
                smallest = fewer;
                services.drain(from..to);
            } else {
                from = to;
            }
        }
        portion /= 2;
    }
    let file = arguments.work.join("failed").join(&case.name).join("smallest.json");
    let items: &[Value] = &smallest.items;
    fs::write(&file, control::list(items).to_string()).during(file.display())?;
    println!("{}: still differs with {} alone: {}", case.name, services.join(", "), file.display());
    println!(
        "to have it tried in every run, move it to conformance/cases under a name that says why\n"
    );
    Ok(())
}
