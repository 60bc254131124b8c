//! Every scenario of the tree: what is found in each flow that fails, what is offered
//! against it, and how the flow stands after that.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on panics")]

mod common;

use std::fmt::Write as _;

use common::{case_of, scenarios, standing};
use uturn_diagnose::cure::{self, Case, Cure, Twin};
use uturn_diagnose::{Code, diagnose};
use uturn_model::{Kind, Outcome};
use uturn_path::Engine;

#[test]
fn every_failing_flow_has_its_cures() {
    let mut text = String::new();
    for (source, scenario) in scenarios() {
        let mut before: Vec<String> = Vec::new();
        // The smallest and the largest say all that sizes say.
        let sizes: Vec<usize> = scenario.cases.iter().map(|case| case.nodes).collect();
        let kept = [sizes.iter().min().copied(), sizes.iter().max().copied()];
        for case in scenario.cases.iter().filter(|case| kept.contains(&Some(case.nodes))) {
            let manifests = case_of(&source, &scenario, case);
            let cluster = manifests.cluster().unwrap();
            let engine = Engine::new(&cluster).unwrap();
            let twin = Twin::new(&manifests, &engine);
            let (mut all, mut said) = (String::new(), Vec::new());
            for expected in &case.flows {
                let is_fine = |one: &(Outcome, f64)| one.0.is_fine();
                if expected.outcomes.iter().all(is_fine) {
                    continue;
                }
                let case = Case::flow(&manifests, &engine, expected.flow.clone()).unwrap();
                let kind = case.owner_kind().unwrap_or(Kind::Service);
                let code = case.mechanisms.first().map(|one| Code::of(*one, kind)).unwrap();
                let told = format!(
                    "  {} → {}: {code} {}\n{}",
                    expected.flow.from,
                    expected.flow.to,
                    standing(&case.before),
                    cures(&cure::cures(&twin, &case))
                );
                let same = told.split_once(": ").unwrap().1.to_owned();
                if !said.contains(&same) {
                    said.push(same);
                    all.push_str(&told);
                }
            }
            for probes in &case.probes {
                let case = Case::probes(&manifests, &engine, probes.listener, probes.protocol);
                if case.before.is_fine() {
                    continue;
                }
                let told = format!(
                    "  probes of {}: {}\n{}",
                    probes.listener,
                    standing(&case.before),
                    cures(&cure::cures(&twin, &case))
                );
                all.push_str(&told);
            }
            // What modes have in common is said once.
            if !all.is_empty() && !before.contains(&all) {
                let _ = write!(text, "{}, {}\n{all}", scenario.name, case.label);
                before.push(all);
            }
        }
    }
    insta::assert_snapshot!(text);
}

fn cures(all: &[Cure]) -> String {
    let mut text = String::new();
    for one in all {
        let _ = match (&one.refused, &one.after) {
            (None, Some(after)) => {
                writeln!(text, "    + {}: {} ⇒ {}", one.name, one.title, standing(after))
            }
            (Some(why), _) => writeln!(text, "    - {}: {why}", one.name),
            (None, None) => panic!("{} is offered and was not tried", one.name),
        };
    }
    text
}

/// What a scan says of each scenario, without being told where to look.
#[test]
fn every_scenario_is_diagnosed() {
    let mut text = String::new();
    for (source, scenario) in scenarios() {
        let mut before: Vec<String> = Vec::new();
        let largest = scenario.cases.iter().map(|case| case.nodes).max();
        for case in scenario.cases.iter().filter(|case| Some(case.nodes) == largest) {
            let cluster = case_of(&source, &scenario, case).cluster().unwrap();
            let engine = Engine::new(&cluster).unwrap();
            let found = diagnose(&engine, &engine.scan(&engine.targets()).unwrap()).unwrap();
            let mut told = String::new();
            for one in &found {
                assert!(!one.evidence(&engine).unwrap().is_empty(), "{}: {one:?}", scenario.name);
                let who = [one.clients.pod_count().to_string() + " pods"];
                let others = one.clients.others().iter().map(ToString::to_string);
                let who: Vec<String> = who.into_iter().chain(others).collect();
                let _ = writeln!(
                    told,
                    "  {} {} {} [{}] {}: {:.0} % {}",
                    one.code,
                    one.severity,
                    one.subject,
                    one.targets.join(", "),
                    who.join(", "),
                    one.share_failing * 100.0,
                    one.outcome
                );
            }
            if !before.contains(&told) {
                let _ = write!(text, "{}, {}\n{told}", scenario.name, case.label);
                before.push(told);
            }
        }
    }
    insta::assert_snapshot!(text);
}
