//! Reads Rust source as text: finds the files, and the code in them without comments, texts and
//! tests.

use std::fs;
use std::path::{Path, PathBuf};

use crate::shell::{self, Failure};

/// Returns the `src` folders of all crates, including xtask's own.
pub(super) fn crates() -> Result<Vec<PathBuf>, Failure> {
    let crates = shell::root().join("crates");
    let mut folders = vec![shell::root().join("xtask/src"), crates.join("uturn/src")];
    for room in entries(&crates)? {
        for entry in entries(&room)? {
            folders.push(entry.join("src"));
        }
    }
    folders.retain(|folder| folder.is_dir());
    folders.sort();
    Ok(folders)
}

/// Returns all Rust files below a folder, in order.
pub(super) fn files(folder: &Path) -> Result<Vec<PathBuf>, Failure> {
    let mut files = Vec::new();
    for path in entries(folder)? {
        if path.is_dir() {
            files.extend(self::files(&path)?);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

/// Reads a file.
pub(super) fn read(file: &Path) -> Result<String, Failure> {
    fs::read_to_string(file).map_err(|error| unreadable(file, &error))
}

fn entries(folder: &Path) -> Result<Vec<PathBuf>, Failure> {
    let entries = fs::read_dir(folder).map_err(|error| unreadable(folder, &error))?;
    entries.map(|entry| Ok(entry.map_err(|error| unreadable(folder, &error))?.path())).collect()
}

fn unreadable(path: &Path, error: &std::io::Error) -> Failure {
    Failure(format!("{} cannot be read: {error}", path.display()))
}

/// Returns the code of a file: comments and the insides of literals become spaces, and modules of
/// tests are removed.
pub(super) fn code_only(text: &str) -> String {
    without_tests(&without_comments(text))
}

fn without_comments(text: &str) -> String {
    let mut code = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let skipped = if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if rest.starts_with("/*") {
            rest.find("*/").map_or(rest.len(), |end| end + 2)
        } else if let Some(length) = literal(rest, code.chars().next_back()) {
            length
        } else {
            code.push(first);
            rest = &rest[first.len_utf8()..];
            continue;
        };
        code.push(' ');
        code.extend(rest[..skipped].chars().filter(|character| *character == '\n'));
        rest = &rest[skipped..];
    }
    code
}

/// Returns the length of the string or character that a text begins with.
fn literal(text: &str, before: Option<char>) -> Option<usize> {
    let follows_name = before.is_some_and(|before| before.is_alphanumeric() || before == '_');
    if let Some(raw) = text.strip_prefix('r').filter(|_| !follows_name) {
        let hashes = raw.len() - raw.trim_start_matches('#').len();
        let body = raw[hashes..].strip_prefix('"')?;
        let close = format!("\"{}", "#".repeat(hashes));
        let end = body.find(&close).map_or(body.len(), |end| end + close.len());
        return Some(1 + hashes + 1 + end);
    }
    let quote = text.chars().next().filter(|first| matches!(first, '"' | '\''))?;
    let mut characters = text.char_indices().skip(1);
    let mut inside = 0;
    while let Some((at, character)) = characters.next() {
        match character {
            '\\' => {
                characters.next();
            }
            _ if character == quote => return Some(at + 1),
            _ => {}
        }
        inside += 1;
        // A lifetime is a quote without a closing quote.
        if quote == '\'' && inside > 1 && !text.starts_with("'\\") {
            return None;
        }
    }
    None
}

/// Removes `#[cfg(test)] mod … { … }`.
fn without_tests(code: &str) -> String {
    const MARK: &str = "#[cfg(test)]";
    let mut kept = String::with_capacity(code.len());
    let mut rest = code;
    while let Some(at) = rest.find(MARK) {
        kept.push_str(&rest[..at]);
        let behind = &rest[at + MARK.len()..];
        rest = match behind.trim_start().strip_prefix("mod ") {
            Some(module) => match (module.find('{'), module.find(';')) {
                (Some(open), end) if end.is_none_or(|end| open < end) => {
                    &module[open + block(&module[open..])..]
                }
                (_, Some(end)) => &module[end + 1..],
                _ => "",
            },
            None => behind,
        };
    }
    kept.push_str(rest);
    kept
}

/// Returns the length of a block that begins with a brace.
fn block(code: &str) -> usize {
    let mut depth = 0_usize;
    for (at, character) in code.char_indices() {
        match character {
            '{' => depth += 1,
            '}' if depth == 1 => return at + 1,
            '}' => depth -= 1,
            _ => {}
        }
    }
    code.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_literals_are_not_code() {
        let text =
            "a(\"crate::x\"); // crate::y\n/* crate::z */ b('\"', 'x', r#\"c\"q\"#); 'a: loop {}";
        let code = code_only(text);
        assert!(!code.contains("crate"), "{code}");
        assert!(code.contains("b(") && code.contains("'a: loop"), "{code}");
        assert_eq!(code.lines().count(), text.lines().count());
    }

    #[test]
    fn modules_of_tests_are_not_code() {
        let text = "fn a() {}\n#[cfg(test)]\nmod tests { fn b() { if x { } } }\nfn c() {}";
        let code = code_only(text);
        assert!(code.contains("fn a") && code.contains("fn c") && !code.contains("fn b"), "{code}");
        assert!(!code_only("#[cfg(test)]\nmod tests;\nuse b;").contains("tests"));
    }
}
