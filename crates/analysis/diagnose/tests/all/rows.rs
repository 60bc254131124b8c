//! Every row of the design, which is a scenario each: whatever is wrong there has a finding,
//! and a cure after which it is better; or it is said why there is none.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on panics")]

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use crate::tried::{self, Failing};

/// What has no cure, and why.
const WITHOUT: &[(&str, &str)] = &[
    ("unserved-port: outside → 10.0.0.240:443", "the Service does not list the port"),
    ("external-ip-of-node: outside → 10.0.0.12:80", "the cure is that of UT210, another address"),
    ("node-ports-local: node/n1 → 10.1.1.1:30080", "node ports are at the node's own addresses"),
    ("mixed-rules: outside → http://shop.example.com:8080/sealed", MIXED),
    ("mixed-rules: outside → http://shop.example.com:8080/unnamed", MIXED),
    ("mixed-rules: outside → https://shop.example.com:8443/clear", MIXED),
    (
        "mixed-rules: outside → https://shop.example.com/sealed",
        "the Ingress names the ports that it listens on, and 443 is none of them",
    ),
    (
        "anti-affinity-local-all-nodes: probes of 10.0.0.100:80",
        "where probes pass, only the node of the client's own pod counts as alive, and that one \
         loops always: the flow's cures are the probes' too",
    ),
    (
        "refusal-lost: pod/shop/client-1 → 10.0.0.101:81",
        "no Service offers port 81: a refusal that arrives is no answer either",
    ),
    (
        "refusal-lost: pod/shop/client-1 → 10.0.0.12:30080",
        "no pod is there that the Service could select: a refusal that arrives is no answer either",
    ),
    (
        "refusal-own-address: node/n3 → 203.0.113.100:80",
        "the Service has no endpoint: a refusal that arrives is no answer either",
    ),
    (
        "refusal-stopped: pod/shop/client → 10.0.0.12:9001",
        "the node's own rules refuse the port: a refusal that arrives is no answer either",
    ),
    (
        "refusal-stopped: pod/shop/client → 10.0.0.12:9002",
        "nobody listens on the port: a refusal that arrives is no answer either",
    ),
    (
        "refusal-stopped: pod/shop/client → 10.0.0.13:9001",
        "the node's own rules refuse the port: a refusal that arrives is no answer either",
    ),
    (
        "refusal-stopped: pod/shop/client → 10.0.0.14:9001",
        "the node's own rules refuse the port: a refusal that arrives is no answer either",
    ),
    (
        "refusal-stopped: pod/shop/client → 10.0.0.14:9002",
        "nobody listens on the port: a refusal that arrives is no answer either",
    ),
    ("refused-hairpin: node/n1 → http://10.0.0.100/", NO_POD),
    ("refused-hairpin: pod/shop/client-1 → http://10.0.0.100/", NO_POD),
    ("refused-hairpin: pod/shop/client-2 → http://10.0.0.100/", NO_POD),
    ("routed-veth-local: outside → 10.0.0.11:30080", LOCAL),
    ("vip-kept-direct: node/n1 → http://10.0.0.101/", NO_RULE),
    ("vip-kept-direct: pod/shop/client-1 → http://10.0.0.101/", NO_RULE),
    ("vip-on-lo: node/n1 → 10.0.0.240:6443", HELD),
    ("vip-on-lo: pod/shop/client-1 → 10.0.0.240:6443", HELD),
];

const MIXED: &str = "the Ingress says in so many words on which of its ports the path stands";
const LOCAL: &str = "policy Local is meant to drop what comes to a node without a pod";
const NO_RULE: &str = "kube-proxy of the node has to make the rule that is missing";
const HELD: &str = "the node answers for the address itself, and the program has to run there";
const NO_POD: &str = "no pod is there that the Service could select";

#[test]
fn every_row_has_its_finding_and_its_cure() {
    let (mut text, mut missing) = (String::new(), Vec::new());
    let mut used = BTreeSet::new();
    for scenario in tried::all() {
        let mut codes: BTreeSet<String> = BTreeSet::new();
        // What fails in several cases is told of the largest.
        let mut all: BTreeMap<&str, &Failing> = BTreeMap::new();
        for case in &scenario.cases {
            codes.extend(case.codes.iter().map(ToString::to_string));
            all.extend(case.failing.iter().map(|failing| (&*failing.what, failing)));
        }
        let codes: Vec<&str> = codes.iter().map(String::as_str).collect();
        let found = if codes.is_empty() { "nothing".to_owned() } else { codes.join(", ") };
        let _ = writeln!(text, "{}: a scan finds {found}", scenario.name);
        let mut seen: BTreeSet<String> = BTreeSet::new();
        for wrong in all.values() {
            assert!(!wrong.codes.is_empty(), "{}: {} has no finding", scenario.name, wrong.what);
            let key = format!("{}: {}", scenario.name, wrong.what);
            let cure = match first_cure(wrong) {
                Some((name, after)) => format!("{name}: {} ⇒ {after}", wrong.before),
                None => match WITHOUT.iter().find(|(row, _)| *row == key) {
                    Some((row, why)) => {
                        used.insert(*row);
                        format!("no cure: {}; {why}", wrong.before)
                    }
                    None => {
                        missing.push(key.clone());
                        continue;
                    }
                },
            };
            let codes: Vec<String> = wrong.codes.iter().map(ToString::to_string).collect();
            // What several clients have in common is said of the first.
            let line = format!("{} | {cure}", codes.join(" "));
            if seen.insert(line.clone()) {
                let _ = writeln!(text, "  {} | {line}", wrong.what);
            }
        }
    }
    assert!(missing.is_empty(), "no cure, and no reason:\n{}", missing.join("\n"));
    let unused: Vec<&str> =
        WITHOUT.iter().map(|entry| entry.0).filter(|row| !used.contains(row)).collect();
    assert!(unused.is_empty(), "has a cure, or is gone: {unused:?}");
    insta::assert_snapshot!(text);
}

/// Returns the name of the first cure that is offered, and the state after it.
fn first_cure(failing: &Failing) -> Option<(&'static str, &str)> {
    let cure = failing.cures.iter().find(|cure| cure.refused.is_none())?;
    assert!(cure.is_better, "{}: {}", failing.what, cure.title);
    Some((cure.name, cure.after.as_ref().unwrap()))
}
