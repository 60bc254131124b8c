//! Adds context to system errors, and runs programs.

use std::io::{self, Write};
use std::path::PathBuf;
use std::process::{Command, Stdio};

use crate::LabError;

/// Adds the action that failed to an error.
pub(crate) trait During<T> {
    fn during(self, doing: &str) -> Result<T, LabError>;
}

impl<T, E: Into<io::Error>> During<T> for Result<T, E> {
    fn during(self, doing: &str) -> Result<T, LabError> {
        self.map_err(|error| LabError::System { doing: doing.into(), source: error.into() })
    }
}

/// Runs a program to its end with `input`. The inner result has its standard error if it failed.
pub(crate) fn run(
    program: &str,
    arguments: &[&str],
    input: &str,
) -> io::Result<Result<(), String>> {
    let mut child = Command::new(find(program).unwrap_or_else(|| program.into()))
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()?;
    let written = child.stdin.take().map_or(Ok(()), |mut stdin| stdin.write_all(input.as_bytes()));
    let output = child.wait_with_output()?;
    if output.status.success() {
        written?;
        Ok(Ok(()))
    } else {
        let stderr = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        let status = output.status;
        Ok(Err(if stderr.is_empty() { format!("{program}: {status}") } else { stderr }))
    }
}

/// Runs a program and returns its standard output.
pub(crate) fn output(program: &str, arguments: &[&str]) -> io::Result<String> {
    let output = Command::new(find(program).unwrap_or_else(|| program.into()))
        .args(arguments)
        .stdin(Stdio::null())
        .output()?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let stderr = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    Err(io::Error::other(format!("{program}: {}: {stderr}", output.status)))
}

/// Searches for a program in the search path and in the `sbin` folders.
pub(crate) fn find(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).chain(["/usr/sbin".into(), "/sbin".into()]);
    folders.map(|folder| folder.join(program)).find(|file| file.is_file())
}
