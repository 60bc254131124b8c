//! YAML is read as kubectl reads it: what it takes is taken with the same meaning, and what it
//! refuses is refused.

#![allow(clippy::unwrap_used, reason = "a helper of a test may fail like the test")]

use uturn_snapshot::{Loaded, Source, read};

fn try_read(text: &str) -> Result<Loaded, String> {
    let source = Source { name: "a.yaml".into(), text: text.to_owned() };
    read(vec![source]).map_err(|faults| faults.iter().map(|fault| format!("{fault}\n")).collect())
}

fn read_all(text: &str) -> Loaded {
    try_read(text).unwrap_or_else(|faults| panic!("{faults}\n{text}"))
}

/// What a node's label reads as.
fn label(written: &str) -> Result<String, String> {
    let text =
        format!("apiVersion: v1\nkind: Node\nmetadata:\n  name: n1\n  labels:\n    a: {written}\n");
    let loaded = try_read(&text)?;
    let node = loaded.cluster.nodes.into_values().next().unwrap();
    Ok(node.labels.get("a").unwrap().to_owned())
}

fn arguments(pod: &str) -> Vec<String> {
    let loaded = read_all(&format!("apiVersion: v1\nkind: Pod\nmetadata: {{name: p}}\n{pod}"));
    let pod = loaded.cluster.pods.into_values().next().unwrap();
    pod.spec.containers[0].arguments.iter().map(ToString::to_string).collect()
}

#[test]
fn brackets_and_quotes_may_go_on_at_any_column() {
    let texts = [
        "spec:\n  containers:\n  - name: c\n    args: [\n      \"a\"\n    ]\n",
        "spec:\n  containers:\n  - name: c\n    args: [\n\"a\"\n]\n",
        "spec:\n  containers:\n  - name: c\n    args: [\"a\",\n\t]\n",
        "spec: {containers: [{name: c, args: [a]}]}\n",
        "spec: {\n containers: [{\nname: c,\nargs: [\n 'a' # one\n,]}]\n}\n",
    ];
    for text in texts {
        assert_eq!(arguments(text), ["a"], "{text}");
    }
    let text = "spec:\n  containers:\n  - name: c\n    args: [\"b\n c\n\n d\", 'e\nf']\n";
    assert_eq!(arguments(text), ["b c\nd", "e f"]);
}

#[test]
fn texts_read_as_kubectl_reads_them() {
    for (written, read) in [
        ("plain text # no more", "plain text"),
        ("'it''s'", "it's"),
        ("\"\\x41\\u00e4\\n\\\n      b\"", "Aä\nb"),
        ("|\n      x\n       y\n\n", "x\n y\n"),
        ("|-\n      x", "x"),
        (">-\n      x\n      y\n\n      z", "x y\nz"),
        ("|2\n        x", "  x\n"),
        ("!!str 80", "80"),
        ("! yes", "yes"),
        ("!!binary aGk=", "hi"),
        ("2026-01-02", "2026-01-02"),
        ("12:30", "12:30"),
        ("08:00", "08:00"),
        ("1e400", "1e400"),
        ("a\n      b", "a b"),
        ("http://x:80/#y", "http://x:80/#y"),
        ("-x", "-x"),
        ("?x", "?x"),
        (":x", ":x"),
        ("~", ""),
        ("", ""),
    ] {
        assert_eq!(label(written).as_deref(), Ok(read), "{written}");
    }
    for written in ["yes", "On", "n", "0o17", "017", "0b1", "1_000", "+.5", "1.", ".5e3", "0X1F"] {
        let found = label(written).unwrap_err();
        assert!(found.contains("a.yaml:6:8: metadata.labels.a: expected a text, found"), "{found}");
    }
}

#[test]
fn numbers_may_be_written_in_every_way() {
    for (written, port) in [("0x50", 80), ("0120", 80), ("0o120", 80), ("80.0", 80), ("8e1", 80)] {
        let text = format!(
            "apiVersion: v1\nkind: Service\nmetadata: {{name: a}}\nspec: {{ports: [{{port: {written}}}]}}\n"
        );
        let service = read_all(&text).cluster.services.into_values().next().unwrap();
        assert_eq!(service.ports[0].port.to_string(), port.to_string(), "{written}");
    }
}

#[test]
fn keys_are_texts_whatever_they_look_like() {
    let text = "apiVersion: v1\nkind: Node\nmetadata:\n  name: n1\n  labels: {0x10: a, yes: b, 1.0: c, ? 1e6 : d}\n";
    let node = read_all(text).cluster.nodes.into_values().next().unwrap();
    let labels: Vec<(&str, &str)> = node.labels.iter().collect();
    assert_eq!(labels, [("1", "c"), ("16", "a"), ("1e+06", "d"), ("true", "b")]);
}

#[test]
fn merges_go_from_the_top_and_the_later_wins() {
    let text = "\
x-common: &common {a: common, b: common}
x-other: &other {b: other, c: other}
apiVersion: v1
kind: Node
metadata:
  name: n1
  labels:
    a: first
    <<: [*common, *other]
    b: mine
";
    let node = read_all(text).cluster.nodes.into_values().next().unwrap();
    let labels: Vec<(&str, &str)> = node.labels.iter().collect();
    assert_eq!(labels, [("a", "common"), ("b", "mine"), ("c", "other")]);
}

#[test]
fn the_last_of_a_repeated_key_counts_and_is_reported() {
    let yaml =
        "apiVersion: v1\nkind: Node\nmetadata:\n  name: n1\n  labels: {a: b}\n  labels: {a: c}\n";
    let json = "{\"apiVersion\": \"v1\", \"kind\": \"Node\", \"metadata\": {\"name\": \"n1\",\n\n\
                \"labels\": {\"a\": \"b\"},\n\n  \"labels\": {\"a\": \"c\"}}}";
    for (text, place) in [(yaml, "a.yaml:6:3"), (json, "a.yaml:5:3")] {
        let cluster = read_all(text).cluster;
        assert_eq!(cluster.nodes.values().next().unwrap().labels.get("a"), Some("c"));
        let supposed = cluster
            .supposed
            .iter()
            .find(|fact| fact.subject.to_string().contains("duplicate key"))
            .unwrap();
        assert!(supposed.subject.to_string().starts_with(place), "{supposed}");
        assert_eq!(&*supposed.assumed, "the last");
    }
    let ours = "apiVersion: uturn.dev/v1alpha1\nkind: Facts\nspec: {provider: tke}\nspec: {}\n";
    assert_eq!(
        try_read(ours).unwrap_err(),
        "a.yaml:4:1: duplicate key \"spec\", first at line 3\n  leave one of them out\n"
    );
}

#[test]
fn a_file_has_one_document_up_to_a_line_of_dashes() {
    let node = |name: &str| format!("apiVersion: v1\nkind: Node\nmetadata: {{name: {name}}}\n");
    let (a, b) = (node("a"), node("b"));
    for between in ["---\n", "--- # next\n", "---\r\n", "---\n---\n\n---\n# nothing\n---\n~\n---\n"]
    {
        let loaded = read_all(&format!("\u{feff}---\n{a}{between}\u{feff}{b}---\n"));
        assert_eq!(loaded.cluster.nodes.len(), 2, "{between:?}");
    }
    let cluster = read_all(&format!("{a}...\n{b}")).cluster;
    assert_eq!(cluster.nodes.len(), 1);
    let supposed = cluster
        .supposed
        .iter()
        .find(|fact| fact.subject.to_string().contains("a.yaml:5:1"))
        .unwrap();
    assert_eq!(&*supposed.assumed, "not there");
    assert_eq!(
        try_read(&format!("{a}--- {{}}\n")).unwrap_err(),
        "a.yaml:4:5: kubectl accepts only a comment after ---\n  put it on a line of its own\n"
    );
    assert_eq!(
        try_read(&format!("%YAML 1.2\n---\n{a}")).unwrap_err(),
        "a.yaml:1:1: expected a value, found a directive, which kubectl does not read\n  \
         leave the line out\n"
    );
}

#[test]
fn lines_may_end_in_every_way() {
    let text = "apiVersion: v1\nkind: Node\nmetadata:\n  name: n1\n  labels:\n    a: |\n      x\n      y\n";
    for end in ["\r\n", "\r"] {
        let node = read_all(&text.replace('\n', end)).cluster.nodes.into_values().next().unwrap();
        assert_eq!(node.labels.get("a"), Some("x\ny\n"), "{end:?}");
    }
}

#[test]
fn what_kubectl_refuses_is_refused_with_its_place() {
    for (text, fault) in [
        ("a: b: c\n", "1:5: a ':' where no value can begin"),
        ("a: - b\n", "1:4: an item of a list begins on a line of its own"),
        ("a: [b\nc: d\n", "2:2: expected ',' or ']'"),
        ("a: {b: c\n", "2:1: expected ',' or '}'"),
        ("a: 'b\nc: d\n", "1:4: the file ends within a quoted text"),
        ("a: \"\\q\"\n", "1:5: YAML does not know this escape"),
        ("a: @b\n", "1:4: a value that begins with '@' needs quotes"),
        ("a: %b\n", "1:4: a value that begins with '%' needs quotes"),
        ("a: *b\n", "1:4: an alias names an unknown anchor"),
        ("a: !!int b\n", "1:10: \"b\" is not a !!int"),
        ("a: !x!y b\n", "1:4: a tag whose handle is not declared"),
        (
            "a:\n  b: c\n d: e\n",
            "3:2: the indentation of this line does not match the lines above it",
        ),
        ("a:\n- b\n c: d\n", "3:3: a ':' where no value can begin"),
        ("a: b\nc\nd: e\n", "2:1: expected KEY: VALUE"),
        ("a: |x\n  b\n", "1:5: expected the end of the line after | or >"),
        ("a: |\n\tb\n", "2:1: tab used for indentation: YAML requires spaces"),
        ("? [a]\n: b\n", "1:3: expected a text as key, found a list or mapping"),
        ("~: b\n", "1:1: expected a text as key, found nothing"),
        ("a: {{ .b }}\n", "1:5: expected a text as key, found a list or mapping"),
        ("a: .inf\n", "1:4: .inf is a number that JSON does not have: kubectl refuses it"),
        ("a: b\u{7}\n", "1:5: a character that YAML does not allow: U+0007"),
        ("<<: a\n", "1:5: expected a mapping to merge after <<, found \"a\""),
    ] {
        let found = try_read(text).err().unwrap_or_default();
        assert!(found.contains(&format!("a.yaml:{fault}")), "{text:?}: {found}");
    }
}
