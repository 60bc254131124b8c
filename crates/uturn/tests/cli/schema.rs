//! JSON Schemas: the published ones are those of the code, and what whole commands print
//! conforms to them.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};
use uturn_testing::variables;

use super::common::{Folder, root, uturn};
use super::conforms::{assert_conforms, closed, violations};

const FOLDER: &str = "docs/schema";

fn output(args: &[&str]) -> String {
    let output = uturn(args).output().unwrap();
    String::from_utf8(output.stdout).unwrap()
}

/// What a command prints; `None` if it has no result.
fn json(args: &[&str]) -> Option<Value> {
    let text = output(&[args, &["-o", "json"]].concat());
    (!text.is_empty()).then(|| serde_json::from_str(&text).unwrap())
}

fn scenarios() -> Vec<String> {
    let mut files: Vec<PathBuf> = fs::read_dir(root().join("scenarios"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    files.sort_unstable();
    files.iter().map(|file| file.to_str().unwrap().to_owned()).collect()
}

/// `cargo xtask docs` writes the published schemas anew.
#[test]
fn published_schemas_are_those_of_the_code() {
    let folder = root().join(FOLDER);
    let published: Vec<(PathBuf, String)> = uturn_report::schema::published()
        .into_iter()
        .map(|(name, schema)| (folder.join(format!("{name}.json")), text(&schema.to_value())))
        .collect();
    if variables::is_update(variables::DOCS) {
        fs::create_dir_all(&folder).unwrap();
        for (file, text) in &published {
            fs::write(file, text).unwrap();
        }
    }
    for (file, text) in &published {
        let there = fs::read_to_string(file).unwrap_or_default();
        assert!(there == *text, "{}: cargo xtask docs writes it anew", file.display());
    }
    let known = |path: &Path| published.iter().any(|(file, _)| file == path);
    for entry in fs::read_dir(&folder).unwrap() {
        let path = entry.unwrap().path();
        assert!(known(&path), "{}: nothing prints this", path.display());
    }
}

fn text(schema: &Value) -> String {
    format!("{schema:#}\n")
}

#[test]
fn scans_with_what_is_set_aside_conform() {
    let folder = Folder::new("schema-aside");
    let baseline = folder.0.join("known.baseline");
    let baseline = baseline.to_str().unwrap();
    output(&["scan", "-f", "examples/shop", "--write-baseline", baseline]);
    let written = serde_json::from_str(&fs::read_to_string(baseline).unwrap()).unwrap();
    assert_conforms("baseline", &written);
    let scan = json(&["scan", "-f", "examples/shop", "--baseline", baseline]).unwrap();
    assert_conforms("scan", &scan);
    assert!(!scan["known"].as_array().unwrap().is_empty());
    let manifest = fs::read_to_string(root().join("examples/shop/front.yaml")).unwrap();
    let ignoring = manifest
        .replace("  annotations:\n", "  annotations:\n    uturn.dev/ignore: \"UT101: known\"\n");
    folder.file("shop/front.yaml", &ignoring);
    for entry in fs::read_dir(root().join("examples/shop")).unwrap() {
        let file = entry.unwrap().path();
        let name = file.file_name().unwrap().to_str().unwrap();
        if name != "front.yaml" {
            folder.file(&format!("shop/{name}"), &fs::read_to_string(&file).unwrap());
        }
    }
    let shop = folder.0.join("shop");
    let scan = json(&["scan", "-f", shop.to_str().unwrap()]).unwrap();
    assert_conforms("scan", &scan);
    assert!(!scan["ignored"].as_array().unwrap().is_empty());
}

/// Each scenario scanned, its first finding cured, and the flow that shows it traced.
#[test]
fn scans_cures_and_traces_conform() {
    let (mut findings, mut cures, mut traces) = (0, 0, 0);
    for file in scenarios() {
        let scan = json(&["scan", "-f", &file]).unwrap();
        assert_conforms("scan", &scan);
        let found = scan["findings"].as_array().unwrap();
        findings += found.len();
        let Some(finding) = found.first() else { continue };
        let subject = &finding["subject"];
        let Some(namespace) = subject["namespace"].as_str() else { continue };
        let object = format!("{namespace}/{}", subject["name"].as_str().unwrap());
        let code = finding["code"].as_str().unwrap();
        let Some(cure) = json(&["cure", code, &object, "-f", &file]) else { continue };
        assert_conforms("cure", &cure);
        cures += cure["cases"][0]["cures"].as_array().unwrap().len();
        let flow = &cure["cases"][0]["now"]["flow"];
        let (Some(from), Some(to)) = (flow["from"].as_str(), flow["to"].as_str()) else { continue };
        let protocol = flow["protocol"].as_str().unwrap();
        let args = ["trace", "-f", &file, "--from", from, "--to", to, "--proto", protocol];
        assert_conforms("trace", &json(&args).unwrap());
        traces += 1;
    }
    assert!(findings > 50 && cures > 50 && traces > 20, "{findings} {cures} {traces}");
}

#[test]
fn health_checks_to_cure_conform() {
    let args = ["cure", "UT201", "n1", "-f", "scenarios/probe-firewall.yaml"];
    let cure = json(&args).unwrap();
    assert_conforms("cure", &cure);
    assert!(cure["cases"][0]["now"]["alive"].is_u64(), "{cure:#}");
}

#[test]
fn checklists_conform() {
    for topic in ["service", "ingress", "dns", "nodes", "cross-node"] {
        assert_conforms("check", &json(&["check", topic, "-f", "examples/shop"]).unwrap());
        let file = "scenarios/l7-loop.yaml";
        assert_conforms("check", &json(&["check", topic, "-f", file]).unwrap());
    }
}

#[test]
fn walks_conform() {
    let capture = "crates/analysis/netfilter/tests/golden/iptables-n1";
    for (src, dst) in [
        ("10.1.1.10:4000", "172.16.0.10:80"),
        ("10.0.0.5:4000", "10.0.0.11:30080"),
        ("10.1.1.10:4000", "10.1.2.20:8080"),
    ] {
        let args = ["walk", "--capture", capture, "--src", src, "--dst", dst];
        assert_conforms("walk", &json(&args).unwrap());
    }
}

#[test]
fn the_list_of_scenarios_conforms() {
    assert_conforms("lab-list", &json(&["lab", "list"]).unwrap());
}

#[test]
fn pages_and_the_version_conform() {
    for args in [&["explain"][..], &["explain", "UT101"], &["explain", "asymmetric-return"]] {
        assert_conforms("explain", &json(args).unwrap());
    }
    assert!(json(&["explain"]).unwrap()["codes"].as_array().unwrap().len() > 20);
    assert!(json(&["explain", "UT101"]).unwrap()["page"].is_string());
    assert_conforms("version", &json(&["version"]).unwrap());
}

/// A schema that lets everything pass proves nothing.
#[test]
fn what_is_wrong_is_seen() {
    type Spoil = fn(&mut Map<String, Value>);
    let scan = json(&["scan", "-f", "examples/shop"]).unwrap();
    let (_, schema) =
        uturn_report::schema::published().into_iter().find(|(name, _)| *name == "scan").unwrap();
    let schema = schema.to_value();
    let spoils: [(&str, Spoil, usize); 4] = [
        ("a field that is missing", |finding| drop(finding.remove("code")), 1),
        ("a number for a text", |finding| drop(finding.insert("title".into(), 7.into())), 1),
        ("a word that is none", |finding| drop(finding.insert("outcome".into(), "odd".into())), 1),
        ("a field more", |finding| drop(finding.insert("colour".into(), "red".into())), 0),
    ];
    for (what, spoil, expected) in spoils {
        let mut spoiled = scan.clone();
        spoil(spoiled["findings"][0].as_object_mut().unwrap());
        let found = violations(&schema, &spoiled);
        assert_eq!(found.len(), expected, "{what}: {found:?}");
        let found = violations(&closed(schema.clone()), &spoiled);
        assert!(!found.is_empty(), "{what}");
    }
}
