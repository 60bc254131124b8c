//! Helpers shared by the tests of several crates.
//!
//! **Owns** reporting a skipped test ([`left_out`]), and running real tools in a new network
//! namespace ([`in_a_namespace`]). **Refuses** everything that only one crate's tests need, and
//! to be more than a dev-dependency (except of `uturn-conformance`, which is a test as a whole).
//! **Start reading** below; `xtask/src/test.rs` collects the reports.

#![expect(clippy::print_stdout, reason = "a test's words to the person who runs it")]

use std::fmt::Display;
use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::process::{Command, Stdio};
use std::thread;

/// The environment variable with the file in which `cargo xtask test` collects skipped tests.
pub const LIST: &str = "UTURN_SKIPPED";

/// Reports that a test, or a part of one, cannot run on this machine, and why. The test then
/// returns: cargo counts it as passed, `cargo xtask test` lists it as skipped.
///
/// # Panics
/// If the list cannot be written: a skipped test must be reported.
pub fn left_out(what: &str, why: impl Display) {
    let line = line(what, &why.to_string());
    println!("skipped: {line}");
    if let Some(list) = std::env::var_os(LIST) {
        append(list.as_ref(), &line).expect("the list of skipped tests can be written");
    }
}

/// Runs a shell script in a new network namespace, which ends with it, and returns its standard
/// output.
///
/// # Errors
/// Returns the script's standard error if it fails, or why it cannot be started.
pub fn in_a_namespace(script: &str, input: &str) -> Result<String, String> {
    let mut child = Command::new("unshare")
        .args(["-n", "sh", "-ec", script])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|why| format!("unshare: {why}"))?;
    let stdin = child.stdin.take();
    let input = input.to_owned();
    let writer =
        thread::spawn(move || stdin.map_or(Ok(()), |mut stdin| stdin.write_all(input.as_bytes())));
    let output = child.wait_with_output().map_err(|why| why.to_string())?;
    // A tool that stops early reports why.
    let _ = writer.join();
    match output.status.success() {
        true => String::from_utf8(output.stdout).map_err(|why| why.to_string()),
        false => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
    }
}

/// Joins the report into one line.
fn line(what: &str, why: &str) -> String {
    let why: Vec<&str> = why.split_whitespace().collect();
    format!("{what}: {}", why.join(" "))
}

/// Appends with a single write, so that lines of concurrent tests do not mix.
fn append(list: &std::path::Path, line: &str) -> io::Result<()> {
    OpenOptions::new()
        .create(true)
        .append(true)
        .open(list)?
        .write_all(format!("{line}\n").as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_of_many_lines_is_one_line() {
        assert_eq!(
            line("lab l7-loop", "no root:\n  run it\tas root\n"),
            "lab l7-loop: no root: run it as root"
        );
    }

    #[test]
    fn lines_are_added_to_what_is_there() {
        let list = std::env::temp_dir().join(format!("uturn-testing-{}", std::process::id()));
        append(&list, "a: b").unwrap();
        append(&list, "c: d").unwrap();
        let text = std::fs::read_to_string(&list).unwrap();
        std::fs::remove_file(&list).unwrap();
        assert_eq!(text, "a: b\nc: d\n");
    }
}
