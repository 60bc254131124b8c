//! Long lists of findings, grouped by cause.

use insta::assert_snapshot;
use serde_json::Value;

use super::common::run;
use super::conforms::assert_conforms;
use super::shop::shop_with;

/// The Ingresses lead to the shop's two Services in turn.
fn in_turn(at: usize) -> &'static str {
    if at.is_multiple_of(2) { "front" } else { "api" }
}

#[test]
fn a_long_list_is_grouped_by_cause() {
    let folder = shop_with("groups-long", 24, in_turn);
    assert_snapshot!(folder.run(&["scan", "-q", "-f", "."]));
}

#[test]
fn every_finding_is_listed_if_asked_for() {
    let folder = shop_with("groups-all", 24, in_turn);
    let all = folder.run(&["scan", "-q", "-f", ".", "--all"]);
    assert!(all.starts_with("exit 1\n--- stdout\nSEVERITY "), "{all}");
    let wide = folder.run(&["scan", "-q", "-f", ".", "-o", "wide"]);
    assert!(wide.starts_with("exit 1\n--- stdout\nSEVERITY "), "{wide}");
    for at in 1..=24 {
        assert!(all.contains(&format!(" ingress/shop/more-{at} ")), "{at}: {all}");
        assert!(wide.contains(&format!("UT101 ingress/shop/more-{at} ")), "{at}: {wide}");
    }
    // Groups change nothing below the list.
    let grouped = folder.run(&["scan", "-q", "-f", "."]);
    let below = |text: &str| text.split_once(" calls fine").unwrap().1.to_owned();
    assert_eq!(below(&grouped), below(&all));
}

#[test]
fn a_short_list_is_the_same_either_way() {
    let short = run(&["scan", "-f", "examples/shop"]);
    assert_eq!(short, run(&["scan", "-f", "examples/shop", "--all"]));
    assert!(short.starts_with("exit 1\n--- stdout\nSEVERITY "), "{short}");
}

#[test]
fn json_has_the_groups() {
    let folder = shop_with("groups-json", 24, in_turn);
    let printed = folder.run(&["scan", "-q", "-f", ".", "-o", "json"]);
    let scan: Value = serde_json::from_str(printed.split_once("--- stdout\n").unwrap().1).unwrap();
    assert_conforms("scan", &scan);
    let findings = scan["findings"].as_array().unwrap();
    let groups = scan["groups"].as_array().unwrap();
    assert!(groups.len() * 4 < findings.len(), "{groups:#?}");
    // Each finding is in one group, that of its cause.
    let mut grouped: Vec<u64> = Vec::new();
    for group in groups {
        let members = group["findings"].as_array().unwrap();
        for member in members.iter().map(|member| member.as_u64().unwrap()) {
            let finding = &findings[member as usize];
            for field in ["code", "mechanism"] {
                assert_eq!(finding[field], group[field], "{finding:#}");
            }
            assert_eq!(finding["subject"]["kind"], group["kind"]);
            grouped.push(member);
        }
        assert_eq!(findings[members[0].as_u64().unwrap() as usize]["severity"], group["severity"]);
        assert!(group["objects"].as_u64().unwrap() <= members.len() as u64);
        assert!(group["targets"].as_u64().unwrap() >= group["objects"].as_u64().unwrap());
    }
    grouped.sort_unstable();
    assert_eq!(grouped, (0..findings.len() as u64).collect::<Vec<_>>());
    // The text of the same scan begins with the same group.
    let loops = &groups[0];
    assert_eq!(
        (&loops["code"], &loops["mechanism"]),
        (&"UT101".into(), &"asymmetric-return".into())
    );
    let text = folder.run(&["scan", "-q", "-f", "."]);
    let cure = loops["cure"]["text"].as_str().unwrap();
    assert_eq!(loops["cure"]["scope"], "each");
    assert!(text.contains(&format!("one each; for the worst: {cure}")), "{cure}\n{text}");
}
