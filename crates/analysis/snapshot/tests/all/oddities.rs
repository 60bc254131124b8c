//! What kubectl reads in another way than it is written is read like kubectl, and reported.

#![allow(clippy::unwrap_used, reason = "a helper of a test may fail like the test")]

use uturn_snapshot::{Loaded, Source, read};

fn try_read(text: &str) -> Result<Loaded, String> {
    let source = Source { name: "a.yaml".into(), text: text.to_owned() };
    read(vec![source]).map_err(|faults| faults.iter().map(|fault| format!("{fault}\n")).collect())
}

fn read_all(text: &str) -> Loaded {
    try_read(text).unwrap_or_else(|faults| panic!("{faults}\n{text}"))
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
