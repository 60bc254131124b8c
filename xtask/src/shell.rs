//! Runs other programs: shows each command, and names those that failed.

use std::ffi::OsStr;
use std::fmt;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The failure of a task.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Failure(pub(crate) String);

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Returns whether this runs in CI, where skipping something silently is a fault.
pub(crate) fn is_ci() -> bool {
    std::env::var("CI").is_ok_and(|value| value != "false" && !value.is_empty())
}

/// Returns a cargo command of this workspace. In CI the lock file must already be right.
pub(crate) fn cargo(words: &[&str]) -> Command {
    let mut command = plain_cargo(words);
    if is_ci() {
        command.env("CARGO_NET_RETRY", "5").arg("--locked");
    }
    command
}

/// Returns a cargo command that takes no `--locked`, or that has words after `--`.
pub(crate) fn plain_cargo(words: &[&str]) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    for (name, _) in std::env::vars_os().filter(|(name, _)| is_of_this_package(name)) {
        command.env_remove(name);
    }
    // What cargo keeps for the next build after a change costs a part of each build, and in CI there
    // is no next build.
    if is_ci() && std::env::var_os(INCREMENTAL).is_none() {
        command.env(INCREMENTAL, "0");
    }
    command.args(words).current_dir(root());
    command
}

/// The variable that decides whether cargo keeps what a later build after a change can use.
const INCREMENTAL: &str = "CARGO_INCREMENTAL";

/// Returns whether cargo set a variable to describe the package of this program.
///
/// Build scripts of dependencies watch these variables: with them, a build by `cargo xtask` would
/// invalidate the results of a plain `cargo test`, and the other way round.
fn is_of_this_package(name: &OsStr) -> bool {
    let name = name.as_encoded_bytes();
    name.starts_with(b"CARGO_PKG_") || name.starts_with(b"CARGO_MANIFEST_")
}

/// Returns the root folder of the workspace.
pub(crate) fn root() -> PathBuf {
    let here = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    here.parent().map_or(here.clone(), PathBuf::from)
}

/// Returns the folder of cargo's build results.
pub(crate) fn target() -> PathBuf {
    let target = std::env::var_os("CARGO_TARGET_DIR").map(PathBuf::from);
    target.map_or_else(|| root().join("target"), |path| root().join(path))
}

/// The programs of uturn.
pub(crate) const PROGRAMS: &[&str] =
    &["uturn", "uturn-lab", "uturn-lb", "uturn-cloud", "uturn-operator"];

/// Builds programs of the workspace.
///
/// With a test beside them, with the whole workspace and with the profile of tests, every crate has the
/// same features and is optimised as in `cargo xtask test`: nothing is built a second time, and the
/// target folder is half as large.
pub(crate) fn build(programs: &[&str]) -> Result<(), Failure> {
    let mut build = cargo(&["build", "--profile", "test", "--workspace", "--test", "live"]);
    for program in programs {
        build.args(["--bin", program]);
    }
    run(&mut build)
}

/// Returns the path of a built program. The build of the tests serves where nothing is measured: an
/// optimised one takes minutes.
pub(crate) fn built(program: &str) -> PathBuf {
    target().join("debug").join(program)
}

/// Runs a command, whose output the user sees.
pub(crate) fn run(command: &mut Command) -> Result<(), Failure> {
    let line = shown(command);
    println!("+ {line}");
    match command.stdin(Stdio::null()).status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(Failure(format!("`{line}` ended with {status}"))),
        Err(error) => Err(Failure(format!("`{line}` could not be started: {error}"))),
    }
}

/// Runs every command, even after one has failed, and names all that failed.
pub(crate) fn run_each(commands: impl IntoIterator<Item = Command>) -> Result<(), Failure> {
    let failures: Vec<String> = commands
        .into_iter()
        .filter_map(|mut command| run(&mut command).err().map(|failure| failure.0))
        .collect();
    if failures.is_empty() { Ok(()) } else { Err(Failure(failures.join("; "))) }
}

/// Returns the output of a command, or `None` if the command cannot be run or fails.
pub(crate) fn output(command: &mut Command) -> Option<String> {
    let output = command.stdin(Stdio::null()).stderr(Stdio::null()).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Fills a folder, unless it was filled from the same contents of these files.
pub(crate) fn fill_once(
    folder: &Path,
    files: &[&Path],
    fill: impl FnOnce() -> Result<(), Failure>,
) -> Result<(), Failure> {
    let mut text = Vec::new();
    for file in files {
        text.extend(fs::read(file).map_err(|error| named(file, &error))?);
    }
    let mark = folder.join("installed-from");
    if fs::read(&mark).is_ok_and(|earlier| earlier == text) {
        return Ok(());
    }
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            return Err(named(folder, &error));
        }
        _ => {}
    }
    fs::create_dir_all(folder).map_err(|error| named(folder, &error))?;
    fill()?;
    fs::write(&mark, text).map_err(|error| named(&mark, &error))
}

fn named(path: &Path, error: &std::io::Error) -> Failure {
    Failure(format!("{}: {error}", path.display()))
}

/// Returns a seed that depends on the commit. Returns `None` outside a repository.
pub(crate) fn number_of_commit() -> Option<u32> {
    let git = Command::new("git").args(["rev-parse", "HEAD"]).current_dir(root()).output();
    let hash = String::from_utf8(git.ok()?.stdout).ok()?;
    u32::from_str_radix(hash.get(..8)?, 16).ok()
}

/// Formats a command as a user would type it.
fn shown(command: &Command) -> String {
    let program = PathBuf::from(command.get_program());
    let name = program.file_name().unwrap_or(program.as_os_str()).to_string_lossy();
    let words = command.get_args().map(|word| word.to_string_lossy());
    std::iter::once(name).chain(words).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_failed_is_named() {
        let missing = || Command::new("no-such-program-anywhere");
        let failure = run_each([missing(), missing()]).unwrap_err().0;
        assert_eq!(failure.matches("no-such-program-anywhere").count(), 2, "{failure}");
    }

    #[test]
    fn the_root_holds_the_workspace() {
        assert!(root().join("Cargo.lock").is_file());
    }
}
