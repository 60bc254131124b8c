//! Completion: prints candidates for the cursor of a half-typed line.
//!
//! A shell's script calls this program with `UTURN_COMPLETE=SHELL`, and with the words of the line
//! after `--`. kubectl calls it as `kubectl_complete-uturn`. Names of objects come from the source
//! that the line names for the cluster: the completer of each argument reads it. Nothing but
//! candidates is ever printed: no error, and no question.

mod completer;
mod line;
mod shell;

use std::env;
use std::ffi::OsString;
use std::io::Write as _;
use std::path::Path;
use std::sync::OnceLock;

use clap::Command;
use clap_complete::env::Shells;

pub use self::completer::{completer, matching, proxy_mode};
pub use self::line::Line;
use self::shell::{Bash, Kubectl};
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

/// A half-typed line for which a shell asks for candidates.
#[derive(Debug)]
pub struct Asked {
    shell: OsString,
    /// The words of the line, with the program's name before them.
    words: Vec<OsString>,
}

impl Asked {
    /// Returns the line for which a shell has started this process.
    pub fn here() -> Option<Self> {
        let mut words = env::args_os();
        let program = words.next().unwrap_or_default();
        if Path::new(&program).file_stem().is_some_and(|name| name == KUBECTL_COMPLETE) {
            let words = [PLUGIN.into()].into_iter().chain(words).collect();
            return Some(Self { shell: "kubectl".into(), words });
        }
        let shell = env::var_os(VARIABLE).filter(|shell| !shell.is_empty())?;
        Some(Self { shell, words: words.skip_while(|word| word != "--").skip(1).collect() })
    }

    /// Returns the words before the one that is completed.
    pub fn before(&self) -> &[OsString] {
        let last = self.words.len().saturating_sub(1);
        &self.words[..shell::stated_index().map_or(last, |index| index.min(last))]
    }

    /// Prints the candidates that a command has.
    pub fn answer(self, mut command: Command) {
        let Self { shell, words } = self;
        let Some(shell) = shell.to_str().and_then(|name| SHELLS.completer(name)) else { return };
        let _ = LINE.set(Line::of(&words));
        let mut text = Vec::new();
        let folder = env::current_dir().ok();
        if shell.write_complete(&mut command, words, folder.as_deref(), &mut text).is_ok() {
            // A shell that has ended needs no candidates.
            let _ = std::io::stdout().write_all(&text);
        }
    }
}

/// Returns the script that a shell reads at its start.
pub fn script(shell: &str) -> Option<String> {
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
pub fn line() -> &'static Line {
    LINE.get_or_init(Line::default)
}
