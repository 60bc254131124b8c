//! `test`: every test of the workspace, and an honest list of what could not run.
//!
//! A test that cannot run on this machine appends one line (its name and the reason) to the
//! file that the variable [`SKIPPED`] names, and returns. Cargo counts it as passed; the
//! list at the end does not.

use std::collections::BTreeSet;
use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use crate::shell::{self, Failure};
use crate::{Done, go, machine};

/// Names the CoreDNS that tests of names ask.
const COREDNS: &str = "UTURN_COREDNS";

/// Names the file that tests append to when they leave themselves out.
const SKIPPED: &str = "UTURN_SKIPPED";

pub(crate) fn run() -> Result<Done, Failure> {
    let packages = machine::install_packages();
    let list = shell::root().join("target").join("skipped.txt");
    forget(&list)?;

    let mut tests = shell::cargo(&["test", "--workspace", "--no-fail-fast"]);
    let coredns = go::coredns().map(|path| {
        tests.env(COREDNS, path);
    });
    let ended = shell::run(tests.env(SKIPPED, &list));

    let mut left_out = read(&list)?;
    for (what, done) in [("packages", packages), ("CoreDNS", coredns)] {
        if let Err(why) = done {
            left_out.insert(format!("{what}: {why}"));
        }
    }
    println!();
    for line in &left_out {
        println!("skipped: {line}");
    }
    if left_out.is_empty() {
        println!("no test was left out");
    }
    ended.map(|()| Done::Whole)
}

fn forget(list: &Path) -> Result<(), Failure> {
    match fs::remove_file(list) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            Err(Failure(format!("{} cannot be removed: {error}", list.display())))
        }
        _ => Ok(()),
    }
}

/// Every reason once, in order.
fn read(list: &Path) -> Result<BTreeSet<String>, Failure> {
    match fs::read_to_string(list) {
        Ok(text) => Ok(reasons(&text)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(BTreeSet::new()),
        Err(error) => Err(Failure(format!("{} cannot be read: {error}", list.display()))),
    }
}

fn reasons(text: &str) -> BTreeSet<String> {
    text.lines().map(str::trim).filter(|line| !line.is_empty()).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_is_said_once() {
        let read = reasons("lab l7-loop: no root\n\nlab l4: no root\nlab l7-loop: no root\n");
        assert_eq!(
            read.into_iter().collect::<Vec<_>>(),
            ["lab l4: no root", "lab l7-loop: no root"]
        );
    }

    #[test]
    fn nothing_skipped_leaves_no_file_and_that_is_fine() {
        assert_eq!(read(Path::new("no/such/file")), Ok(BTreeSet::new()));
    }
}
