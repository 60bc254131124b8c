//! `scan -o sarif`: findings where a pull request shows them, on the lines of the manifests.
//!
//! Version 2.1.0. What is known or ignored is there as well, suppressed with its reason.

use serde_json::{Map, Value, json};
use uturn_diagnose::{Code, Finding, Observation, Severity};
use uturn_model::Origin;

use crate::baseline::fingerprints;
use crate::scan::{self, ScanReport, Why};

const SCHEMA: &str =
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json";

/// The whole document.
pub fn scan(report: &ScanReport) -> Value {
    let all = || report.findings.iter().chain(report.aside.iter().map(|one| &one.finding));
    let mut codes: Vec<Code> = all().map(|one| one.code).collect();
    codes.sort_unstable();
    codes.dedup();
    let prints = fingerprints(all());
    let place = |at: usize| report.origins.get(at);
    let evidence = |at: usize| report.evidence.get(at).map_or(&[][..], Vec::as_slice);
    let found = report.findings.iter().enumerate().map(|(at, one)| Told {
        finding: one,
        origin: place(at),
        evidence: evidence(at),
        why: None,
    });
    let aside = report.aside.iter().map(|one| Told {
        finding: &one.finding,
        origin: Some(&one.origin),
        evidence: &[],
        why: Some(&one.why),
    });
    let results: Vec<Value> =
        found.chain(aside).zip(&prints).map(|(told, print)| result(&told, print, &codes)).collect();
    let notes: Vec<Value> = report
        .supposed
        .iter()
        .map(|one| json!({"level": "note", "message": {"text": format!("supposed: {one}")}}))
        .collect();
    json!({
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [{
            "tool": {"driver": {
                "name": "uturn",
                "semanticVersion": env!("CARGO_PKG_VERSION"),
                "rules": codes.iter().map(|code| rule(*code)).collect::<Vec<_>>(),
            }},
            "columnKind": "unicodeCodePoints",
            "invocations": [{
                "executionSuccessful": true,
                "toolExecutionNotifications": notes,
            }],
            "results": results,
        }],
    })
}

/// What is told of one finding.
struct Told<'a> {
    finding: &'a Finding,
    origin: Option<&'a Origin>,
    evidence: &'a [Observation],
    why: Option<&'a Why>,
}

fn rule(code: Code) -> Value {
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
    json!({
        "id": code.to_string(),
        "name": name,
        "shortDescription": {"text": about.trim()},
        "fullDescription": {"text": meaning.split_whitespace().collect::<Vec<_>>().join(" ")},
        "help": {"text": page, "markdown": page},
        "properties": {"tags": ["kubernetes", "network"]},
    })
}

fn result(told: &Told<'_>, print: &str, codes: &[Code]) -> Value {
    let finding = told.finding;
    let index = codes.binary_search(&finding.code).unwrap_or_default();
    let mut value = json!({
        "ruleId": finding.code.to_string(),
        "ruleIndex": index,
        "level": match finding.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
            Severity::Info => "note",
        },
        "message": {"text": message(finding)},
        "locations": [location(told)],
        "partialFingerprints": {"uturn/v1": print, "primaryLocationLineHash": print},
        "properties": {"shareFailing": finding.share_failing.get(), "clients": finding.clients.len()},
    });
    let related: Vec<Value> = told.evidence.iter().filter_map(related).collect();
    if !related.is_empty() {
        crate::json::extend(&mut value, json!({ "relatedLocations": related }));
    }
    let suppressed = match told.why {
        None => return value,
        Some(Why::Ignored { reason }) => json!({"kind": "inSource", "justification": &**reason}),
        Some(Why::Known { baseline }) => {
            crate::json::extend(&mut value, json!({ "baselineState": "unchanged" }));
            json!({"kind": "external", "justification": format!("known in {baseline}")})
        }
    };
    crate::json::extend(&mut value, json!({ "suppressions": [suppressed] }));
    value
}

fn message(finding: &Finding) -> String {
    let mut text = scan::sentence(finding);
    for (at, cure) in finding.cures.iter().enumerate() {
        text.push_str(if at == 0 { " Cures: " } else { "; " });
        text.push_str(cure);
    }
    if !finding.cures.is_empty() {
        text.push('.');
    }
    text
}

/// Where it is written: the object itself, else the first line of a file that it rests on.
fn location(told: &Told<'_>) -> Value {
    let from_evidence = || told.evidence.iter().find_map(|one| physical(&one.by.origin()));
    let subject = &told.finding.subject;
    let mut place = Map::new();
    if let Some(physical) = told.origin.and_then(physical).or_else(from_evidence) {
        place.insert("physicalLocation".into(), physical);
    }
    let mut logical = json!({"kind": "resource", "name": &*subject.name});
    crate::json::extend(&mut logical, json!({"fullyQualifiedName": told.finding.subject.short()}));
    place.insert("logicalLocations".into(), json!([logical]));
    Value::Object(place)
}

fn related(evidence: &Observation) -> Option<Value> {
    let place = physical(&evidence.by.origin())?;
    let what = match &evidence.place {
        None => evidence.what.to_string(),
        Some(place) => format!("{place}: {}", evidence.what),
    };
    Some(json!({"physicalLocation": place, "message": {"text": what}}))
}

/// A place in a file.
///
/// Returns `None` if it is not in a file that can be opened.
fn physical(origin: &Origin) -> Option<Value> {
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
    let mut region = json!({ "startLine": line });
    if column > 0 {
        crate::json::extend(&mut region, json!({ "startColumn": column }));
    }
    let artifact = match path.starts_with('/') {
        true => json!({"uri": format!("file://{}", encoded(path))}),
        false => {
            let file = path.trim_start_matches("./");
            json!({"uri": encoded(file), "uriBaseId": "%SRCROOT%"})
        }
    };
    Some(json!({"artifactLocation": artifact, "region": region}))
}

/// A path as part of a URI.
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
    use std::sync::Arc;

    use uturn_model::{Name, RulesPart, SourceName};

    use super::*;
    use crate::sample;

    #[test]
    fn places_are_uris() {
        let uri = |file: &str| {
            let place = physical(&Origin::at(file, 2, 0))?;
            Some(place["artifactLocation"]["uri"].as_str().unwrap().to_owned())
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
        let value = scan(&sample::report("x"));
        let results = value["runs"][0]["results"].as_array().unwrap();
        assert_eq!(results.len(), 3);
        assert!(results[0]["suppressions"].is_null());
        assert_eq!(results[0]["locations"][0]["physicalLocation"]["region"]["startLine"], 7);
        assert_eq!(results[1]["suppressions"][0]["kind"], "inSource");
        assert_eq!(results[1]["suppressions"][0]["justification"], "x");
        assert_eq!(results[2]["suppressions"][0]["kind"], "external");
    }
}
