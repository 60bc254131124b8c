//! The documents of the tree.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use crate::reader::cut;

/// Returns the documents of the tree: the files of examples, scenarios, tests and the fuzz corpus,
/// and the texts in the sources of tests.
pub(super) fn documents() -> BTreeSet<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..");
    let mut texts = Vec::new();
    for folder in ["examples", "scenarios", "conformance/cases", "fuzz/corpus", "crates/analysis"] {
        add_texts(&root.join(folder), folder == "fuzz/corpus", &mut texts);
    }
    let parts = |text: &String| cut(text).into_iter().map(|part| text[part].to_owned()).collect();
    let documents: BTreeSet<String> = texts.iter().flat_map::<Vec<String>, _>(parts).collect();
    documents.into_iter().filter(|document| document.len() < 20_000).collect()
}

/// Adds the texts of a folder. In a corpus, every file counts.
fn add_texts(folder: &Path, is_corpus: bool, texts: &mut Vec<String>) {
    let mut paths: Vec<PathBuf> =
        folder.read_dir().unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    for path in paths {
        if path.is_dir() {
            add_texts(&path, is_corpus, texts);
            continue;
        }
        let extension = path.extension().and_then(|extension| extension.to_str());
        let Ok(text) = fs::read_to_string(&path) else { continue };
        match extension {
            _ if is_corpus => texts.push(text),
            Some("yaml" | "json") => texts.push(text),
            Some("rs") => texts.extend(literals(&text)),
            _ => {}
        }
    }
}

/// Returns the texts in quotes of a Rust source that have more than one line.
fn literals(source: &str) -> Vec<String> {
    let mut literals = Vec::new();
    let mut rest = source;
    while let Some((_, after)) = rest.split_once('"') {
        let (mut literal, mut letters) = (String::new(), after.chars());
        while let Some(letter) = letters.next() {
            match letter {
                '"' => break,
                '\\' => match letters.next() {
                    Some('n') => literal.push('\n'),
                    Some('t') => literal.push('\t'),
                    Some('r') => literal.push('\r'),
                    Some('\n') => {
                        let rest = letters.as_str().trim_start();
                        letters = rest.chars();
                    }
                    Some(other) => literal.push(other),
                    None => {}
                },
                _ => literal.push(letter),
            }
        }
        rest = letters.as_str();
        if literal.contains('\n') {
            literals.push(literal);
        }
    }
    literals
}
