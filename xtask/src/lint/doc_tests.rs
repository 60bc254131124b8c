//! Tests in the documentation. rustdoc takes a second or more for each crate, even for one without
//! such tests, so crates without them say `doctest = false`. Tests that would not run are found
//! here.

use std::path::Path;

use crate::shell::{self, Failure};

use super::source;

/// The line of a manifest that turns the tests of the documentation off.
const OFF: &str = "doctest = false";

/// The words behind a fence for which rustdoc runs the code. A fence without words is one of them.
const RUN: [&str; 6] =
    ["rust", "no_run", "should_panic", "compile_fail", "edition2021", "edition2024"];

/// Checks that every crate with tests in its documentation runs them.
///
/// # Errors
/// If there are crates that do not: all places with such tests.
pub(super) fn check() -> Result<(), Failure> {
    let mut lost = Vec::new();
    for sources in source::crates()? {
        let manifest = sources.parent().unwrap_or(&sources).join("Cargo.toml");
        if !source::read(&manifest)?.lines().any(|line| line.trim() == OFF) {
            continue;
        }
        for file in source::files(&sources)? {
            lost.extend(tests(&source::read(&file)?).map(|line| place(&file, line)));
        }
    }
    if lost.is_empty() {
        return Ok(());
    }
    Err(Failure(format!(
        "tests in documentation that do not run, because their crate's Cargo.toml says {OFF}: \
         take that line out, or say what else it is (```text):\n{}",
        lost.join("\n")
    )))
}

fn place(file: &Path, line: usize) -> String {
    let file = file.strip_prefix(shell::root()).unwrap_or(file);
    format!("{}:{line}", file.display())
}

/// Returns the line of each fence in a comment of documentation that begins a test.
fn tests(text: &str) -> impl Iterator<Item = usize> + use<'_> {
    let mut is_open = false;
    text.lines().enumerate().filter_map(move |(at, line)| {
        let line = line.trim_start();
        let Some(comment) = line.strip_prefix("///").or_else(|| line.strip_prefix("//!")) else {
            is_open = false;
            return None;
        };
        let words = comment.trim().strip_prefix("```")?;
        is_open = !is_open;
        (is_open && is_run(words)).then_some(at + 1)
    })
}

fn is_run(words: &str) -> bool {
    let mut words = words.split([',', ' ']).filter(|word| !word.is_empty());
    words.next().is_none_or(|first| RUN.contains(&first))
}

#[cfg(test)]
mod tests {
    #[test]
    fn code_is_a_test_and_other_blocks_are_not() {
        let text = "//! ```text\n//! a picture\n//! ```\n\nfn f() {}\n\n/// ```\n/// f();\n/// ```\n\
                    ///\n/// ```rust,no_run\n/// f();\n/// ```\n/// ```yaml\n/// a: b\n/// ```\n";
        assert_eq!(super::tests(text).collect::<Vec<_>>(), [7, 11]);
    }
}
