//! Tests that every form of a scan marks untried cures as such.

use std::collections::BTreeMap;

use uturn_diagnose::analysis::InFull;
use uturn_diagnose::{Cure, CureTitle, Example, Finding, Untried, WhyUntried};

use crate::sample::{self, flow};
use crate::scan::{Listing, text};
use crate::schema::scan::Scan;
use crate::style::Style;
use crate::{ScanReport, html, junit, sarif};

const POLICY: &str = "externalTrafficPolicy Cluster";

/// Makes findings with a common cause and no cure that works.
fn findings(count: usize, untried: &Option<Untried>) -> Vec<Finding> {
    let finding = |at| Finding {
        example: Example::Flow(flow()),
        cures: Vec::new(),
        untried: untried.clone(),
        ..sample::finding(&format!("front-{at}"), &[":80"])
    };
    (0..count).map(finding).collect()
}

/// Returns the report in all its forms, each with its name.
fn forms(findings: Vec<Finding>) -> Vec<(&'static str, String)> {
    let report = ScanReport::new(findings);
    let wide = Style { wide: true, ..Style::PLAIN };
    vec![
        ("text", text(&report, Listing::Short, Style::PLAIN)),
        ("every line", text(&report, Listing::Every, Style::PLAIN)),
        ("wide", text(&report, Listing::Short, wide)),
        ("json", serde_json::to_string(&Scan::from(&report)).unwrap()),
        ("html", html::scan(&report, &BTreeMap::new())),
        ("sarif", sarif::scan(&report)),
        ("junit", junit::scan(&report)),
    ]
}

#[test]
fn a_finding_without_trials_says_so() {
    for count in [1, 2, 30] {
        for why in [
            WhyUntried::Work,
            WhyUntried::ManyFindings,
            WhyUntried::LongManifests,
            WhyUntried::OneWorks,
            WhyUntried::OtherReading,
        ] {
            let untried = Some(Untried { cures: Vec::new(), why });
            for (form, said) in forms(findings(count, &untried)) {
                assert!(!said.contains("none known"), "{form}: {said}");
                let says = match form {
                    "json" => format!("\"untried\":{{\"cures\":[],\"why\":\"{why}\"}}"),
                    _ => "not tried".to_owned(),
                };
                assert!(said.contains(&says), "{form}: {said}");
            }
        }
    }
}

#[test]
fn cures_that_were_not_tried_are_named() {
    let left = CureTitle { name: "policy-cluster", text: POLICY.to_owned() };
    let untried = Some(Untried { cures: vec![left], why: WhyUntried::Work });
    for (form, said) in forms(findings(2, &untried)) {
        let says = match form {
            "text" | "every line" | "html" => "not all were tried",
            _ => POLICY,
        };
        assert!(said.contains(says) && !said.contains("none known"), "{form}: {said}");
    }
}

/// If everything was tried without success, no form says that something was untried.
#[test]
fn none_is_known_where_all_were_tried() {
    for (form, said) in forms(findings(30, &None)) {
        let said = said.replace("\"untried\":null", "");
        assert!(!said.contains("tried"), "{form}: {said}");
        assert_eq!(said.contains("none known"), ["text", "html"].contains(&form), "{form}: {said}");
    }
}

/// The worst finding of a cause has a cure; for the others none was tried.
#[test]
fn a_cure_of_the_worst_is_none_of_all() {
    let untried = Some(Untried { cures: Vec::new(), why: WhyUntried::ManyFindings });
    let mut all = findings(30, &untried);
    all[0].cures = vec![CureTitle { name: "policy-cluster", text: POLICY.to_owned() }];
    all[0].untried = None;
    for (form, said) in forms(all) {
        assert!(said.contains(POLICY) && !said.contains("none known"), "{form}: {said}");
    }
}

/// A page lists the cures of a finding that were not tried apart from those that do not work.
#[test]
fn a_page_lists_untried_cures_apart() {
    let why = "the trials before it took all that trials may";
    let untried = Cure {
        title: POLICY.to_owned(),
        after: None,
        unhelped: Vec::new(),
        refused: Some(format!("not tried: {why}")),
        is_untried: true,
        ..sample::cure("x")
    };
    let page = |cures: Vec<Cure>| {
        let report = ScanReport::new(findings(1, &None));
        let details = InFull { cures, ..InFull::default() };
        html::scan(&report, &BTreeMap::from([(0, details)]))
    };
    let listed = format!("<li>{POLICY}: <span class=\"dim\">{why}</span></li>");
    let alone = page(vec![untried.clone()]);
    assert!(alone.contains("No cure that was tried works here"), "{alone}");
    assert!(alone.contains("<h4>Not tried</h4>") && alone.contains(&listed), "{alone}");
    assert!(!alone.contains("<h4>Not here</h4>"), "{alone}");
    let both = page(vec![sample::refused_cure("no better"), untried]);
    let (refused, rest) = both.split_once("<h4>Not tried</h4>").unwrap();
    assert!(refused.contains("<h4>Not here</h4>") && rest.contains(&listed), "{both}");
}
