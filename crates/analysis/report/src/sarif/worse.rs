//! A comparison as SARIF: what gets worse, on the lines of the manifests after the change.

use std::collections::BTreeMap;

use sha2::{Digest, Sha256};
use uturn_diagnose::{Code, Severity};
use uturn_whatif::Entry;

use super::{document, level, physical, rule};
use crate::schema::sarif::{
    Finding, FindingProperties, Fingerprints, Help, Location, LogicalLocation, Message,
    RelatedLocation, Rule, RuleProperties,
};
use crate::whatif::{WhatIfReport, called, clients, condition, cure, ending, verb};

/// The rule of calls that get worse without a finding about them.
const WORSE: &str = "calls-get-worse";

/// Returns the whole document.
pub fn whatif(report: &WhatIfReport) -> String {
    let comparison = &report.comparison;
    let code = |entry: &Entry| entry.subjected.as_ref().map(|said| said.code);
    let mut codes: Vec<Code> = comparison.worse.iter().filter_map(code).collect();
    codes.sort_unstable();
    codes.dedup();
    let mut rules: Vec<Rule<'_>> = codes.iter().map(|code| rule(*code)).collect();
    if comparison.worse.iter().any(|entry| code(entry).is_none()) {
        rules.push(rule_of_worse());
    }
    let prints = fingerprints(&comparison.worse);
    let results = comparison.worse.iter().zip(&prints).map(|(entry, print)| {
        let index = code(entry).and_then(|code| codes.binary_search(&code).ok());
        result(entry, print, index.unwrap_or(codes.len()))
    });
    let supposed = comparison.supposed.iter().map(|assumption| format!("supposed: {assumption}"));
    let notes = supposed.chain(comparison.notes.iter().cloned());
    document(rules, results.collect(), notes)
}

fn rule_of_worse() -> Rule<'static> {
    let text = "Calls that were answered before a change are not answered after it, or later.";
    Rule {
        id: WORSE.to_owned(),
        name: "CallsGetWorse".to_owned(),
        short_description: Message { text: "calls get worse".to_owned() },
        full_description: Message { text: text.to_owned() },
        help: Help { text, markdown: text },
        properties: RuleProperties { tags: ["kubernetes", "network"] },
    }
}

fn result<'a>(entry: &'a Entry, print: &'a str, rule_index: usize) -> Finding<'a> {
    let said = entry.subjected.as_ref();
    let evidence = said.map(|said| said.evidence.as_slice()).unwrap_or_default();
    let from_evidence = || evidence.iter().find_map(|own| physical(&own.by.origin()));
    Finding {
        rule_id: said.map_or_else(|| WORSE.to_owned(), |said| said.code.to_string()),
        rule_index,
        level: level(said.map_or(Severity::Error, |said| said.severity)),
        message: Message { text: message(entry) },
        locations: [Location {
            physical_location: entry.origin.as_ref().and_then(physical).or_else(from_evidence),
            logical_locations: [LogicalLocation {
                kind: "resource",
                name: &entry.subject.name,
                fully_qualified_name: entry.subject.short(),
            }],
        }],
        partial_fingerprints: Fingerprints { own: print, primary: print },
        properties: FindingProperties {
            share_failing: entry.after.share_failing().get(),
            clients: entry.who.len(),
        },
        related_locations: evidence
            .iter()
            .filter_map(|own| {
                let place = physical(&own.by.origin())?;
                let text = own.what.to_string();
                Some(RelatedLocation { physical_location: place, message: Message { text } })
            })
            .collect(),
        baseline_state: None,
        suppressions: None,
    }
}

fn message(entry: &Entry) -> String {
    let mut text = format!(
        "{}: {}{} for {}. Before: {}. After: {}.",
        called(entry),
        verb(entry),
        condition(entry),
        clients(&entry.who),
        ending(&entry.before),
        ending(&entry.after)
    );
    if let Some(why) = entry.subjected.as_ref().and_then(|said| said.because.as_deref()) {
        text.push_str(&format!(" Because: {why}."));
    }
    if let Some(cure) = cure(entry) {
        text.push_str(&format!(" Cure: {cure}."));
    }
    text
}

/// Returns the fingerprints of entries: the same entry has the same one in every run.
fn fingerprints(entries: &[Entry]) -> Vec<String> {
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    let print = |entry: &Entry| {
        let code = entry.subjected.as_ref().map(|said| said.code.to_string());
        let conditions: Vec<&str> = entry.conditions.iter().map(|own| &**own).collect();
        let what = (code, entry.effect, entry.subject.short(), &entry.targets, conditions);
        let what = serde_json::to_string(&what).expect("an identity has only text in it");
        let hash: String =
            Sha256::digest(what).iter().take(16).map(|byte| format!("{byte:02x}")).collect();
        let count = seen.entry(hash.clone()).or_default();
        *count += 1;
        format!("{hash}:{count}")
    };
    entries.iter().map(print).collect()
}
