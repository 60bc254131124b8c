//! Ends a test program and all processes that it started when nobody waits for them any more.
//!
//! The program that runs a test program leads a group of processes, and reads its standard input.
//! It ends the group when standard input is closed, on purpose or because the waiting process has
//! died.

use std::io;
use std::process::{self, Command, Stdio};
use std::thread;

/// The argument by which closing standard input ends the group.
pub(super) const UNTIL_STDIN_CLOSES: &str = "--until-stdin-closes";

/// Makes a program the leader of a new group, with a standard input that ends the group when it is
/// closed.
pub(super) fn leads(command: &mut Command) {
    command.arg(UNTIL_STDIN_CLOSES).stdin(Stdio::piped());
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(command, 0);
}

/// Ends the group that this program leads when standard input is closed.
pub(super) fn end_with_stdin() {
    thread::spawn(|| {
        // A standard input that fails counts as closed.
        let _ = io::copy(&mut io::stdin(), &mut io::sink());
        if cfg!(unix) {
            let end = format!("kill -s KILL -- -{}", process::id());
            let _ = Command::new("sh").args(["-c", &end]).status();
        }
        process::abort();
    });
}
