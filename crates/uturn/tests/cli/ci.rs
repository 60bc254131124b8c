//! `uturn scan` in CI: SARIF, JUnit, the baseline, and what annotations ignore.

use std::fs;

use insta::assert_snapshot;
use serde_json::Value;

use super::common::{Folder, root, run, uturn};
use super::conforms::violations;

const SHOP: [&str; 3] = ["scan", "-f", "examples/shop"];

fn sarif(args: &[&str]) -> Value {
    let output = uturn(&[args, &["-o", "sarif"]].concat()).output().unwrap();
    serde_json::from_slice(&output.stdout).unwrap()
}

fn schema() -> Value {
    let file = root().join("crates/uturn/tests/data/sarif-2.1.0.schema.json");
    let text = fs::read_to_string(file).unwrap();
    // The pattern of a language, as it is published, has a bracket too many.
    serde_json::from_str(&text.replace("[a-zA-Z]{2}]?$", "[a-zA-Z]{2}$")).unwrap()
}

#[test]
fn sarif_keeps_its_schema() {
    let schema = schema();
    let mut results = 0;
    let files = fs::read_dir(root().join("scenarios")).unwrap();
    let mut files: Vec<_> = files.map(|entry| entry.unwrap().path()).collect();
    files.sort();
    for file in files.iter().step_by(3) {
        let value = sarif(&["scan", "-f", file.to_str().unwrap()]);
        assert_eq!(violations(&schema, &value), [""; 0], "{}", file.display());
        results += value["runs"][0]["results"].as_array().unwrap().len();
    }
    assert!(results > 10, "{results}");
    let mut broken = sarif(&SHOP);
    assert_eq!(violations(&schema, &broken), [""; 0]);
    // The judge has to see something: a number for a text, a field too many, one too few.
    broken["runs"][0]["results"][0]["level"] = "terrible".into();
    broken["runs"][0]["results"][0]["colour"] = "red".into();
    broken["runs"][0]["tool"]["driver"]["name"].take();
    broken["runs"][0]["results"][0].as_object_mut().unwrap().remove("message");
    assert_eq!(violations(&schema, &broken).len(), 4, "{:?}", violations(&schema, &broken));
}

#[test]
fn sarif_points_at_the_manifest() {
    let value = sarif(&SHOP);
    let result = &value["runs"][0]["results"][0];
    let place = &result["locations"][0]["physicalLocation"];
    assert_eq!(place["artifactLocation"]["uri"], "examples/shop/front.yaml");
    let line = place["region"]["startLine"].as_u64().unwrap() as usize;
    let text = fs::read_to_string(root().join("examples/shop/front.yaml")).unwrap();
    let object: Vec<&str> = text.lines().skip(line - 1).take(3).collect();
    assert!(object.contains(&"kind: Ingress"), "{object:?}");
    let rule = &value["runs"][0]["tool"]["driver"]["rules"][0];
    assert_eq!((&rule["id"], &result["ruleId"]), (&"UT101".into(), &"UT101".into()));
    assert!(rule["help"]["markdown"].as_str().unwrap().contains("## Cures"));
}

#[test]
fn junit() {
    assert_snapshot!(run(&[&SHOP[..], &["-o", "junit"]].concat()));
}

/// The shop, in a folder, with one annotation more on its Ingress.
fn shop(test: &str, annotation: &str) -> Folder {
    let folder = Folder::new(test);
    for entry in fs::read_dir(root().join("examples/shop")).unwrap() {
        let file = entry.unwrap();
        let mut text = fs::read_to_string(file.path()).unwrap();
        if file.file_name() == "front.yaml" && !annotation.is_empty() {
            let at = text.find("kind: Ingress\n").unwrap();
            let within = text[at..].find("  annotations:\n").unwrap() + at;
            text.insert_str(within + "  annotations:\n".len(), &format!("    {annotation}\n"));
        }
        folder.file(file.file_name().to_str().unwrap(), &text);
    }
    folder
}

#[test]
fn only_what_is_new_fails() {
    let folder = shop("baseline", "");
    // No manifest has this ending: it may lie among them.
    let known = "known.baseline";
    let written = folder.run(&["scan", "-f", ".", "--write-baseline", known]);
    assert!(written.starts_with("exit 0\n"), "{written}");
    let again = folder.run(&["scan", "-f", ".", "--baseline", known]);
    assert!(again.starts_with("exit 0\n"), "{again}");
    assert!(again.contains(": 2 findings\n") && again.contains("known in "), "{again}");
    // Another order of files, more lines above: still the same.
    let front = folder.0.join("front.yaml");
    let text = fs::read_to_string(&front).unwrap();
    let turned: Vec<&str> = text.split("---\n").collect();
    let turned: Vec<&str> = turned.into_iter().rev().collect();
    fs::write(folder.0.join("a.yaml"), format!("# more\n\n{}", turned.join("\n---\n"))).unwrap();
    fs::remove_file(&front).unwrap();
    let turned = folder.run(&["scan", "-f", ".", "--baseline", known]);
    assert!(turned.starts_with("exit 0\n"), "{turned}");
    // One host more is new.
    let more = text.replace("shop.example.com", "new.example.com");
    fs::write(folder.0.join("a.yaml"), more).unwrap();
    let new = folder.run(&["scan", "-f", ".", "--baseline", known]);
    assert!(new.starts_with("exit 1\n") && new.contains("new.example.com"), "{new}");
}

#[test]
fn what_is_ignored_is_reported() {
    let folder = shop("ignored", "uturn.dev/ignore: 'UT101: we call it by name, UT105: never'");
    let printed = folder.run(&["scan", "-f", "."]);
    assert!(printed.starts_with("exit 0\n"), "{printed}");
    assert_snapshot!(printed);
    let value = folder.run(&["scan", "-f", ".", "-o", "json"]);
    assert!(value.contains("\"reason\": \"we call it by name\""), "{value}");
}

#[test]
fn an_ignore_without_a_reason_is_an_error() {
    let folder = shop("unreasoned", "uturn.dev/ignore: UT101");
    assert_snapshot!(folder.run(&["scan", "-f", "."]));
}

#[test]
fn a_baseline_that_is_none() {
    let folder = shop("no-baseline", "");
    folder.file("half.baseline", "{\n  \"uturnBaseline\": 1,");
    assert_snapshot!(folder.run(&["scan", "-f", ".", "--baseline", "half.baseline"]));
    assert_snapshot!(
        "a_baseline_that_is_not_there",
        folder.run(&["scan", "-f", ".", "--baseline", "nowhere.baseline"])
    );
}

#[test]
fn a_baseline_without_end() {
    let said = shop("endless-baseline", "").run(&["scan", "-f", ".", "--baseline", "/dev/zero"]);
    assert!(said.contains("/dev/zero: cannot be read: it has more than 64 MiB"), "{said}");
}
