//! YAML is read as kubectl reads it: what it takes is taken with the same meaning, and what it
//! refuses is refused.

use std::ops::ControlFlow;

use serde_json::{Value as Json, json};
use uturn_document::{Keep, read};

/// Returns the documents of a text, or its faults with their places.
fn try_read(text: &str) -> Result<Vec<Json>, String> {
    let (mut documents, mut faults) = (Vec::new(), String::new());
    read(text, Keep::All, &mut |document| {
        match document {
            Ok(root) => documents.push(root.to_json()),
            Err(trouble) => {
                faults += &format!("{}:{}: {}\n", trouble.line, trouble.column, trouble.message);
            }
        }
        ControlFlow::Continue(())
    });
    if faults.is_empty() { Ok(documents) } else { Err(faults) }
}

/// Returns the only document of a text.
fn only(text: &str) -> Json {
    let mut documents = try_read(text).unwrap_or_else(|faults| panic!("{faults}\n{text}"));
    assert_eq!(documents.len(), 1, "{text}");
    documents.remove(0)
}

/// Returns the value of a key.
fn value(written: &str) -> Json {
    only(&format!("x:\n  labels:\n    a: {written}\n"))["x"]["labels"]["a"].clone()
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
        assert_eq!(only(text)["spec"]["containers"][0]["args"], json!(["a"]), "{text}");
    }
    let text = "args: [\"b\n c\n\n d\", 'e\nf']\n";
    assert_eq!(only(text)["args"], json!(["b c\nd", "e f"]));
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
        ("!!s%74r 80", "80"),
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
    ] {
        assert_eq!(value(written), json!(read), "{written}");
    }
    for written in ["~", "", "null"] {
        assert_eq!(value(written), Json::Null, "{written}");
    }
}

#[test]
fn words_and_numbers_are_those_of_yaml_1_1() {
    for (written, read) in [
        ("yes", json!(true)),
        ("On", json!(true)),
        ("n", json!(false)),
        ("0o17", json!(15)),
        ("017", json!(15)),
        ("0b1", json!(1)),
        ("0X1F", json!(31)),
        ("0x50", json!(80)),
        ("0120", json!(80)),
        ("0o120", json!(80)),
        ("1_000", json!(1000)),
        ("80.0", json!(80)),
        ("8e1", json!(80)),
        ("+.5", json!(0.5)),
        ("1.", json!(1)),
        (".5e3", json!(500)),
        ("+_11", json!(11)),
        ("1.5_", json!(1.5)),
        ("0xffffffffffffffff", json!(u64::MAX)),
    ] {
        assert_eq!(value(written), read, "{written}");
    }
}

#[test]
fn keys_are_texts_whatever_they_look_like() {
    let labels = value("{0x10: a, yes: b, 1.0: c, ? 1e6 : d}");
    assert_eq!(labels, json!({"16": "a", "true": "b", "1": "c", "1e+06": "d"}));
}

#[test]
fn merges_go_from_the_top_and_the_later_wins() {
    let text = "\
x-common: &common {a: common, b: common}
x-other: &other {b: other, c: other}
labels:
  a: first
  <<: [*common, *other]
  b: mine
";
    assert_eq!(only(text)["labels"], json!({"a": "common", "b": "mine", "c": "other"}));
}

#[test]
fn a_line_of_dashes_ends_a_document() {
    for between in ["---\n", "--- # next\n", "---\r\n", "---\n---\n\n---\n# nothing\n---\n~\n---\n"]
    {
        let text = format!("\u{feff}---\na: 1\n{between}\u{feff}b: 2\n---\n");
        assert_eq!(try_read(&text), Ok(vec![json!({"a": 1}), json!({"b": 2})]), "{between:?}");
    }
}

#[test]
fn lines_may_end_in_every_way() {
    for end in ["\n", "\r\n", "\r"] {
        let text = "b:\n  a: |\n    x\n    y\n".replace('\n', end);
        assert_eq!(only(&text), json!({"b": {"a": "x\ny\n"}}), "{end:?}");
    }
    // This line of dashes does not divide the text, so it begins the document.
    assert_eq!(only("# a\r---\rb: c\r"), json!({"b": "c"}));
    assert_eq!(try_read("\r---\r"), Ok(vec![]));
}

#[test]
fn a_directive_is_about_the_document_after_it() {
    for directive in ["%YAML 1.1", "%YAML 1.2 # new", "%TAG ! a:", "%TAG !e! tag:e.com,2026:"] {
        let faults = try_read(&format!("a: b\n{directive}\n")).unwrap_err();
        assert_eq!(faults, "2:1: unexpected content after the end of the document\n");
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
        ("a: !!s%ec b\n", "1:4: a tag that is not complete: expected one such as !!str"),
        ("a: b\n%\n", "2:1: expected a directive such as %YAML 1.1 after %"),
        ("a: |\n  b\n%YAML 1\n", "3:1: expected a directive such as %YAML 1.1 after %"),
        ("a: b\n%TAG !x y\n", "2:1: expected a directive such as %YAML 1.1 after %"),
        ("a: b\u{7}\n", "1:5: a character that YAML does not allow: U+0007"),
        ("<<: a\n", "1:5: expected a mapping to merge after <<, found \"a\""),
    ] {
        let found = try_read(text).err().unwrap_or_default();
        assert!(found.lines().any(|line| line.starts_with(fault)), "{text:?}: {found}");
    }
}
