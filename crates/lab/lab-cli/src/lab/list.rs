//! `uturn lab list`: lists the scenarios.

use uturn_cli::{Failure, Printer, Status, print};
use uturn_report::schema::lab::{List, Listed};
use uturn_report::table;
use uturn_snapshot::scenario::Scenario;

use crate::cli::LabList;
use crate::scenarios;

pub(super) fn list(args: &LabList, printer: &Printer) -> Result<Status, Failure> {
    let scenarios = scenarios::read(scenarios::own(&args.files)?)?;
    print(
        printer,
        args.output,
        |style| {
            let rows: Vec<Vec<String>> = scenarios
                .iter()
                .map(|scenario| {
                    let nodes = scenario.cases.iter().map(|case| case.nodes.to_string());
                    let modes = scenario.cases.iter().map(|case| case.cluster.proxy.mode.value);
                    vec![
                        scenario.name.to_string(),
                        distinct(nodes).join(" "),
                        distinct(modes.map(|mode| mode.to_string())).join(" "),
                        scenario.shows.to_string(),
                    ]
                })
                .collect();
            table::render(&["SCENARIO", "NODES", "MODES", "SHOWS"], &rows, style)
        },
        || List { scenarios: scenarios.iter().map(listed).collect() },
    );
    Ok(Status::Clean)
}

fn listed(scenario: &Scenario) -> Listed<'_> {
    Listed {
        name: &scenario.name,
        cases: scenario.cases.iter().map(|case| &*case.label).collect(),
        shows: &scenario.shows,
        seed: &scenario.seed,
        file: scenario.origin.to_string(),
    }
}

/// Removes duplicates and keeps the order.
fn distinct(all: impl Iterator<Item = String>) -> Vec<String> {
    let mut seen: Vec<String> = Vec::new();
    for word in all {
        if !seen.contains(&word) {
            seen.push(word);
        }
    }
    seen
}
