//! Holds the table of environment variables in CONTRIBUTING.md against the tree: each `UTURN_…` of
//! the tree has a row, and each row names files that use its variable.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use crate::shell::{self, Failure};

use super::source;

/// The page with the table.
const PAGE: &str = "CONTRIBUTING.md";

/// What every variable begins with.
const PREFIX: &str = "UTURN_";

/// Folders and files of the tree that may name variables.
const PLACES: [&str; 9] = [
    ".ci",
    ".cargo",
    "README.md",
    "ARCHITECTURE.md",
    "conformance",
    "crates",
    "docs",
    "fuzz/targets",
    "xtask",
];

/// Checks that table and tree name the same variables.
pub(super) fn check() -> Result<(), Failure> {
    let root = shell::root();
    let rows = rows(&source::read(&root.join(PAGE))?);
    let mut used = BTreeMap::new();
    for place in PLACES {
        collect(&root.join(place), &mut used);
    }
    let faults = faults(&rows, &used, &|file| {
        let path = [root.join(file), root.join("crates").join(file)];
        path.iter().find_map(|path| fs::read_to_string(path).ok())
    });
    if faults.is_empty() {
        Ok(())
    } else {
        Err(Failure(format!("the table of variables in {PAGE}:\n{}", faults.join("\n"))))
    }
}

/// The files of each row, by the row's variable.
type Rows = BTreeMap<String, Vec<String>>;

/// Returns the differences between the table and the tree. `read` returns the text of a file.
fn faults(
    rows: &Rows,
    used: &BTreeMap<String, PathBuf>,
    read: &dyn Fn(&str) -> Option<String>,
) -> Vec<String> {
    let mut faults = Vec::new();
    for (name, file) in used.iter().filter(|(name, _)| !rows.contains_key(*name)) {
        faults.push(format!("{name} of {} has no row", file.display()));
    }
    for (name, files) in rows {
        if !used.contains_key(name) {
            faults.push(format!("{name} has a row, but the tree does not use it"));
        }
        if files.is_empty() {
            faults.push(format!("the row of {name} names no file"));
        }
        for file in files {
            // `uturn_testing::variables` has a constant for the name.
            let constant = name.strip_prefix(PREFIX);
            let is_used = |word: &str| word == name || word.rsplit("::").next() == constant;
            let uses = |text: String| words(&text).any(is_used);
            if !read(file).is_some_and(uses) {
                faults.push(format!("the row of {name} names {file}, which does not use it"));
            }
        }
    }
    faults
}

/// Returns the variables in the first column of each row of a page's tables, with the files in its
/// second column.
fn rows(page: &str) -> Rows {
    let mut rows = Rows::new();
    for line in page.lines().filter_map(|line| line.strip_prefix("| ")) {
        let mut cells = line.split('|').map(|cell| cell.split('`').skip(1).step_by(2));
        let (Some(variables), Some(files)) = (cells.next(), cells.next()) else { continue };
        let files: Vec<String> = files.map(str::to_owned).collect();
        for name in variables.filter_map(|variable| names(variable).next()) {
            rows.insert(name.to_owned(), files.clone());
        }
    }
    rows
}

/// Adds the variables that a file, or the files below a folder, name, each with one of the files.
fn collect(place: &Path, used: &mut BTreeMap<String, PathBuf>) {
    if let Ok(entries) = fs::read_dir(place) {
        let paths: BTreeSet<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
        paths.iter().for_each(|path| collect(path, used));
    } else if let Ok(text) = fs::read_to_string(place) {
        let shown = place.strip_prefix(shell::root()).unwrap_or(place);
        for name in names(&text) {
            used.entry(name.to_owned()).or_insert_with(|| shown.to_owned());
        }
    }
}

/// Returns the variables that a text names.
fn names(text: &str) -> impl Iterator<Item = &str> {
    words(text).filter(|word| word.len() > PREFIX.len() && word.starts_with(PREFIX))
}

/// Returns the names and paths of names that a text consists of.
fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_' && letter != ':')
        .map(|word| word.trim_matches(':'))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Variables that the tree does not have, and that are not found in this file.
    fn variable(name: &str) -> String {
        format!("{PREFIX}{name}")
    }

    #[test]
    fn table_and_tree_name_the_same_variables() {
        let page = format!(
            "| variable | read by |\n| --- | --- |\n| `{}` | `a.rs`, `b.rs` | x |\n\
             | `{}=N`, `{}` | `a.rs` | y |\n",
            variable("A"),
            variable("B"),
            variable("D")
        );
        let rows = rows(&page);
        assert_eq!(rows[&variable("A")], ["a.rs", "b.rs"]);
        let used = |names: &[&str]| {
            names.iter().map(|name| (variable(name), PathBuf::from("a.rs"))).collect()
        };
        let read = |file: &str| match file {
            "a.rs" => Some(format!("env::var(\"{}\"); number(variables::B, D)", variable("A"))),
            "b.rs" => Some("variables::A_LONGER_NAME".to_owned()),
            _ => None,
        };
        assert_eq!(
            faults(&rows, &used(&["A", "C", "D"]), &read),
            [
                format!("{} of a.rs has no row", variable("C")),
                format!("the row of {} names b.rs, which does not use it", variable("A")),
                format!("{} has a row, but the tree does not use it", variable("B")),
            ]
        );
    }

    #[test]
    fn names_are_whole_words() {
        let text = format!("{0}=2 $UTURN_* \"{0}_MORE\" xUTURN_C UTURN_", variable("A"));
        assert_eq!(names(&text).collect::<Vec<_>>(), [variable("A"), variable("A_MORE")]);
    }

    #[test]
    fn the_page_agrees_with_the_tree() {
        assert_eq!(check(), Ok(()));
    }
}
