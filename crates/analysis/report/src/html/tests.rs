//! Tests of pages with many findings: their size, and that omitted findings are counted.

use std::collections::BTreeMap;

use uturn_diagnose::{Example, Finding};
use uturn_model::{Client, Flow, Name};

use crate::sample::{self, flow, verdicts};
use crate::well_formed::well_formed;
use crate::{ScanReport, html, words};
use uturn_diagnose::analysis::InFull;

const MAX_BYTES: usize = 5_000_000;

/// Gives each finding a condition of its own, so that no two have the same cause.
fn set_apart(findings: &mut [Finding]) {
    for (index, finding) in findings.iter_mut().enumerate() {
        finding.example = Example::Flow(flow());
        finding.conditions = vec![format!("sysctl {index} is set").into()];
    }
}

fn details_of(index: usize) -> InFull {
    let from = Client::Node(Name::new(format!("n{index}")).unwrap());
    InFull { flow: Some(Flow { from, ..flow() }), verdicts: verdicts("x"), cures: Vec::new() }
}

/// The page of a large cluster stays small: a large group is cut, most pictures are left out.
#[test]
fn many_findings_have_room() {
    let hosts: Vec<String> = (0..10).map(|i| format!(":80 host-{i}.example.com/")).collect();
    let hosts: Vec<&str> = hosts.iter().map(String::as_str).collect();
    let mut findings: Vec<Finding> =
        (0..20_000).map(|i| sample::finding(&format!("front-{i}"), &hosts)).collect();
    set_apart(&mut findings[..200]);
    let report = ScanReport::new(findings);
    assert_eq!(report.groups.len(), 201);
    let worst = report.groups.iter().map(|group| group.worst());
    let mut details: BTreeMap<usize, InFull> =
        worst.clone().map(|index| (index, details_of(index))).collect();
    // The second finding has the flow of the first.
    let first_two: Vec<usize> = worst.take(2).collect();
    details.insert(first_two[1], details[&first_two[0]].clone());
    let page = html::scan(&report, &details);
    assert!(page.len() < MAX_BYTES, "{}", page.len());
    well_formed(&page).unwrap();
    let (drawn, groups) = (page.matches("<svg ").count(), page.matches("<article ").count());
    assert!(drawn > 20 && groups == 201, "{drawn} {groups}");
    let elsewhere = format!("route is drawn at <a href=\"#f{}\">UT101", first_two[0] + 1);
    assert_eq!(page.matches(&elsewhere).count(), 1);
    assert_eq!(page.matches("-o svg</code>").count(), groups - drawn - 1);
    assert_eq!(page.matches("<details open=\"open\">").count(), 1, "one picture is open");
    assert!(page.contains("<summary>The other 19\u{202f}799 findings</summary>"));
    let rows = page.matches("<li><div class=\"row\">").count();
    assert!(rows > 10_000, "{rows}");
    let left = format!("<p class=\"omitted\">and {} more", 19_799 - rows);
    assert!(page.contains(&left), "{left}");
}

/// More causes than there is room for are counted.
#[test]
fn causes_without_room_are_counted() {
    let mut findings: Vec<Finding> =
        (0..5000).map(|i| sample::finding(&format!("front-{i}"), &[":80"])).collect();
    set_apart(&mut findings);
    let page = html::scan(&ScanReport::new(findings), &BTreeMap::new());
    assert!(page.len() < MAX_BYTES, "{}", page.len());
    let shown = page.matches("<article ").count();
    assert!((1000..5000).contains(&shown), "{shown}");
    assert_eq!(page.matches("<a href=\"#g").count(), shown, "each has a row in the table");
    let left = format!("{} more are left out", words::count(5000 - shown, "finding"));
    assert!(page.contains(&left), "{left}");
}

/// Each of a few findings is shown in full; those after the worst of a cause are folded.
#[test]
fn few_findings_are_shown_in_full() {
    let mut findings: Vec<Finding> =
        (0..3).map(|i| sample::finding(&format!("front-{i}"), &[":80"])).collect();
    for finding in &mut findings {
        finding.example = Example::Flow(flow());
    }
    let report = ScanReport::new(findings);
    let page = html::scan(&report, &(0..3).map(|index| (index, details_of(index))).collect());
    well_formed(&page).unwrap();
    assert_eq!(page.matches("<article ").count(), 1);
    assert_eq!(page.matches("<svg ").count(), 3);
    assert!(page.contains("<summary>The other 2 findings</summary>"));
    let (worst, others) = page.split_once("class=\"others\"").unwrap();
    assert_eq!((worst.matches("<svg ").count(), others.matches("<svg ").count()), (1, 2));
}

#[test]
fn nothing_found_is_a_page() {
    let page = html::scan(&ScanReport::new(Vec::new()), &BTreeMap::new());
    well_formed(&page).unwrap();
    assert!(page.contains("<p class=\"good\">Nothing found.</p>"));
    assert!(!page.contains("<article ") && !page.contains("<form "));
}
