//! A test program and all that it started, which end when nobody waits for them any more.
//!
//! The program that runs a test program leads a group of processes, and reads its standard input: it
//! ends the group when that is closed, by whoever waits or because they are gone.

use std::io;
use std::process::{self, Command, Stdio};
use std::thread;

/// The word that says that standard input decides.
pub(super) const UNTIL_STDIN_CLOSES: &str = "--until-stdin-closes";

/// Makes a program the leader of a group of its own, with a standard input to be closed.
pub(super) fn leads(command: &mut Command) {
    command.arg(UNTIL_STDIN_CLOSES).stdin(Stdio::piped());
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(command, 0);
}

/// Ends the group that this program leads when standard input is closed.
pub(super) fn end_with_stdin() {
    thread::spawn(|| {
        // One that cannot be read any more is closed too.
        let _ = io::copy(&mut io::stdin(), &mut io::sink());
        if cfg!(unix) {
            let end = format!("kill -s KILL -- -{}", process::id());
            let _ = Command::new("sh").args(["-c", &end]).status();
        }
        process::abort();
    });
}
