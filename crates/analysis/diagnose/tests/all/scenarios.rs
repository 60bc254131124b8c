//! Every scenario of the tree: what is found in each flow that fails, which cures are offered,
//! and how the flow ends after each.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on panics")]

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use crate::common::{case_of, scenarios};
use crate::tried::{self, TriedCure};
use uturn_diagnose::{Severity, cases, check, diagnose};
use uturn_model::{Cluster, NamespacedName, ObjectKind, Pod};
use uturn_path::Engine;
use uturn_scan::Scanner;
use uturn_snapshot::{Manifests, Source};

#[test]
fn every_failing_flow_has_its_cures() {
    let mut text = String::new();
    for scenario in tried::all() {
        let mut before: Vec<String> = Vec::new();
        // The smallest and the largest say all that sizes say.
        let sizes: Vec<usize> = scenario.cases.iter().map(|case| case.nodes).collect();
        let kept = [sizes.iter().min().copied(), sizes.iter().max().copied()];
        for case in scenario.cases.iter().filter(|case| kept.contains(&Some(case.nodes))) {
            let (mut all, mut seen) = (String::new(), Vec::new());
            for failing in &case.failing {
                let state = &failing.before;
                let cures = cures(&failing.cures);
                if failing.is_probes {
                    all.push_str(&format!("  {}: {state}\n{cures}", failing.what));
                    continue;
                }
                let code = failing.codes.first();
                let code = code.unwrap_or_else(|| panic!("{}: {}", scenario.name, failing.what));
                let same = format!("{code} {state}\n{cures}");
                if !seen.contains(&same) {
                    all.push_str(&format!("  {}: {same}", failing.what));
                    seen.push(same);
                }
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

fn cures(all: &[TriedCure]) -> String {
    let mut text = String::new();
    for cure in all {
        let _ = match (&cure.refused, &cure.after) {
            (None, Some(after)) => {
                writeln!(text, "    + {}: {} ⇒ {after}", cure.name, cure.title)
            }
            (Some(why), _) => writeln!(text, "    - {}: {why}", cure.name),
            (None, None) => panic!("{} is offered and was not tried", cure.name),
        };
    }
    text
}

/// A trace of the call that shows a finding says the same as the scan.
#[test]
fn scan_and_trace_agree() {
    let mut text = String::new();
    for scenario in tried::all() {
        for case in &scenario.cases {
            for line in &case.disagreements {
                let _ = writeln!(text, "{}, {}: {line}", scenario.name, case.label);
            }
        }
    }
    assert!(text.is_empty(), "{text}");
}

/// What a scan says of each scenario, without being told where to look.
#[test]
fn every_scenario_is_diagnosed() {
    let mut text = String::new();
    for scenario in tried::all() {
        let mut before: Vec<&str> = Vec::new();
        for case in &scenario.cases {
            let Some(lines) = case.findings.as_deref() else { continue };
            if !before.contains(&lines) {
                let _ = write!(text, "{}, {}\n{lines}", scenario.name, case.label);
                before.push(lines);
            }
        }
    }
    insta::assert_snapshot!(text);
}

/// Clusters of which it is known that nothing loops: no false alarm. A server that calls its
/// own load balancer is told apart from its clients, and is no more than a warning.
#[test]
fn where_nothing_loops_nothing_is_found() {
    let calm = [
        "public",
        "l7-snat",
        "anti-affinity-local",
        "direct-pod-other-node",
        "l4-iptables",
        "l4-ipvs-unbound-cluster",
        "l4-prevent-loopback",
        "ipvs-hairpin",
        "ipvs-host",
        "vpc-cni-needs-no-pod-routes",
    ];
    let all = scenarios();
    let mut looked_at = 0;
    for name in calm {
        let (source, scenario) = all.iter().find(|(_, scenario)| *scenario.name == *name).unwrap();
        // With a single node, there is no other target to pick.
        for case in scenario.cases.iter().filter(|case| case.nodes > 1 || name == "ipvs-hairpin") {
            let manifests = case_of(source, scenario, case);
            let cluster = manifests.cluster().unwrap();
            let engine = Engine::new(&cluster).unwrap();
            let scanner = Scanner::new(&engine);
            let met = scanner.scan(&scanner.targets()).unwrap();
            for finding in diagnose(&scanner, &met).unwrap() {
                // That a node without an endpoint does not serve is what policy Local asks for.
                if finding.severity == Severity::Info {
                    continue;
                }
                assert_eq!(
                    finding.severity,
                    Severity::Warning,
                    "{name}, {}: {finding:?}",
                    case.label
                );
                let serves = |pod: &Pod| {
                    let mut slices = cluster.endpoints.values().flatten();
                    slices.any(|slice| {
                        slice.endpoints.iter().any(|end| end.pod.as_ref() == Some(&pod.name))
                    })
                };
                let servers = cluster.pods.values().filter(|pod| serves(pod)).count();
                assert!(
                    finding.clients.pod_count() <= servers,
                    "{name}, {}: {finding:?}",
                    case.label
                );
            }
            looked_at += 1;
        }
    }
    assert!(looked_at > 15, "{looked_at}");
}

/// What a load balancer does is known of one cloud: where nothing says which one it is, nothing
/// is found that rests on it.
#[test]
fn nothing_rests_on_a_cloud_that_nothing_names() {
    let text = "
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: web, ports: [{containerPort: 8080}]}]}
---
apiVersion: v1
kind: Service
metadata: {name: web, namespace: shop}
spec: {selector: {app: web}, ports: [{port: 80, targetPort: 8080}]}
---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: web, namespace: shop}
spec: {defaultBackend: {service: {name: web, port: {number: 80}}}}
";
    let severities = |more: &str| {
        let text = format!("{text}{more}");
        let source = Source { name: "a.yaml".into(), text };
        let cluster = Manifests::of(vec![source]).cluster().unwrap();
        let engine = Engine::new(&cluster).unwrap();
        let scanner = Scanner::new(&engine);
        let found = diagnose(&scanner, &scanner.scan(&scanner.targets()).unwrap()).unwrap();
        let findings = cases::together(&cluster, vec![found]).into_iter();
        findings
            .filter(|(_, finding)| finding.subject.kind == ObjectKind::Ingress)
            .map(|(_, finding)| finding.severity)
            .collect::<Vec<_>>()
    };
    assert_eq!(severities(""), []);
    let stated = "---\napiVersion: uturn.dev/v1alpha1\nkind: Facts\nspec: {provider: tke}\n";
    let stated = severities(stated);
    assert!(stated.contains(&Severity::Error), "{stated:?}");
}

/// If only a part of the cluster is given, a workload outside that part may make the pods of a
/// Service.
#[test]
fn pods_that_others_may_make_are_no_finding() {
    let text = "
apiVersion: apps/v1
kind: Deployment
metadata: {name: client, namespace: shop}
spec:
  selector: {matchLabels: {app: client}}
  template:
    metadata: {labels: {app: client}}
    spec: {containers: [{name: c, image: c}]}
---
apiVersion: v1
kind: Service
metadata: {name: db, namespace: shop}
spec: {selector: {database: db}, ports: [{port: 5432}], clusterIP: 172.16.0.9}
---
apiVersion: uturn.dev/v1alpha1
kind: Facts
spec: {kubeProxy: {mode: iptables, version: v1.34.4}}
";
    let read = |is_complete: bool| {
        let source = Source { name: "a.yaml".into(), text: text.into() };
        Manifests::of(vec![source]).complete_if(is_complete).cluster().unwrap()
    };
    let of_scan = |cluster: &Cluster| {
        let engine = Engine::new(cluster).unwrap();
        let scanner = Scanner::new(&engine);
        let found = diagnose(&scanner, &scanner.scan(&scanner.targets()).unwrap()).unwrap();
        let findings = cases::together(cluster, vec![found]).into_iter();
        findings
            .map(|(_, finding)| format!("{} {:?}", finding.code, finding.conditions))
            .collect::<Vec<_>>()
    };
    let of_check = |cluster: &Cluster| {
        let engine = Engine::new(cluster).unwrap();
        let name = NamespacedName::new("shop", "db").unwrap();
        let lists = check::check(&engine, check::Topic::Service, |object| *object == name);
        let failed = |check: &&check::Check| check.state == check::State::Failed;
        lists.iter().flat_map(|list| &list.checks).filter(failed).count()
    };
    let open = read(false);
    assert_eq!(of_scan(&open), [""; 0]);
    assert_eq!(of_check(&open), 0);
    let whole = read(true);
    assert_eq!(of_scan(&whole), ["UT311 []"]);
    assert_eq!(of_check(&whole), 2);
}

/// `docs/cures.md` has every cure that a scenario knows, and none that there is not.
#[test]
fn every_cure_is_on_its_page() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let read = |path: &Path| fs::read_to_string(path).unwrap();
    let page = read(&here.join("../../../docs/cures.md"));
    let shown: Vec<&str> =
        page.lines().filter_map(|line| line.strip_prefix("### `")?.strip_suffix('`')).collect();
    let tried = read(
        &here.join("tests/all/snapshots/all__scenarios__every_failing_flow_has_its_cures.snap"),
    );
    for line in tried.lines() {
        let Some(rest) = line.strip_prefix("    + ").or(line.strip_prefix("    - ")) else {
            continue;
        };
        let name = rest.split(':').next().unwrap();
        assert!(shown.contains(&name), "{name} is not on the page");
    }
    let code = code_below(&here.join("src/cure"));
    for name in &shown {
        assert!(code.contains(&format!("\"{name}\"")), "there is no cure {name}");
    }
    assert!(shown.len() > 20, "{shown:?}");
}

/// The text of all files in a folder and in its folders.
fn code_below(folder: &Path) -> String {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let texts = entries.map(|path| {
        if path.is_dir() { code_below(&path) } else { fs::read_to_string(&path).unwrap() }
    });
    texts.collect()
}
