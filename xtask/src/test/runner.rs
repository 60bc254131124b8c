//! Runs a test program, and records the time of each test and the output of those that failed.
//!
//! Every test program is started through this one ([`WORD`]), which passes on the program's output
//! and records the time that libtest reports for each test. libtest reports times only if unstable
//! options are allowed, so they are allowed for that one process; this changes no build. A program
//! with a harness of its own is timed as a whole. The failures that libtest reports are recorded
//! too: in the output they are far up.

use std::env;
use std::fs::{self, OpenOptions};
use std::io::{self, BufRead as _, BufReader, IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::Instant;

use uturn_testing::variables;

use super::group;
use super::queue::{self, name_of};
use crate::shell::{self, Failure};

/// The first argument with which cargo calls this program back.
pub(crate) const WORD: &str = "run-test";

/// Copies this program into the target folder, and returns the copy, which starts the test programs.
/// Cargo replaces the program itself when it builds the workspace, in which its dependencies have
/// other features.
pub(super) fn install() -> Result<PathBuf, Failure> {
    let copy = shell::target().join("test-runner");
    let installed = || {
        fs::create_dir_all(shell::target())?;
        match fs::remove_file(&copy) {
            Err(why) if why.kind() != io::ErrorKind::NotFound => return Err(why),
            _ => {}
        }
        fs::copy(env::current_exe()?, &copy)
    };
    match installed() {
        Ok(_) => Ok(copy),
        Err(why) => Err(Failure(format!("{} cannot be written: {why}", copy.display()))),
    }
}

/// Returns the option that makes cargo start tests through a program.
pub(super) fn cargo_option(program: &Path) -> String {
    let program = program.display().to_string();
    format!("target.'cfg(all())'.runner=[{program:?}, {WORD:?}]")
}

/// Runs one test program with its arguments, or records it in the queue if there is one.
pub(crate) fn run(words: &[String]) -> ExitCode {
    let words = match words.split_first() {
        Some((word, rest)) if word == group::UNTIL_STDIN_CLOSES => {
            group::end_with_stdin();
            rest
        }
        _ => words,
    };
    let Some((program, arguments)) = words.split_first() else { return ExitCode::from(2) };
    let ended = match queue::note(words) {
        Ok(true) => Ok(ExitCode::SUCCESS),
        Ok(false) if is_libtest(Path::new(program)) => run_libtest(program, arguments),
        Ok(false) => run_whole(program, arguments),
        Err(why) => Err(why),
    };
    match ended {
        Ok(code) => code,
        Err(why) => {
            eprintln!("error: {program} could not be run: {why}");
            ExitCode::FAILURE
        }
    }
}

fn run_libtest(program: &str, arguments: &[String]) -> io::Result<ExitCode> {
    let colour = if io::stdout().is_terminal() { "always" } else { "never" };
    let mut child = Command::new(program)
        .args(arguments)
        .args(["-Z", "unstable-options", "--report-time", "--color", colour])
        .env("RUSTC_BOOTSTRAP", "1")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()?;
    let (mut times, mut failures) = (String::new(), Vec::new());
    let printed = child.stdout.take().map(BufReader::new);
    for line in printed.into_iter().flat_map(|printed| printed.split(b'\n')) {
        let mut line = line?;
        if let Some((name, seconds)) = time(&String::from_utf8_lossy(&line)) {
            times.push_str(&format!("{seconds:.3} {}: {name}\n", name_of(program)));
        }
        line.push(b'\n');
        if !failures.is_empty() || line == b"failures:\n" {
            failures.extend_from_slice(&line);
        }
        io::stdout().write_all(&line)?;
    }
    note(variables::TEST_TIMES, times.as_bytes())?;
    let ended = child.wait()?;
    if !ended.success() {
        let name = format!("{} failed ({ended})\n", name_of(program));
        note(variables::TEST_FAILURES, &[name.as_bytes(), &failures].concat())?;
    }
    Ok(code(ended.code()))
}

fn run_whole(program: &str, arguments: &[String]) -> io::Result<ExitCode> {
    let start = Instant::now();
    let status = Command::new(program).args(arguments).stdin(Stdio::null()).status()?;
    let (name, took) = (name_of(program), start.elapsed().as_secs_f64());
    note(variables::TEST_TIMES, format!("{took:.3} {name}: all of it\n").as_bytes())?;
    if !status.success() {
        note(variables::TEST_FAILURES, format!("{name} failed ({status})\n").as_bytes())?;
    }
    Ok(code(status.code()))
}

fn code(code: Option<i32>) -> ExitCode {
    code.and_then(|code| u8::try_from(code).ok()).map_or(ExitCode::FAILURE, ExitCode::from)
}

/// Appends to the file that a variable names: seconds and a name for each test, or failures as
/// libtest reports them. Uses a single write, so that lines of programs that run at once do not
/// mix.
fn note(variable: &str, lines: &[u8]) -> io::Result<()> {
    let Some(file) = env::var_os(variable) else { return Ok(()) };
    OpenOptions::new().create(true).append(true).open(file)?.write_all(lines)
}

/// Returns whether a test program has libtest's harness, that is, its crate's `Cargo.toml` does not
/// say `harness = false`.
fn is_libtest(program: &Path) -> bool {
    let Some(folder) = env::var_os("CARGO_MANIFEST_DIR") else { return false };
    let Ok(manifest) = fs::read_to_string(Path::new(&folder).join("Cargo.toml")) else {
        return false;
    };
    let program = program.to_string_lossy();
    let name = name_of(&program);
    !without_harness(&manifest).any(|other| other == name)
}

/// Returns the targets of a manifest that have a harness of their own.
fn without_harness(manifest: &str) -> impl Iterator<Item = &str> {
    let targets = manifest.split("\n[[").filter(|target| target.contains("harness = false"));
    targets.filter_map(|target| {
        let line = target.lines().find_map(|line| line.strip_prefix("name = "))?;
        Some(line.trim().trim_matches('"'))
    })
}

/// Reads the name and the time of a line such as `test a::b ... ok <0.123s>`.
fn time(line: &str) -> Option<(&str, f64)> {
    let (name, rest) = line.strip_prefix("test ")?.split_once(" ... ")?;
    let seconds = rest.split_once('<')?.1.split_once("s>")?.0;
    Some((name, seconds.parse().ok()?))
}

/// Returns the slowest tests of a file of times, the slowest first.
pub(super) fn slowest(times: &str, count: usize) -> Vec<(f64, &str)> {
    let mut all: Vec<(f64, &str)> = times
        .lines()
        .filter_map(|line| line.split_once(' '))
        .filter_map(|(seconds, name)| Some((seconds.parse().ok()?, name)))
        .collect();
    all.sort_by(|(a, first), (b, second)| b.total_cmp(a).then(first.cmp(second)));
    all.truncate(count);
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_from_what_libtest_prints() {
        assert_eq!(time("test a::b ... ok <0.123s>"), Some(("a::b", 0.123)));
        assert_eq!(time("test c ... \u{1b}[32mok\u{1b}[m <12.500s>"), Some(("c", 12.5)));
        for other in ["test a ... ok", "test a ... ignored", "running 3 tests", "test <1.0s>"] {
            assert_eq!(time(other), None, "{other}");
        }
    }

    #[test]
    fn the_slowest_come_first() {
        let times = "0.100 a: x\n2.000 b: y\n1.500 a: z\nnot a time\n";
        assert_eq!(slowest(times, 2), [(2.0, "b: y"), (1.5, "a: z")]);
    }

    #[test]
    fn programs_with_their_own_harness_are_found_in_the_manifest() {
        let manifest = "[package]\nname = \"a\"\n\n[[test]]\nname = \"kernel\"\npath = \"x.rs\"\n\
                        harness = false\n\n[[test]]\nname = \"other\"\n\n[[bench]]\n\
                        name = \"speed\"\nharness = false\n";
        assert_eq!(without_harness(manifest).collect::<Vec<_>>(), ["kernel", "speed"]);
    }
}
