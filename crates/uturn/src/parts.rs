//! Hands command lines over to the programs that have the commands.

use std::env;
use std::ffi::OsString;
use std::path::Path;
use std::process::{Command, ExitCode};

use uturn_cli::completion::Asked;
use uturn_cli::{Failure, Global, Part, Printer};

/// Has the program of a part run the command line, if the line names its command and the program is
/// installed. On Unix that program replaces this one, and this does not return.
///
/// # Errors
/// If this program has to run the line: these words. A line of a part that is not installed ends
/// with the part's command.
pub(crate) fn hand_over(words: Vec<OsString>) -> Result<ExitCode, Vec<OsString>> {
    if let Some(asked) = Asked::here() {
        let before = asked.before().get(1..).unwrap_or_default();
        let program = Part::named(before).and_then(|(part, _)| part.find().ok());
        return program.map_or(Err(words), |program| Ok(start(&program)));
    }
    let Some((part, at)) = Part::named(words.get(1..).unwrap_or_default()) else {
        return Err(words);
    };
    match part.find() {
        Ok(program) => Ok(start(&program)),
        Err(_) => {
            let options = words.into_iter().take(at + 2).filter(|word| word != "help");
            Err(options.collect())
        }
    }
}

/// Runs a program with the words of this process, this program's name included.
fn start(program: &Path) -> ExitCode {
    let why = match run(program) {
        Ok(ended) => return ended,
        Err(why) => why,
    };
    let failure = Failure::unavailable(format!("cannot start {}: {why}", program.display()));
    failure.report(&Printer::new(&Global::default())).into()
}

/// Replaces this process, so that its id, signals, standard streams and open files are the
/// program's. Returns only if that fails.
#[cfg(unix)]
fn run(program: &Path) -> std::io::Result<ExitCode> {
    use std::os::unix::process::CommandExt as _;

    let mut words = env::args_os();
    let mut command = Command::new(program);
    // The name is how the user calls this program: as a plugin of kubectl, for example.
    if let Some(name) = words.next() {
        command.arg0(name);
    }
    Err(command.args(words).exec())
}

/// Waits for the program, and ends as it does.
#[cfg(not(unix))]
fn run(program: &Path) -> std::io::Result<ExitCode> {
    let ended = Command::new(program).args(env::args_os().skip(1)).status()?;
    let code = ended.code().and_then(|code| u8::try_from(code).ok());
    Ok(code.map_or(ExitCode::FAILURE, ExitCode::from))
}
