//! Runs several test programs at once: the longest of them mostly wait.
//!
//! Cargo runs one program after another. So cargo is told to run [`super::runner`], which only
//! records in a [`queue`] how cargo would run each program. Then the programs are run from here,
//! each through the same runner. The output of a program is shown when the program has ended, by
//! itself or because it hangs.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::Path;
use std::process::{Child, Command, ExitStatus};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use uturn_testing::variables;

use super::group;
use super::queue::{self, Program};
use super::runner::WORD;
use crate::shell::{self, Failure};

/// The number of programs that run at once, unless a variable states another.
const USUAL: usize = 3;

/// The programs that take longest, which are started first: what is started last would run alone.
const FIRST: [&str; 3] = ["uturn-redact all", "uturn-diagnose all", "uturn-cloud-cli cli"];

/// The longest time without output: a program that prints nothing for longer hangs. The end of each
/// test is printed, and no test takes minutes.
const SILENCE: Duration = Duration::from_secs(20 * 60);

/// Runs all programs of the queue through the runner, with these additional environment variables.
pub(super) fn run(queue: &str, runner: &Path, given: &[(&str, OsString)]) -> Result<(), Failure> {
    let mut programs = queue::read(queue);
    programs.sort_by_key(|program| !FIRST.contains(&program.name().as_str()));
    let output = shell::target().join("test-output");
    fs::create_dir_all(&output)
        .map_err(|why| Failure(format!("{} cannot be made: {why}", output.display())))?;
    let at_once = variables::number(variables::TEST_PROGRAMS).unwrap_or(USUAL);
    println!("{} test programs, {at_once} at once", programs.len());
    let (next, failed) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    thread::scope(|scope| {
        for _ in 0..at_once.max(1) {
            scope.spawn(|| {
                while let Some(program) = programs.get(next.fetch_add(1, Ordering::Relaxed)) {
                    if let Err(why) = run_one(program, runner, given, &output)
                        && let Ok(mut failed) = failed.lock()
                    {
                        failed.push(why);
                    }
                }
            });
        }
    });
    let failed = failed.into_inner().unwrap_or_default();
    if failed.is_empty() { Ok(()) } else { Err(Failure(failed.join("; "))) }
}

/// Runs the program, then shows its output.
fn run_one(
    program: &Program,
    runner: &Path,
    given: &[(&str, OsString)],
    output: &Path,
) -> Result<(), String> {
    let file = output.join(format!("{}.txt", program.file()));
    let name = program.name();
    let ended = start(program, runner, given, &file);
    let printed = fs::read(&file).unwrap_or_default();
    let mut stdout = io::stdout().lock();
    // A reader that is gone does not matter, only how the program ended.
    let _ = writeln!(stdout, "\n     Running {name}");
    let _ = stdout.write_all(&printed);
    let _ = stdout.flush();
    match ended {
        Ok(Some(status)) if status.success() => fs::remove_file(&file).or(Ok(())),
        Ok(Some(_)) => Err(format!("{name} failed")),
        Ok(None) => {
            let minutes = SILENCE.as_secs() / 60;
            Err(format!("{name} printed nothing for {minutes} minutes and was ended"))
        }
        Err(why) => Err(format!("{name} could not be run: {why}")),
    }
}

/// Starts the program and waits for its end. The output goes to a file: a pipe would stay open
/// as long as any process lives that a test has started.
fn start(
    program: &Program,
    runner: &Path,
    given: &[(&str, OsString)],
    file: &Path,
) -> io::Result<Option<ExitStatus>> {
    let printed = File::create(file)?;
    let mut command = Command::new(runner);
    group::leads(command.arg(WORD));
    command.args(&program.words).current_dir(&program.folder);
    command.envs(program.variables.iter().cloned()).envs(given.iter().cloned());
    command.stdout(printed.try_clone()?).stderr(printed.try_clone()?);
    end_of(command.spawn()?, &printed, SILENCE)
}

/// Waits for the end of a program that prints to a file. If the program prints nothing for
/// `silence`, closes its standard input to make it end, and returns `None`.
fn end_of(mut program: Child, printed: &File, silence: Duration) -> io::Result<Option<ExitStatus>> {
    let stdin = program.stdin.take();
    let (sender, ended) = channel();
    thread::spawn(move || sender.send(program.wait()));
    let mut wait = silence;
    loop {
        if let Ok(status) = ended.recv_timeout(wait) {
            return status.map(Some);
        }
        let silent = printed.metadata()?.modified()?.elapsed().unwrap_or_default();
        if silent >= silence {
            break;
        }
        wait = silence - silent;
    }
    drop(stdin);
    // The limit decides, even if it ends by itself now.
    let _ = ended.recv();
    Ok(None)
}

#[cfg(test)]
mod tests {
    use std::env;
    use std::process::Stdio;

    use super::*;

    /// Starts a program that ends when its standard input is closed, and not before.
    fn reads(printed: &File) -> Child {
        let mut command = Command::new("cat");
        command.stdin(Stdio::piped()).stdout(printed.try_clone().unwrap());
        command.spawn().unwrap()
    }

    #[cfg(unix)]
    #[test]
    fn a_program_that_prints_nothing_is_told_to_end() {
        let file = env::temp_dir().join(format!("uturn-xtask-silent-{}", std::process::id()));
        let printed = File::create(&file).unwrap();
        assert_eq!(end_of(reads(&printed), &printed, Duration::from_millis(1)).unwrap(), None);
        let mut done = Command::new("true");
        let done = done.stdin(Stdio::piped()).spawn().unwrap();
        let ended = end_of(done, &printed, SILENCE).unwrap();
        assert!(ended.is_some_and(|status| status.success()));
        fs::remove_file(file).unwrap();
    }
}
