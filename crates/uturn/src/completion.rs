//! Completion: prints candidates for the cursor of a half-typed line.
//!
//! A shell's script calls this program with `UTURN_COMPLETE=SHELL`, and with the words of the line
//! after `--`. kubectl calls it as `kubectl_complete-uturn`. Names of objects come from the source
//! that the line names for the cluster. Nothing but candidates is ever printed: no error, and no
//! question.

mod line;
mod shell;
mod source;
mod values;

use std::env;
use std::ffi::OsString;
use std::io::Write as _;
use std::path::Path;
use std::sync::OnceLock;

use clap::Command;
use clap_complete::env::{EnvCompleter, Shells};

use self::line::Line;
use self::shell::{Bash, Kubectl};
pub(crate) use self::values::{
    checked, client, code, context, namespace, node, proxy_mode, scenario, subject, target, topic,
};
use crate::called::PLUGIN;

/// The variable with the shell that candidates are for.
const VARIABLE: &str = "UTURN_COMPLETE";
/// The name under which kubectl asks for candidates.
const KUBECTL_COMPLETE: &str = "kubectl_complete-uturn";

const SHELLS: Shells<'_> = Shells(&[
    &Bash,
    &clap_complete::env::Elvish,
    &clap_complete::env::Fish,
    &Kubectl,
    &clap_complete::env::Powershell,
    &clap_complete::env::Zsh,
]);

/// The line whose end is completed.
static LINE: OnceLock<Line> = OnceLock::new();

/// Prints candidates for a line of this command if a shell asks for them. Returns whether one does.
pub(crate) fn answer(command: impl FnOnce() -> Command) -> bool {
    let mut words = env::args_os();
    let program = words.next().unwrap_or_default();
    let is_asked_by_kubectl =
        Path::new(&program).file_stem().is_some_and(|name| name == KUBECTL_COMPLETE);
    let (shell, words) = if is_asked_by_kubectl {
        (OsString::from("kubectl"), [PLUGIN.into()].into_iter().chain(words).collect())
    } else {
        match env::var_os(VARIABLE).filter(|shell| !shell.is_empty()) {
            Some(shell) => (shell, words.skip_while(|word| word != "--").skip(1).collect()),
            None => return false,
        }
    };
    if let Some(shell) = shell.to_str().and_then(|name| SHELLS.completer(name)) {
        print(command(), shell, words);
    }
    true
}

fn print(mut command: Command, shell: &dyn EnvCompleter, words: Vec<OsString>) {
    let _ = LINE.set(Line::of(&words));
    let mut text = Vec::new();
    let folder = env::current_dir().ok();
    if shell.write_complete(&mut command, words, folder.as_deref(), &mut text).is_ok() {
        // A shell that has ended needs no candidates.
        let _ = std::io::stdout().write_all(&text);
    }
}

/// Returns the script that a shell reads at its start.
pub(crate) fn script(shell: &str) -> Option<String> {
    let program = env::args().next().unwrap_or_default();
    let path = Path::new(&program);
    let name = path.file_stem().and_then(|name| name.to_str()).filter(|name| *name == PLUGIN);
    let name = name.unwrap_or("uturn");
    // A program that is not on the PATH is called by its path.
    let completer = match path.components().count() {
        0 | 1 => name.to_owned(),
        _ => std::path::absolute(path).unwrap_or(path.to_owned()).display().to_string(),
    };
    let mut script = Vec::new();
    let completer_of_shell = SHELLS.completer(shell)?;
    completer_of_shell.write_registration(VARIABLE, name, name, &completer, &mut script).ok()?;
    let mut script = String::from_utf8(script).ok()?;
    if shell == "zsh" {
        script += &first_call(name);
    }
    Some(script)
}

/// Returns the code that completes the first word if zsh loads the script as a function of its
/// `fpath`: then the script itself is the function, and only registers the function for later
/// calls.
fn first_call(name: &str) -> String {
    let function = format!("_clap_dynamic_completer_{}", name.replace('-', "_"));
    format!("\nif [[ ${{funcstack[1]}} == _{name} ]]; then\n    {function} \"$@\"\nfi\n")
}

/// Returns the line that is completed.
fn line() -> &'static Line {
    LINE.get_or_init(Line::default)
}
