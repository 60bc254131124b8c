//! Formats a scan for `scan -o sarif`, so that a pull request shows findings on the lines of the
//! manifests.
//!
//! The format is version 2.1.0. Known and ignored findings are included, suppressed with their
//! reason.

mod worse;

use uturn_diagnose::{Code, Observation, Severity};
use uturn_model::Origin;

use crate::baseline::fingerprints;
use crate::scan::{self, ScanReport};
use crate::schema::sarif::{
    ArtifactLocation, Driver, Finding, FindingProperties, Fingerprints, Help, Invocation, Location,
    Log, LogicalLocation, Message, Notification, PhysicalLocation, Region, RelatedLocation, Rule,
    RuleProperties, Run, Suppression, Tool,
};
use uturn_diagnose::analysis;

pub use worse::whatif;

const SCHEMA: &str =
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json";

/// Returns the whole document.
pub fn scan(report: &ScanReport) -> String {
    let findings = || report.findings.iter().chain(report.aside.iter().map(|aside| &aside.finding));
    let mut codes: Vec<Code> = findings().map(|finding| finding.code).collect();
    codes.sort_unstable();
    codes.dedup();
    let prints = fingerprints(findings());
    let counted = report.findings.iter().enumerate().map(|(at, finding)| Placed {
        finding,
        origin: report.origins.get(at),
        evidence: report.evidence.get(at).map_or(&[][..], Vec::as_slice),
        aside: None,
    });
    let aside = report.aside.iter().map(|aside| Placed {
        finding: &aside.finding,
        origin: Some(&aside.origin),
        evidence: &[],
        aside: Some(&aside.why),
    });
    let results = counted.chain(aside).zip(&prints);
    let results = results.map(|(placed, print)| result(&placed, print, &codes)).collect();
    let rules = codes.iter().map(|code| rule(*code)).collect();
    let supposed = report.supposed.iter().map(|assumption| format!("supposed: {assumption}"));
    document(rules, results, supposed)
}

/// Returns the document of a run with these rules, results and notes.
fn document<'a>(
    rules: Vec<Rule<'a>>,
    results: Vec<Finding<'a>>,
    notes: impl Iterator<Item = String>,
) -> String {
    let notes = notes.map(|text| Notification { level: "note", message: Message { text } });
    let run = Run {
        tool: Tool {
            driver: Driver { name: "uturn", semantic_version: env!("CARGO_PKG_VERSION"), rules },
        },
        column_kind: "unicodeCodePoints",
        invocations: [Invocation {
            execution_successful: true,
            tool_execution_notifications: notes.collect(),
        }],
        results,
    };
    crate::json::document(&Log { schema: SCHEMA, version: "2.1.0", runs: [run] })
}

fn level(severity: Severity) -> &'static str {
    match severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Info => "note",
    }
}

/// A finding with the places where it is shown.
struct Placed<'a> {
    finding: &'a uturn_diagnose::Finding,
    /// The origin of its object.
    origin: Option<&'a Origin>,
    evidence: &'a [Observation],
    /// The reason why it does not count; `None` if it counts.
    aside: Option<&'a analysis::Suppression>,
}

fn rule(code: Code) -> Rule<'static> {
    let page = code.page();
    let heading = page.lines().next().unwrap_or_default();
    let about = heading.trim_start_matches('#').trim().trim_start_matches(&code.to_string());
    let meaning = page.split("\n## What it means\n").nth(1).unwrap_or_default();
    let meaning = meaning.trim_start().split("\n\n").next().unwrap_or_default();
    let name: String = code
        .title()
        .split(|c: char| !c.is_ascii_alphanumeric())
        .filter_map(|word| {
            let (first, rest) = word.split_at_checked(1)?;
            Some(format!("{}{rest}", first.to_ascii_uppercase()))
        })
        .collect();
    Rule {
        id: code.to_string(),
        name,
        short_description: Message { text: about.trim().to_owned() },
        full_description: Message {
            text: meaning.split_whitespace().collect::<Vec<_>>().join(" "),
        },
        help: Help { text: page, markdown: page },
        properties: RuleProperties { tags: ["kubernetes", "network"] },
    }
}

fn result<'a>(placed: &Placed<'a>, print: &'a str, codes: &[Code]) -> Finding<'a> {
    let finding = placed.finding;
    Finding {
        rule_id: finding.code.to_string(),
        rule_index: codes.binary_search(&finding.code).unwrap_or_default(),
        level: level(finding.severity),
        message: Message { text: message(finding) },
        locations: [location(placed)],
        partial_fingerprints: Fingerprints { own: print, primary: print },
        properties: FindingProperties {
            share_failing: finding.share_failing.get(),
            clients: finding.clients.len(),
        },
        related_locations: placed.evidence.iter().filter_map(related).collect(),
        baseline_state: match placed.aside {
            Some(analysis::Suppression::Known { .. }) => Some("unchanged"),
            Some(analysis::Suppression::Ignored { .. }) | None => None,
        },
        suppressions: placed.aside.map(|why| [suppression(why)]),
    }
}

fn suppression(why: &analysis::Suppression) -> Suppression {
    match why {
        analysis::Suppression::Ignored { reason } => {
            Suppression { kind: "inSource", justification: reason.to_string() }
        }
        analysis::Suppression::Known { baseline } => {
            Suppression { kind: "external", justification: format!("known in {baseline}") }
        }
    }
}

fn message(finding: &uturn_diagnose::Finding) -> String {
    let mut text = scan::sentence(finding);
    for (at, cure) in finding.cures.iter().enumerate() {
        text.push_str(if at == 0 { " Cures: " } else { "; " });
        text.push_str(cure);
    }
    if !finding.cures.is_empty() {
        text.push('.');
    }
    if let Some(untried) = &finding.untried {
        text.push_str(if finding.cures.is_empty() { " Cures " } else { " Others " });
        text.push_str(&untried.in_a_line());
        text.push('.');
    }
    text
}

/// Returns the origin of the object, else the first line of a file that is evidence for the
/// finding.
fn location<'a>(placed: &Placed<'a>) -> Location<'a> {
    let from_evidence =
        || placed.evidence.iter().find_map(|evidence| physical(&evidence.by.origin()));
    let subject = &placed.finding.subject;
    Location {
        physical_location: placed.origin.and_then(physical).or_else(from_evidence),
        logical_locations: [LogicalLocation {
            kind: "resource",
            name: &subject.name,
            fully_qualified_name: subject.short(),
        }],
    }
}

fn related(evidence: &Observation) -> Option<RelatedLocation> {
    let place = physical(&evidence.by.origin())?;
    let text = match &evidence.place {
        None => evidence.what.to_string(),
        Some(place) => format!("{place}: {}", evidence.what),
    };
    Some(RelatedLocation { physical_location: place, message: Message { text } })
}

/// Returns a place in a file that a person wrote. Returns `None` for standard input and for rules
/// that uturn compiled: neither can be opened.
fn physical(origin: &Origin) -> Option<PhysicalLocation> {
    let (path, line, column) = match origin {
        Origin::File { path, line, column } => (path, *line, *column),
        Origin::Embedded { field, .. } => return physical(field),
        Origin::Generated { .. }
        | Origin::Supposed { .. }
        | Origin::Live { .. }
        | Origin::Kernel
        | Origin::Derived(_) => return None,
    };
    if line == 0 || &**path == "-" {
        return None;
    }
    let artifact_location = if path.starts_with('/') {
        let uri = format!("file://{}", encoded(path));
        ArtifactLocation { uri, uri_base_id: None }
    } else {
        let uri = encoded(path.trim_start_matches("./"));
        ArtifactLocation { uri, uri_base_id: Some("%SRCROOT%") }
    };
    let start_column = (column > 0).then_some(column);
    let region = Region { start_line: line, start_column };
    Some(PhysicalLocation { artifact_location, region })
}

/// Encodes a path as part of a URI.
fn encoded(path: &str) -> String {
    let mut uri = String::with_capacity(path.len());
    for byte in path.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'.' | b'-' | b'_' | b'~' => {
                uri.push(char::from(byte));
            }
            other => uri.push_str(&format!("%{other:02X}")),
        }
    }
    uri
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use std::sync::Arc;

    use uturn_model::{Name, RulesPart, SourceName};

    use super::*;
    use crate::sample;

    #[test]
    fn places_are_uris() {
        let uri = |file: &str| {
            let place = physical(&Origin::at(file, 2, 0))?;
            Some(place.artifact_location.uri)
        };
        assert_eq!(uri("./a b/ä.yaml").as_deref(), Some("a%20b/%C3%A4.yaml"));
        assert_eq!(uri("/x/y.yaml").as_deref(), Some("file:///x/y.yaml"));
        assert_eq!(uri("-"), None);
        assert_eq!(uri("rules/n1").as_deref(), Some("rules/n1"));
        let node = Name::new("n1").unwrap();
        let generated = SourceName::Generated(node, RulesPart::Iptables);
        assert_eq!(physical(&Origin::at(generated, 2, 0)), None);
        let field = Origin::at("facts.yaml", 7, 5);
        let embedded = Origin::at(SourceName::Embedded(Arc::new(field.clone())), 2, 0);
        assert_eq!(physical(&embedded), physical(&field));
    }

    #[test]
    fn what_is_set_aside_is_suppressed_with_its_reason() {
        let value: Value = serde_json::from_str(&scan(&sample::report("x"))).unwrap();
        let results = value["runs"][0]["results"].as_array().unwrap();
        assert_eq!(results.len(), 3);
        assert!(results[0]["suppressions"].is_null());
        assert_eq!(results[0]["locations"][0]["physicalLocation"]["region"]["startLine"], 7);
        assert_eq!(results[1]["suppressions"][0]["kind"], "inSource");
        assert_eq!(results[1]["suppressions"][0]["justification"], "x");
        assert_eq!(results[2]["suppressions"][0]["kind"], "external");
    }
}
