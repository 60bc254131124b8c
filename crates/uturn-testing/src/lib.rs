//! What tests of several crates share.
//!
//! **Owns** how a test says that it left itself out ([`left_out`]), and how it asks real
//! tools in a network namespace of its own ([`in_a_namespace`]). **Refuses** everything
//! that only one crate's tests need, and to be more than a dev-dependency (but of
//! `uturn-conformance`, which is nothing but a test).
//! **Start reading** below; `xtask/src/test.rs` has the other end.

#![expect(clippy::print_stdout, reason = "a test's words to the person who runs it")]

use std::fmt::Display;
use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::process::{Command, Stdio};
use std::thread;

/// Names the file in which `cargo xtask test` collects what was left out.
pub const LIST: &str = "UTURN_SKIPPED";

/// Says that a test, or a part of one, cannot run on this machine, and why. The test then
/// returns: cargo counts it as passed, `cargo xtask test` lists it as skipped.
///
/// # Panics
/// When the list cannot be written: a test must not pass in silence.
pub fn left_out(what: &str, why: impl Display) {
    let line = line(what, &why.to_string());
    println!("skipped: {line}");
    if let Some(list) = std::env::var_os(LIST) {
        append(list.as_ref(), &line).expect("the list of skipped tests can be written");
    }
}

/// Runs a shell script in a network namespace of its own, which is gone when it ends, and
/// gives what it printed, or what it complained of.
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
    // A tool that stops early says why by itself.
    let _ = writer.join();
    match output.status.success() {
        true => String::from_utf8(output.stdout).map_err(|why| why.to_string()),
        false => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
    }
}

/// One line, whatever the reason looks like.
fn line(what: &str, why: &str) -> String {
    let why: Vec<&str> = why.split_whitespace().collect();
    format!("{what}: {}", why.join(" "))
}

/// A single write, so that lines of tests that run at once do not mix.
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
