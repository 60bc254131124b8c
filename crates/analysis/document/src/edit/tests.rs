//! Edits of small texts, compared as texts.

use super::*;

fn path(words: &[&str]) -> Vec<At> {
    words
        .iter()
        .map(|word| match (word.parse::<usize>(), word.split_once('=')) {
            (Ok(at), _) => At::Item(at),
            (_, Some((key, text))) => At::Where(key.into(), text.into()),
            _ => At::from(*word),
        })
        .collect()
}

fn set(text: &str, words: &[&str], tree: Tree) -> String {
    apply(text, &path(words), &Change::Set(tree)).unwrap()
}

const SERVICE: &str = "# the shop
kind: Service
metadata: {name: web, labels: {}} # short
spec:
  ports:
  - port: 80   # plain
    targetPort: http
  - {port: 81}
  text: |
    one

    two
  empty:
  list: []
status: {}
";

#[test]
fn what_is_not_touched_stays() {
    let cases: [(&[&str], Tree, &str, &str); 9] = [
        (&["kind"], Tree::text("Pod"), "kind: Service", "kind: Pod"),
        (
            &["metadata", "annotations", "a.b/c"],
            Tree::text("true"),
            "labels: {}}",
            "labels: {}, annotations: {a.b/c: \"true\"}}",
        ),
        (&["metadata", "labels", "x"], Tree::number(1u32), "labels: {}", "labels: {x: 1}"),
        (&["spec", "ports", "0", "targetPort"], Tree::number(8080u32), ": http", ": 8080"),
        (&["spec", "ports", "port=81", "name"], Tree::text("b"), "81}", "81, name: b}"),
        (
            &["spec", "ports", "port=80", "name"],
            Tree::text("a"),
            "    targetPort: http\n",
            "    targetPort: http\n    name: a\n",
        ),
        (&["spec", "empty", "in"], Tree::bare("true"), "empty:", "empty: {in: true}"),
        (
            &["spec", "more", "deep"],
            Tree::List(vec![Tree::map([("a", Tree::number(1u32)), ("b", Tree::text("x"))])]),
            "  list: []\n",
            "  list: []\n  more:\n    deep:\n    - a: 1\n      b: x\n",
        ),
        (
            &["spec", "ports", "port=82"],
            Tree::map([]),
            "  - {port: 81}\n",
            "  - {port: 81}\n  - port: 82\n",
        ),
    ];
    for (words, tree, from, to) in cases {
        assert_eq!(SERVICE.matches(from).count(), 1, "{from}");
        assert_eq!(set(SERVICE, words, tree), SERVICE.replace(from, to), "{words:?}");
    }
}

#[test]
fn lists_grow_at_both_ends() {
    let add = |words: &[&str], change| apply(SERVICE, &path(words), &change).unwrap();
    let port = || Tree::map([("port", Tree::number(79u32))]);
    assert_eq!(
        add(&["spec", "ports"], Change::Prepend(port())),
        SERVICE.replace("  - port: 80", "  - port: 79\n  - port: 80")
    );
    assert_eq!(
        add(&["spec", "ports"], Change::Append(port())),
        SERVICE.replace("  - {port: 81}\n", "  - {port: 81}\n  - port: 79\n")
    );
    assert_eq!(
        add(&["spec", "list"], Change::Append(port())),
        SERVICE.replace("list: []", "list: [{port: 79}]")
    );
    assert_eq!(
        add(&["spec", "none"], Change::Append(port())),
        SERVICE.replace("  list: []\n", "  list: []\n  none:\n  - port: 79\n")
    );
}

#[test]
fn lines_of_a_text_are_lines_of_the_file() {
    let at = path(&["spec", "text"]);
    assert_eq!(
        apply(SERVICE, &at, &Change::Line(2, "new".into())).unwrap(),
        SERVICE.replace("    two\n", "    new\n    two\n")
    );
    assert_eq!(
        apply(SERVICE, &at, &Change::Replace(0, "1".into())).unwrap(),
        SERVICE.replace("    one\n", "    1\n")
    );
    let quoted = "a: \"x\\ny\\n\"\n";
    assert_eq!(
        apply(quoted, &path(&["a"]), &Change::Line(1, "z".into())).unwrap(),
        "a: \"x\\nz\\ny\\n\"\n"
    );
}

#[test]
fn json_stays_json() {
    let text = "{\n  \"kind\": \"Service\",\n  \"metadata\": {\"name\": \"ä\"},\n  \"spec\": {\n    \"ports\": [\n      {\"port\": 80}\n    ]\n  }\n}\n";
    assert_eq!(
        set(text, &["metadata", "annotations", "x"], Tree::text("true")),
        text.replace("\"ä\"}", "\"ä\", \"annotations\": {\"x\": \"true\"}}")
    );
    assert_eq!(
        set(text, &["spec", "type"], Tree::text("NodePort")),
        text.replace("    ]\n  }", "    ],\n    \"type\": \"NodePort\"\n  }")
    );
    assert_eq!(
        apply(text, &path(&["spec", "ports"]), &Change::Prepend(Tree::number(1u32))).unwrap(),
        text.replace("      {\"port\"", "      1,\n      {\"port\"")
    );
}

#[test]
fn what_would_change_more_is_refused() {
    let text = "a: &x {b: 1}\nc: *x\n";
    let refused = apply(text, &path(&["c", "b"]), &Change::Set(Tree::number(2u32)));
    assert!(refused.is_err(), "{refused:?}");
    assert!(apply("a: 1\n", &path(&["a", "b"]), &Change::Set(Tree::number(2u32))).is_err());
    assert!(apply("a: {", &path(&["a"]), &Change::Set(Tree::number(2u32))).is_err());
}

#[test]
fn what_is_removed_takes_its_lines_along() {
    let remove = |text: &str, words: &[&str]| apply(text, &path(words), &Change::Remove);
    let cases: [(&[&str], &str, &str); 7] = [
        (&["metadata", "name"], "{name: web, labels: {}}", "{labels: {}}"),
        (&["metadata", "labels"], "{name: web, labels: {}}", "{name: web}"),
        (&["spec", "ports", "1"], "  - {port: 81}\n", ""),
        (&["spec", "ports", "0"], "  - port: 80   # plain\n    targetPort: http\n", ""),
        (&["spec", "ports", "0", "port"], "port: 80   # plain\n    targetPort", "targetPort"),
        (&["spec", "text"], "  text: |\n    one\n\n    two\n", ""),
        (&["spec", "ports", "1", "port"], "{port: 81}", "{}"),
    ];
    for (words, before, after) in cases {
        assert_eq!(
            remove(SERVICE, words).unwrap(),
            SERVICE.replacen(before, after, 1),
            "{words:?}"
        );
    }
    let only = "metadata:\n  labels:\n    a.b/c: x\n  name: web\n";
    let empty = "metadata:\n  labels: {}\n  name: web\n";
    assert_eq!(remove(only, &["metadata", "labels", "a.b/c"]).unwrap(), empty);
    let pretty = "{\n  \"a\": 1,\n  \"b\": [\n    1,\n    2\n  ]\n}\n";
    assert_eq!(remove(pretty, &["b", "1"]).unwrap(), pretty.replacen(",\n    2", "", 1));
    assert_eq!(remove(pretty, &["a"]).unwrap(), pretty.replacen("\"a\": 1,\n  ", "", 1));
    assert_eq!(remove(SERVICE, &["spec", "absent"]), Err(Refused("there is nothing to remove")));
    assert!(remove(SERVICE, &["kind", "absent"]).is_err());
}
