//! A scan of the running cluster, of the same objects in a file, and of a bundle of it.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use uturn_testing::variables;

use crate::control_plane::{ADMIN, ControlPlane, READER, Stage};
use crate::{objects, run, shown, text};

/// The example of the documentation.
pub(crate) fn shop(plane: &ControlPlane) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    objects::put(plane, &[root.join("examples/shop")]);
    give_rights(plane, &["collect", "--rbac"]);
    let scan = compare(plane, None);
    let codes: Vec<&str> = scan["findings"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|finding| finding["code"].as_str())
        .collect();
    assert!(codes.contains(&"UT101"), "{codes:?}");

    // The other commands read it too.
    let words = ["trace", "--from", "pod/shop/web-0", "--to", "http://shop.example.com/"];
    let trace = run(plane, &words, READER);
    assert_eq!(trace.status.code(), Some(1), "{}", text(&trace.stderr));
    assert!(text(&trace.stdout).contains("UT101"), "{}", text(&trace.stdout));
    let check = run(plane, &["check", "ingress", "shop/front"], READER);
    assert_eq!(check.status.code(), Some(1), "{}", text(&check.stderr));
    let rules = run(plane, &["rules", "--node", "n1"], READER);
    assert!(text(&rules.stdout).contains("KUBE-SERVICES"), "{}", text(&rules.stderr));
    // A cure is an edit of what the server has, and the server takes it.
    let cure = run(plane, &["cure", "UT101", "shop/front", "-o", "yaml"], READER);
    assert!(!cure.stdout.is_empty(), "{}", text(&cure.stderr));
    let path = plane.file("cure.yaml");
    fs::write(&path, &cure.stdout).unwrap();
    let yaml = text(&cure.stdout);
    assert!(!yaml.contains("resourceVersion") && !yaml.contains("\nstatus:"), "{yaml}");
    let words = ["--server-side", "--field-manager=uturn", "--force-conflicts"];
    assert!(text(&cure.stderr).contains(&words.join(" ")), "{}", text(&cure.stderr));
    let apply = [&["apply", "--dry-run=server"], &words[..], &["-f", &shown(&path)]];
    plane.kubectl_done(&apply.concat());
}

/// Random clusters.
pub(crate) fn generated(stage: &Stage) {
    let Some(folder) = variables::path(variables::LIVE_CLUSTERS) else { return };
    let mut clusters: Vec<PathBuf> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    clusters.sort();
    assert!(!clusters.is_empty());
    for (number, cluster) in clusters.iter().enumerate() {
        let plane = stage.start(&format!("generated-{number}"));
        objects::put(&plane, std::slice::from_ref(cluster));
        give_rights(&plane, &["collect", "--rbac"]);
        let facts = objects::facts(&plane, cluster);
        let scan = compare(&plane, facts.as_deref());
        assert_ne!(scan["findings"], serde_json::json!([]), "{}", cluster.display());
    }
}

/// Gives the reader the rights that a command prints.
pub(crate) fn give_rights(plane: &ControlPlane, printed_by: &[&str]) {
    let printed = run(plane, printed_by, ADMIN);
    let path = plane.file("rbac.yaml");
    fs::write(&path, &printed.stdout).unwrap();
    plane.kubectl_done(&["apply", "-f", &shown(&path)]);
    let words = ["create", "clusterrolebinding", "reader", "--clusterrole=uturn-reader"];
    plane.kubectl_done(&[&words[..], &["--user=reader"]].concat());
    crate::rights::wait(plane, "list", "pods", true);
}

/// Compares the scans. Returns that of the running cluster.
fn compare(plane: &ControlPlane, facts: Option<&Path>) -> Value {
    let facts = facts.map(shown);
    let scan = |words: &[&str]| -> Value {
        let mut all = vec!["scan", "-o", "json", "--all"];
        all.extend(words);
        if let Some(facts) = &facts {
            all.extend(["-f", facts]);
        }
        let output = run(plane, &all, READER);
        let why = text(&output.stderr);
        assert!(matches!(output.status.code(), Some(0 | 1)), "{all:?}: {why}");
        let mut json: Value = serde_json::from_slice(&output.stdout).unwrap();
        without_places(&mut json);
        json
    };
    let live = scan(&["--live"]);
    assert_eq!(live["unread"], serde_json::json!([]));
    let got = shown(&objects::get(plane));
    let file = scan(&["-f", &got, "--complete"]);
    for part in ["findings", "groups", "flows", "fine", "open", "not_judged", "network", "supposed"]
    {
        assert_eq!(live[part], file[part], "{part}");
    }
    for (bundle, page) in [("bundle", "500"), ("bundle.tar.gz", "3")] {
        let path = shown(&plane.file(bundle));
        let collect = run(plane, &["collect", "-o", &path, "--page", page], READER);
        assert!(collect.status.success(), "{}", text(&collect.stderr));
        assert_eq!(scan(&["--bundle", &path]), live, "{bundle}");
    }
    let redacted = redacted(plane, facts.as_deref());
    for part in ["flows", "fine", "open"] {
        assert_eq!(redacted[part], live[part], "{part}");
    }
    assert_eq!(without_names(&redacted), without_names(&live));
    live
}

/// The scan of the running cluster without its names and addresses; where there are Facts, of the
/// bundle that was collected.
fn redacted(plane: &ControlPlane, facts: Option<&str>) -> Value {
    let (path, bundle) = (shown(&plane.file("redacted.tar.gz")), shown(&plane.file("collected")));
    let mut redact = vec!["collect", "--redact", "-o", &path];
    if let Some(facts) = facts {
        let collect = run(plane, &["collect", "-o", &bundle], READER);
        assert!(collect.status.success(), "{}", text(&collect.stderr));
        redact.extend(["--bundle", &bundle, "-f", facts]);
    }
    let output = run(plane, &redact, READER);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let scan = run(plane, &["scan", "-o", "json", "--all", "--bundle", &path], READER);
    serde_json::from_slice(&scan.stdout).unwrap()
}

/// What findings say besides names.
fn without_names(scan: &Value) -> Vec<Vec<&Value>> {
    const PARTS: [&str; 5] = ["code", "severity", "share_failing", "client_count", "mechanism"];
    let findings = scan["findings"].as_array().unwrap().iter();
    findings.map(|finding| PARTS.map(|part| &finding[part]).into()).collect()
}

/// Places differ: versions of objects, lines of files.
fn without_places(json: &mut Value) {
    match json {
        Value::Object(fields) => {
            fields.retain(|name, _| name != "source");
            fields.values_mut().for_each(without_places);
        }
        Value::Array(items) => items.iter_mut().for_each(without_places),
        _ => {}
    }
}
