//! The groups of files that are known to import each other, from `circles.txt`.

use std::collections::BTreeSet;

use crate::lint::source;
use crate::shell::{self, Failure};

/// The list, relative to the root. A line has a folder, the files of a group, and a reason.
const LIST: &str = "xtask/src/lint/circles.txt";

/// Files of one folder of which each imports each other one, directly or over others of the group.
#[derive(Debug)]
pub(super) struct Group {
    /// The folder, relative to the root.
    pub(super) folder: String,
    /// The names of the files, without `.rs`.
    pub(super) files: BTreeSet<String>,
    /// An import for each edge.
    pub(super) imports: Vec<String>,
}

impl Group {
    /// Returns how a line of the list begins.
    fn shown(&self) -> String {
        let files: Vec<&str> = self.files.iter().map(String::as_str).collect();
        format!("{}: {}", self.folder, files.join(", "))
    }
}

/// Returns the differences between the groups of the tree and the list.
///
/// # Errors
/// If the list cannot be read.
pub(super) fn faults(groups: &[Group]) -> Result<Vec<String>, Failure> {
    Ok(differences(groups, &source::read(&shell::root().join(LIST))?))
}

fn differences(groups: &[Group], list: &str) -> Vec<String> {
    let lines = list.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    let (mut known, mut faults) = (BTreeSet::new(), Vec::new());
    for line in lines {
        let parts: Vec<&str> = line.splitn(3, ": ").collect();
        match parts.as_slice() {
            [folder, files, reason] if !reason.trim().is_empty() => {
                known.insert(format!("{folder}: {files}"));
            }
            _ => faults.push(format!("{LIST}: expected FOLDER: FILES: REASON in {line:?}")),
        }
    }
    for group in groups {
        if !known.remove(&group.shown()) {
            let imports = group.imports.join("\n  ");
            let shown = group.shown();
            faults.push(format!(
                "files that import each other; cut an import, or give a reason in {LIST}:\n\
                 {shown}\n  {imports}"
            ));
        }
    }
    let gone = known.iter().map(|group| format!("{LIST}: no such group any more: {group}"));
    faults.extend(gone);
    faults
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn list_and_groups_must_be_equal() {
        let group = Group {
            folder: "crates/x/src".to_owned(),
            files: ["b", "a"].map(str::to_owned).into(),
            imports: vec!["a imports super::b".to_owned(), "b imports super::a".to_owned()],
        };
        let groups = [group];
        let line = "# Reasons.\n\ncrates/x/src: a, b: a list has lists\n";
        assert_eq!(differences(&groups, line), [""; 0]);
        let gone = differences(&[], line);
        assert_eq!(gone, [format!("{LIST}: no such group any more: crates/x/src: a, b")]);
        let new = differences(&groups, "");
        assert!(
            new[0].ends_with("\ncrates/x/src: a, b\n  a imports super::b\n  b imports super::a")
        );
        let no_reason = differences(&groups, "crates/x/src: a, b\n");
        assert!(no_reason[0].contains("expected FOLDER: FILES: REASON"), "{no_reason:?}");
        assert_eq!(no_reason.len(), 2);
    }
}
