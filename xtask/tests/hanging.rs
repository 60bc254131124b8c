//! A test program that hangs ends with all that it started when nobody waits for it any more.
#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on panics")]

use std::io::{BufRead as _, BufReader, Read as _};
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::process::{Command, Stdio};

#[test]
fn all_of_it_ends_when_standard_input_is_closed() {
    let mut runner = Command::new(env!("CARGO_BIN_EXE_xtask"))
        .args(["run-test", "--until-stdin-closes", "sh", "-c"])
        .arg("sleep 100000 & echo it runs; wait")
        .process_group(0)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(runner.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, "it runs\n");
    drop(runner.stdin.take());
    assert_eq!(runner.wait().unwrap().signal(), Some(9));
    // Every process of it has this open.
    let mut said = String::new();
    runner.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    assert_eq!(said, "");
}
