//! Checks that findings are named by the variants of `Code`, and that only its table has their
//! numbers (`UT101`). The examples in the command line's help are text, and tests may quote
//! numbers.

use std::path::Path;

use super::source;
use crate::shell::{self, Failure};

/// The file with the table.
const TABLE: &str = "crates/analysis/diagnose/src/code.rs";

/// Files that quote numbers: help and tests.
const TEXTS: [&str; 5] = [
    "uturn/src/cli.rs",
    "support/testing/src/node_faults.rs",
    "any_text.rs",
    "probe_forms.rs",
    "tests.rs",
];

/// Checks the sources of all crates except xtask.
///
/// # Errors
/// If other sources have numbers: all of them.
pub(super) fn check() -> Result<(), Failure> {
    let table = shell::root().join(TABLE);
    let mut found = Vec::new();
    for folder in source::crates()? {
        for file in source::all_files(&folder)? {
            let shown = file.strip_prefix(shell::root()).unwrap_or(&file);
            if file != table && shown.starts_with("crates") && !is_text(shown) {
                let text = source::read(&file)?;
                let numbers = numbers_of(&text).map(|code| format!("{}: {code}", shown.display()));
                found.extend(numbers);
            }
        }
    }
    if found.is_empty() {
        Ok(())
    } else {
        Err(Failure(format!("numbers of findings outside {TABLE}:\n{}", found.join("\n"))))
    }
}

fn is_text(file: &Path) -> bool {
    TEXTS.iter().any(|end| file.ends_with(end))
}

/// Returns the numbers in a source, outside comments and tests.
fn numbers_of(text: &str) -> impl Iterator<Item = &str> {
    let code = text.split("#[cfg(test)]").next().unwrap_or_default();
    let lines = code.lines().filter(|line| !line.trim_start().starts_with("//"));
    lines.flat_map(|line| line.split(|c: char| !c.is_ascii_alphanumeric())).filter(|word| {
        let number = word.strip_prefix("UT").unwrap_or_default();
        number.len() == 3 && number.bytes().all(|byte| byte.is_ascii_digit())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_found_in_code_and_texts() {
        let of = |text| numbers_of(text).collect::<Vec<_>>();
        assert_eq!(of("\"see UT101, UTC102 and UT9\""), ["UT101"]);
        assert_eq!(of("// UT101\n    /// UT102\nlet a = 1; // UT103\n"), ["UT103"]);
        assert_eq!(of("fn a() {}\n#[cfg(test)]\nmod tests { \"UT101\" }"), [""; 0]);
        assert!(is_text(Path::new("crates/uturn/src/cli.rs")));
        assert!(!is_text(Path::new("crates/cluster/live/src/cli.rs")));
    }

    #[test]
    fn the_tree_has_numbers_in_the_table_only() {
        assert!(source::read(&shell::root().join(TABLE)).unwrap().contains("= 101"));
        assert!(source::crates().unwrap().len() > 20);
        assert_eq!(check(), Ok(()));
    }
}
