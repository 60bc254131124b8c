//! Runs several test programs at once: the longest of them mostly wait.
//!
//! Cargo runs one program after another. So cargo is told to run [`super::runner`], which only
//! records in a queue how cargo would run each program. Then the programs are run from here, each
//! through the same runner. The output of a program is shown when the program has ended, by itself
//! or because it hangs.

use std::env;
use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use super::{group, runner};
use crate::shell::{self, Failure};

/// The variable with the path of the file in which programs are recorded instead of being run.
pub(super) const QUEUE: &str = "UTURN_TEST_QUEUE";

/// The number of programs that run at once, unless the variable [`AT_ONCE`] states another.
const USUAL: usize = 2;

/// The variable with the number of programs that run at once.
const AT_ONCE: &str = "UTURN_TEST_PROGRAMS";

/// The longest time without output: a program that prints nothing for longer hangs. The end of each
/// test is printed, and no test takes minutes.
const SILENCE: Duration = Duration::from_secs(20 * 60);

/// The character that ends a field of an entry.
const FIELD: char = '\u{1f}';

/// The character that ends an entry.
const ENTRY: char = '\u{1e}';

/// A test program as cargo runs it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Program {
    folder: String,
    /// The variables that cargo sets.
    variables: Vec<(String, String)>,
    /// The program and its arguments.
    words: Vec<String>,
}

/// Records a program in the queue. Returns `false` if there is no queue, or if the program's file
/// will not last: the programs of documentation tests are removed at once.
pub(super) fn note(words: &[String]) -> io::Result<bool> {
    let Some(queue) = env::var_os(QUEUE) else { return Ok(false) };
    let folder = words.first().and_then(|program| Path::new(program).parent());
    if folder.and_then(Path::file_name).is_none_or(|name| name != "deps") {
        return Ok(false);
    }
    let text = |text: OsString| text.into_string().ok();
    let variables = env::vars_os()
        .filter_map(|(name, value)| Some((text(name)?, text(value)?)))
        .filter(|(name, _)| name.starts_with("CARGO") || name.ends_with("LIBRARY_PATH"))
        .collect();
    let folder = env::current_dir()?.display().to_string();
    // Cargo's own `--quiet` is not meant for the programs.
    let words = words.iter().filter(|word| *word != "--quiet").cloned().collect();
    let program = Program { folder, variables, words };
    let mut queue = OpenOptions::new().create(true).append(true).open(queue)?;
    queue.write_all(program.entry().as_bytes())?;
    Ok(true)
}

/// Runs all programs of the queue, with these additional environment variables.
pub(super) fn run(queue: &str, variables: &[(&str, OsString)]) -> Result<(), Failure> {
    let programs: Vec<Program> = queue.split_terminator(ENTRY).filter_map(Program::read).collect();
    let output = shell::target().join("test-output");
    fs::create_dir_all(&output)
        .map_err(|why| Failure(format!("{} cannot be made: {why}", output.display())))?;
    let at_once = env::var(AT_ONCE).ok().and_then(|count| count.parse().ok()).unwrap_or(USUAL);
    println!("{} test programs, {at_once} at once", programs.len());
    let (next, failed) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    thread::scope(|scope| {
        for _ in 0..at_once.max(1) {
            scope.spawn(|| {
                while let Some(program) = programs.get(next.fetch_add(1, Ordering::Relaxed)) {
                    if let Err(why) = program.run(variables, &output)
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

impl Program {
    /// Runs the program, then shows its output.
    fn run(&self, variables: &[(&str, OsString)], output: &Path) -> Result<(), String> {
        let file = output.join(format!("{}.txt", self.file()));
        let name = self.name();
        let ended = self.start(variables, &file);
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
    fn start(&self, variables: &[(&str, OsString)], file: &Path) -> io::Result<Option<ExitStatus>> {
        let printed = File::create(file)?;
        let mut command = Command::new(env::current_exe()?);
        group::leads(command.arg(runner::WORD));
        command.args(&self.words).current_dir(&self.folder);
        command.envs(self.variables.iter().cloned()).envs(variables.iter().cloned());
        command.stdout(printed.try_clone()?).stderr(printed.try_clone()?);
        end_of(command.spawn()?, &printed, SILENCE)
    }

    /// Returns the name of the program's file, which no other program has.
    fn file(&self) -> String {
        let program = PathBuf::from(self.words.first().map_or("", String::as_str));
        program.file_name().unwrap_or_default().to_string_lossy().into_owned()
    }

    /// Returns the names of the program's package and of the program.
    fn name(&self) -> String {
        let package = self.variables.iter().find(|(name, _)| name == "CARGO_PKG_NAME");
        let package = package.map_or("", |(_, value)| value);
        format!("{package} {}", runner::name_of(&self.file()))
    }

    fn entry(&self) -> String {
        let mut fields = vec![self.folder.clone(), self.variables.len().to_string()];
        for (name, value) in &self.variables {
            fields.extend([name.clone(), value.clone()]);
        }
        fields.extend(self.words.iter().cloned());
        let fields: String = fields.iter().map(|field| format!("{field}{FIELD}")).collect();
        format!("{fields}{ENTRY}")
    }

    fn read(entry: &str) -> Option<Self> {
        let mut fields = entry.split_terminator(FIELD).map(str::to_owned);
        let folder = fields.next()?;
        let count: usize = fields.next()?.parse().ok()?;
        let variables =
            (0..count).map(|_| Some((fields.next()?, fields.next()?))).collect::<Option<_>>()?;
        Some(Self { folder, variables, words: fields.collect() })
    }
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
    use std::process::Stdio;

    use super::*;

    #[test]
    fn a_program_comes_back_from_the_queue() {
        let program = Program {
            folder: "/a folder".into(),
            variables: vec![
                ("CARGO_PKG_NAME".into(), "package".into()),
                ("CARGO_X".into(), "".into()),
            ],
            words: vec!["/target/debug/deps/tests-0123".into(), String::new(), "--all".into()],
        };
        let queue = program.entry() + &program.entry();
        let read: Vec<Program> = queue.split_terminator(ENTRY).filter_map(Program::read).collect();
        assert_eq!(read, [program.clone(), program.clone()]);
        assert_eq!((program.name(), program.file()), ("package tests".into(), "tests-0123".into()));
    }

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

    #[test]
    fn what_will_not_last_is_not_noted() {
        assert!(!note(&["/tmp/rustdoctest/rust_out".to_owned()]).unwrap());
    }
}
