//! `uturn lb check`, and docs/lb.md, which is held against the parser, the schema and the defaults.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use serde_json::Value;
use uturn_snapshot::{Source, read_lb_config, write_lb_config};

use crate::conforms::assert_conforms;
use uturn_testing::commands::{Folder, root, run, uturn};

#[test]
fn the_example_as_a_table() {
    insta::assert_snapshot!(run(&["lb", "check", "-f", "examples/lb/lb.yaml"]));
}

#[test]
fn all_that_is_wrong() {
    insta::assert_snapshot!(run(&["lb", "check", "-f", "examples/lb/wrong.yaml"]));
}

#[test]
fn a_table_of_everything() {
    let folder = Folder::new("lb-table");
    let everything = root().join("fuzz/corpus/lb_config/every-field");
    let text = fs::read_to_string(everything).unwrap();
    // Its certificates are not there.
    let own = text.replace("    certificates:\n", "");
    let own: Vec<&str> = own.lines().filter(|line| !line.contains("tls/shop")).collect();
    folder.file("lb.yaml", &own.join("\n")).file("tls.yaml", &text).file("none.yaml", "");
    insta::assert_snapshot!(folder.run(&["lb", "check", "-o", "wide", "-f", "lb.yaml"]));
    insta::assert_snapshot!(folder.run(&["lb", "check", "-f", "tls.yaml"]));
    insta::assert_snapshot!(folder.run(&["lb", "check", "-f", "none.yaml"]));
}

/// What `-o json` prints conforms to the schema, and is such a file again.
#[test]
fn the_whole_file_with_its_defaults() {
    let check = |args: &[&str]| uturn(&[&["lb", "check"], args].concat()).output().unwrap();
    let first = check(&["-f", "examples/lb/lb.yaml", "-o", "json"]);
    assert_conforms("lb", &serde_json::from_slice(&first.stdout).unwrap());
    for form in ["json", "yaml"] {
        let whole = check(&["-f", "examples/lb/lb.yaml", "-o", form]);
        let folder = Folder::new(&format!("lb-whole-{form}"));
        folder.file("lb.yaml", &String::from_utf8(whole.stdout).unwrap());
        let file = folder.0.join("lb.yaml");
        let again = check(&["-f", file.to_str().unwrap(), "-o", "json"]);
        assert_eq!(again.stdout, first.stdout, "{form}");
    }
}

/// A field that no mapping has.
const UNKNOWN: &str = "zzzzzz";

const KINDS: [&str; 3] = ["DataPlane", "SecurityGroup", "LoadBalancer"];

/// Mappings that are described once and stand in several places.
const SAME: [(&str, &str); 3] = [
    ("spec.outbound[].", "spec.inbound[]."),
    ("spec.listeners[].healthCheck.probe.", "spec.listeners[].rules[].probe."),
    ("spec.listeners[].targets[].", "spec.listeners[].rules[].targets[]."),
];

/// What a listener may have in its profile.
const IN_PROFILE: &str = "spec.listeners[].profile.";

/// The fields of a kind on the page, with what it says of their defaults.
fn shown(kind: &str) -> BTreeMap<String, String> {
    let text = fs::read_to_string(root().join("docs/lb.md")).unwrap();
    let (_, section) = text.split_once(&format!("\n### {kind}\n")).unwrap();
    let section = section.split("\n### ").next().unwrap().split("\n## ").next().unwrap();
    let mut shown = BTreeMap::new();
    for line in section.lines().filter(|line| line.starts_with("| `")) {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        let [_, field, _, default, _, _] = cells[..] else { panic!("five cells: {line}") };
        let earlier = shown.insert(field.trim_matches('`').to_owned(), default.to_owned());
        assert!(earlier.is_none(), "{kind} {field} is there twice");
    }
    shown
}

/// A path as the page has it: what several places share stands in one of them.
fn described(path: &str) -> String {
    if let Some(field) = path.strip_prefix(IN_PROFILE)
        && field != "name"
    {
        return described(&format!("spec.listeners[].{field}"));
    }
    let same = SAME.iter().find_map(|(from, to)| Some((path.strip_prefix(from)?, to)));
    same.map_or_else(|| path.to_owned(), |(rest, to)| format!("{to}{rest}"))
}

/// What the parser says it knows in a mapping.
fn known(kind: &str, parent: &str) -> BTreeSet<String> {
    let mut inner = format!("{{{UNKNOWN}: 1}}");
    for step in parent.split('.').rev() {
        inner = match step.strip_suffix("[]") {
            Some(list) => format!("{{{list}: [{inner}]}}"),
            None => format!("{{{step}: {inner}}}"),
        };
    }
    let inner = inner.strip_prefix('{').unwrap();
    let text = format!("{{apiVersion: uturn.dev/v1alpha1, kind: {kind}, {inner}\n");
    let faults = read_lb_config(vec![Source { name: "lb.yaml".into(), text }]).unwrap_err();
    let messages: Vec<String> = faults.iter().map(ToString::to_string).collect();
    let fault = messages.iter().find(|message| message.contains(UNKNOWN));
    let fault = fault.unwrap_or_else(|| panic!("{kind} {parent} takes anything: {messages:?}"));
    let (_, list) = fault.split_once("known here: ").unwrap();
    list.trim().split(", ").map(|field| format!("{parent}.{field}")).collect()
}

/// The mappings of a kind that have fields, and the fields, by the schema.
struct OfSchema {
    schema: Value,
    paths: BTreeSet<String>,
    parents: BTreeSet<String>,
}

impl OfSchema {
    fn of(kind: &str) -> Self {
        let schemas = uturn_report::schema::published();
        let (_, schema) = schemas.into_iter().find(|(name, _)| *name == "lb").unwrap();
        let schema = schema.to_value();
        let start = schema["$defs"][kind].clone();
        let mut all = Self { schema, paths: BTreeSet::new(), parents: BTreeSet::new() };
        all.walk(&start, "");
        all
    }

    fn walk(&mut self, part: &Value, path: &str) {
        if let Some(name) = part["$ref"].as_str() {
            let definition = self.schema["$defs"][name.rsplit('/').next().unwrap()].clone();
            self.walk(&definition, path);
        }
        for word in ["anyOf", "oneOf", "allOf"] {
            for each in part[word].as_array().into_iter().flatten() {
                self.walk(each, path);
            }
        }
        if part["items"].is_object() {
            self.walk(&part["items"].clone(), &format!("{path}[]"));
        }
        for (field, inner) in part["properties"].as_object().into_iter().flatten() {
            let inner_path =
                if path.is_empty() { field.clone() } else { format!("{path}.{field}") };
            self.parents.insert(path.to_owned());
            self.paths.insert(inner_path.clone());
            self.walk(inner, &inner_path);
        }
    }
}

/// Fields that the page describes in words.
fn is_in_words(path: &str) -> bool {
    ["apiVersion", "kind", "metadata", "spec"].contains(&path) || path.ends_with(".hex")
}

#[test]
fn every_field_is_on_the_page() {
    for kind in KINDS {
        let shown: BTreeSet<String> = shown(kind).into_keys().collect();
        let schema = OfSchema::of(kind);
        let in_schema: BTreeSet<String> = schema
            .paths
            .iter()
            .map(|path| described(path))
            .filter(|path| !is_in_words(path))
            .collect();
        assert_eq!(shown, in_schema, "{kind}: the page and the schema");
        for parent in schema.parents.iter().filter(|parent| !parent.is_empty()) {
            if ["send", "expect"].iter().any(|bytes| parent.ends_with(bytes)) {
                continue;
            }
            let parsed: BTreeSet<String> =
                known(kind, parent).iter().map(|p| described(p)).collect();
            let below = |path: &&String| {
                let rest = path.strip_prefix(&format!("{parent}."));
                rest.is_some_and(|field| !field.contains('.'))
            };
            let in_schema = schema.paths.iter().filter(below).map(|path| described(path));
            let in_schema: BTreeSet<String> = in_schema.collect();
            assert_eq!(parsed, in_schema, "{kind} {parent}: the parser and the schema");
        }
    }
}

/// One document of each kind in which only what must be there is stated.
const MINIMAL: &str = "
{apiVersion: uturn.dev/v1alpha1, kind: DataPlane, spec: {}}
---
{apiVersion: uturn.dev/v1alpha1, kind: SecurityGroup, metadata: {name: a}, spec: {inbound: [{action: drop}]}}
---
apiVersion: uturn.dev/v1alpha1
kind: LoadBalancer
metadata: {name: web}
spec:
  vip: 10.0.0.100
  listeners:
  - port: 8080
    protocol: HTTP
    healthCheck: {probe: {http: {}}}
    rules:
    - {path: {path: /old}, redirect: {}}
    - targets: ['10.0.0.11:80']
      probe: tcp
    - {host: a, targets: [{address: '10.0.0.11:80'}]}
";

/// A default that stands alone in its cell is what the parser takes.
#[test]
fn the_defaults_on_the_page_are_true() {
    let config = read_lb_config(vec![Source { name: "lb.yaml".into(), text: MINIMAL.into() }]);
    let whole: Value = serde_json::from_str(&write_lb_config(&config.unwrap())).unwrap();
    let mut compared = 0;
    for kind in KINDS {
        let documents = whole["items"].as_array().unwrap().iter();
        let document = documents.clone().find(|document| document["kind"] == kind).unwrap();
        for (field, default) in shown(kind) {
            let Some(word) = default.strip_prefix('`').and_then(|rest| rest.strip_suffix('`'))
            else {
                continue;
            };
            // What is false or nothing need not be written.
            if word.contains('`') || field == "spec.derived" || field.ends_with(".endsConnections")
            {
                continue;
            }
            let found = look_up(document, &field).unwrap_or_else(|| panic!("{kind} {field}"));
            let found = match found {
                Value::String(text) => text.clone(),
                Value::Array(items) => {
                    let items: Vec<String> = items.iter().map(ToString::to_string).collect();
                    format!("[{}]", items.join(", "))
                }
                other => other.to_string(),
            };
            assert_eq!(found, word, "{kind} {field}");
            compared += 1;
        }
    }
    assert!(compared > 25, "{compared}");
}

/// The first value at a path, in whichever items of its lists there is one.
fn look_up<'v>(value: &'v Value, path: &str) -> Option<&'v Value> {
    let (step, rest) = path.split_once('.').unwrap_or((path, ""));
    let found = match step.strip_suffix("[]") {
        Some(list) => {
            return value.get(list)?.as_array()?.iter().find_map(|item| look_up(item, rest));
        }
        None => value.get(step)?,
    };
    if rest.is_empty() { Some(found) } else { look_up(found, rest) }
}
