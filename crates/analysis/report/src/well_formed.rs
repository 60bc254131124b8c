//! Checks whether a document is well-formed XML, as far as the program's own documents need it.

use proptest::prelude::*;
use proptest::test_runner::TestCaseError;

/// Checks that tags close, that attributes are quoted and occur once, that entities are known, and
/// that there are no control characters. The content of scripts and styles is not checked.
///
/// # Errors
///
/// Returns the first fault and the text that follows it.
pub(crate) fn well_formed(text: &str) -> Result<(), TestCaseError> {
    let fault = |what: &str, rest: &str| {
        let near: String = rest.chars().take(60).collect();
        Err(TestCaseError::fail(format!("{what}: {near}")))
    };
    let mut open: Vec<&str> = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find('<') {
        plain(&rest[..at])?;
        rest = &rest[at..];
        if rest.starts_with("<?") || rest.starts_with("<!DOCTYPE") {
            rest = rest.split_once('>').map_or("", |(_, after)| after);
            continue;
        }
        let Some(end) = rest.find('>') else { return fault("an open tag", rest) };
        let tag = &rest[1..end];
        if let Some(name) = tag.strip_prefix('/') {
            if open.pop() != Some(name) {
                return fault("a tag that closes nothing", rest);
            }
        } else {
            let is_empty = tag.ends_with('/');
            let tag = tag.trim_end_matches('/');
            let name = tag.split_whitespace().next().unwrap_or_default();
            if name.is_empty() || !name.bytes().all(|b| b.is_ascii_alphanumeric()) {
                return fault("no name of a tag", rest);
            }
            attributes(&tag[name.len()..])?;
            if !is_empty {
                open.push(name);
            }
            if matches!(name, "script" | "style") {
                let close = rest.find(&format!("</{name}>")).unwrap_or(rest.len());
                rest = &rest[close..];
                continue;
            }
        }
        rest = &rest[end + 1..];
    }
    plain(rest)?;
    match open.pop() {
        None => Ok(()),
        Some(name) => fault("never closed", name),
    }
}

fn attributes(text: &str) -> Result<(), TestCaseError> {
    let mut seen = Vec::new();
    let mut rest = text.trim();
    while !rest.is_empty() {
        let whole = rest.split_once("=\"").and_then(|(name, after)| {
            let (value, after) = after.split_once('"')?;
            Some((name, value, after))
        });
        let Some((name, value, after)) = whole else {
            return Err(TestCaseError::fail(format!("no attribute: {rest}")));
        };
        let is_name = |b: u8| b.is_ascii_alphanumeric() || b == b'-' || b == b':';
        if name.is_empty() || !name.bytes().all(is_name) || seen.contains(&name) {
            return Err(TestCaseError::fail(format!("no name of an attribute: {name}")));
        }
        plain(value)?;
        seen.push(name);
        rest = after.trim_start();
    }
    Ok(())
}

fn plain(text: &str) -> Result<(), TestCaseError> {
    let known = ["amp;", "lt;", "gt;", "quot;", "#34;", "#38;", "#39;", "#60;", "#62;"];
    for after in text.split('&').skip(1) {
        prop_assert!(known.iter().any(|entity| after.starts_with(entity)), "entity: &{after}");
    }
    let bad = |c: char| {
        c.is_control() && !matches!(c, '\n' | '\t') || matches!(c, '<' | '\u{fffe}' | '\u{ffff}')
    };
    prop_assert!(!text.contains(bad), "a forbidden character: {text:?}");
    Ok(())
}

#[test]
fn broken_documents_are_refused() {
    for broken in [
        "<a>",
        "<a></b>",
        "<a b=c></a>",
        "<a b=\"<\"></a>",
        "<a>&</a>",
        "<a>&nbsp;</a>",
        "<a>\u{1}</a>",
        "<a/><b/>x<",
        "</a>",
        "<a b=\"1\" b=\"2\"/>",
    ] {
        assert!(well_formed(broken).is_err(), "{broken}");
    }
    assert!(well_formed("<?xml version=\"1.0\"?>\n<a b=\"&lt;\"><c/>x &amp; y</a>").is_ok());
}
