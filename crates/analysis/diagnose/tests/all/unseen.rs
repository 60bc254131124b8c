//! Where a bridge shows its frames to no rule: what a capture says of a node changes what is found.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on panics")]

use uturn_diagnose::diagnose;
use uturn_model::capture::CapturedText;
use uturn_model::{Capture, CaptureFile, Cluster};
use uturn_path::Engine;
use uturn_scan::Scanner;
use uturn_snapshot::Source;
use uturn_snapshot::scenario::read_all;

fn found(cluster: &Cluster) -> Vec<String> {
    let engine = Engine::new(cluster).unwrap();
    let scanner = Scanner::new(&engine);
    let found = diagnose(&scanner, &scanner.scan(&scanner.targets()).unwrap()).unwrap();
    found.iter().map(|finding| format!("{} {}", finding.code, finding.subject)).collect()
}

#[test]
fn answers_that_no_rule_sees_are_found_where_a_capture_says_so() {
    let text = include_str!("../../../../../scenarios/answers-unseen.yaml");
    let text = text.replace("    nodes: {n1: {bridgeRules: false}}\n", "");
    assert!(!text.contains("bridgeRules"));
    let scenario = read_all(vec![Source { name: "unsaid.yaml".into(), text }]).unwrap().remove(0);
    for case in &scenario.cases {
        let mut cluster = case.cluster.clone();
        let wrong = ["UT603 Service shop/api", "UT603 Service shop/web"];
        assert!(found(&cluster).is_empty(), "{}", case.label);
        for (value, expected) in [("1", &[][..]), ("0", &wrong)] {
            let text = format!("net.bridge.bridge-nf-call-iptables = {value}\n");
            let files = [(
                CaptureFile::Sysctls,
                CapturedText { path: "n1/sysctl".into(), text: text.into() },
            )];
            let node = cluster.nodes.keys().next().unwrap().clone();
            let capture = Capture { node: node.clone(), files: files.into() };
            cluster.captures.insert(node, capture);
            assert_eq!(found(&cluster), expected, "{}", case.label);
        }
    }
}
