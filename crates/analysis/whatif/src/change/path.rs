//! Paths to values in objects, and values, as they are typed: `spec.ports[name=http].port=80`.

use std::ops::ControlFlow;

use uturn_document::edit::{At, Tree};
use uturn_document::{self as document, Keep};

/// Parses a path: keys with dots between, items of lists by number (`[0]`) or by a key that they
/// have (`[name=http]`). A key with dots stands in brackets (`metadata.labels[app.kubernetes.io/name]`)
/// or quotes, or has its dots behind backslashes.
///
/// # Errors
/// Returns an error that names the character at which the path cannot be read.
pub fn path(text: &str) -> Result<Vec<At>, String> {
    let mut path = Vec::new();
    let mut rest = text;
    loop {
        let at = text.len() - rest.len();
        let fault = |what: &str| format!("path {text:?}, character {}: {what}", at + 1);
        let step = match rest.chars().next() {
            None if path.is_empty() => return Err("the path is empty".to_owned()),
            None => return Err(fault("expected a key after the dot")),
            Some('[') => {
                let end = rest.find(']').ok_or_else(|| fault("no ] closes this ["))?;
                let inside = &rest[1..end];
                rest = &rest[end + 1..];
                in_brackets(inside).ok_or_else(|| fault("nothing stands in the brackets"))?
            }
            Some(quote @ ('"' | '\'')) => {
                let end = rest[1..].find(quote).ok_or_else(|| fault("no quote closes this one"))?;
                let inside = &rest[1..=end];
                rest = &rest[end + 2..];
                At::Key(inside.to_owned())
            }
            Some(_) => {
                let (key, after) = key(rest);
                if key.is_empty() {
                    return Err(fault("expected a key"));
                }
                rest = after;
                At::Key(key)
            }
        };
        path.push(step);
        match rest.chars().next() {
            None => return Ok(path),
            Some('.') => rest = &rest[1..],
            Some('[') => {}
            Some(other) => {
                let at = text.len() - rest.len();
                return Err(format!(
                    "path {text:?}, character {}: expected a dot or [, found {other:?}",
                    at + 1
                ));
            }
        }
    }
}

/// Takes a key up to the next dot or bracket. A backslash keeps the character behind it.
fn key(text: &str) -> (String, &str) {
    let mut key = String::new();
    let mut all = text.char_indices();
    while let Some((at, letter)) = all.next() {
        match letter {
            '.' | '[' => return (key, &text[at..]),
            '\\' => key.extend(all.next().map(|(_, letter)| letter)),
            other => key.push(other),
        }
    }
    (key, "")
}

fn in_brackets(inside: &str) -> Option<At> {
    let inside = inside.trim_matches(['"', '\'']);
    if inside.is_empty() {
        return None;
    }
    if let Ok(number) = inside.parse::<usize>() {
        return Some(At::Item(number));
    }
    Some(match inside.split_once('=') {
        Some((key, value)) => At::Where(key.to_owned(), value.to_owned()),
        None => At::Key(inside.to_owned()),
    })
}

/// Splits an assignment at the first `=` outside of brackets and quotes.
pub fn assignment(text: &str) -> Option<(&str, &str)> {
    let (mut depth, mut quote) = (0_usize, None);
    for (at, letter) in text.char_indices() {
        match (letter, quote) {
            (own, Some(open)) if own == open => quote = None,
            (_, Some(_)) => {}
            ('"' | '\'', None) => quote = Some(letter),
            ('[', None) => depth += 1,
            (']', None) => depth = depth.saturating_sub(1),
            ('=', None) if depth == 0 => return Some((&text[..at], &text[at + 1..])),
            _ => {}
        }
    }
    None
}

/// Reads a value as YAML: `Local`, `8080`, `true`, `[10.0.0.0/8]`, `{port: 80}`. Text that is no YAML
/// is a text. Returns `None` for `null`.
pub fn value(text: &str) -> Option<Tree> {
    let wrapped = format!("value: {text}\n");
    let mut read = Vec::new();
    document::read(&wrapped, Keep::All, &mut |root| {
        read.push(root.ok().map(|root| Tree::from(&root)));
        ControlFlow::Continue(())
    });
    let tree = match read.as_slice() {
        [Some(Tree::Map(entries))] if entries.len() == 1 => entries[0].1.clone(),
        _ => Tree::text(text),
    };
    (tree != Tree::bare("null")).then_some(tree)
}

/// Formats a path as [`path`] reads it.
pub fn shown(path: &[At]) -> String {
    let mut text = String::new();
    for step in path {
        match step {
            At::Key(key) if key.contains(['.', '[']) => text.push_str(&format!("[{key}]")),
            At::Key(key) if text.is_empty() => text.push_str(key),
            At::Key(key) => text.push_str(&format!(".{key}")),
            At::Item(at) => text.push_str(&format!("[{at}]")),
            At::Where(key, value) => text.push_str(&format!("[{key}={value}]")),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_read_and_printed_the_same() {
        for text in [
            "spec.type",
            "spec.ports[0].port",
            "spec.ports[name=http].targetPort",
            "metadata.annotations[service.kubernetes.io/local-svc-only-bind-node-with-pod]",
        ] {
            assert_eq!(shown(&path(text).unwrap()), text);
        }
        let same = path("metadata.labels[a.b/c]").unwrap();
        assert_eq!(path(r"metadata.labels.a\.b/c").unwrap(), same);
        assert_eq!(path("metadata.labels.\"a.b/c\"").unwrap(), same);
    }

    #[test]
    fn a_fault_names_its_character() {
        let fault = |text| path(text).unwrap_err();
        assert_eq!(fault(""), "the path is empty");
        assert!(fault("spec.").contains("character 6: expected a key after the dot"));
        assert!(fault("spec..type").contains("character 6: expected a key"));
        assert!(fault("spec.ports[0").contains("character 11: no ] closes"));
        assert!(fault("spec.ports[]").contains("character 11: nothing"));
        assert!(fault("spec.ports[0]port").contains("character 14: expected a dot"));
    }

    #[test]
    fn values_are_yaml() {
        assert_eq!(value("Local"), Some(Tree::text("Local")));
        assert_eq!(value("8080"), Some(Tree::bare("8080")));
        assert_eq!(value("\"8080\""), Some(Tree::text("8080")));
        assert_eq!(value("true"), Some(Tree::bare("true")));
        assert_eq!(value("null"), None);
        assert_eq!(value("a: b: c"), Some(Tree::text("a: b: c")));
        assert_eq!(value("[10.0.0.0/8]"), Some(Tree::List(vec![Tree::text("10.0.0.0/8")])));
        let (path, value) = assignment("spec.ports[name=http].port=80").unwrap();
        assert_eq!((path, value), ("spec.ports[name=http].port", "80"));
        assert_eq!(assignment("spec.type"), None);
    }
}
