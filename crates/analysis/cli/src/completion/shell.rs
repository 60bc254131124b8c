//! Shells that need more for their lines than `clap_complete` does.

use std::env;
use std::ffi::OsString;
use std::io::{Error, Write};
use std::path::Path;

use clap::Command;
use clap_complete::engine::{CompletionCandidate, complete};
use clap_complete::env::EnvCompleter;

/// Bash, which splits words at `:` and `=`.
pub(super) struct Bash;

/// kubectl, which requests candidates in its own format and passes them to any shell.
pub(super) struct Kubectl;

/// The flag by which the shell adds no names of files to the candidates.
const NO_FILES: u8 = 4;
/// The flag by which the shell adds no space after a candidate, since the word goes on.
const NO_SPACE: u8 = 2;

/// The script for Bash. The names of its variables begin as no name of the user's does.
const BASH: &str = r#"_NAME_complete() {
    local IFS=$'\n' line=$COMP_LINE word words=() count=0 index breaks current
    # Words are put together again that bash split at : and =.
    for ((index = 0; index <= COMP_CWORD; index++)); do
        word=${COMP_WORDS[index]}
        if ((count > 0)) && [[ $line != [[:space:]]* ]]; then
            words[count - 1]+=$word
        else
            words[count++]=$word
        fi
        line=${line#*"$word"}
    done
    COMPREPLY=($(VARIABLE=bash _CLAP_COMPLETE_INDEX=$((count - 1)) PROGRAM -- "${words[@]}" 2>/dev/null))
    [[ ${#COMPREPLY[@]} == 1 && ${COMPREPLY[0]} == *[/:=] ]] && compopt -o nospace 2>/dev/null
    # Bash replaces only what follows the last : or =.
    breaks=${COMP_WORDBREAKS//[^:=]/}
    current=${words[count - 1]}
    if [[ -n $breaks && $current == *[$breaks]* ]]; then
        COMPREPLY=("${COMPREPLY[@]#"${current%"${current##*[$breaks]}"}"}")
    fi
}
complete -o bashdefault -F _NAME_complete BIN
"#;

impl EnvCompleter for Bash {
    fn name(&self) -> &'static str {
        "bash"
    }

    fn is(&self, name: &str) -> bool {
        name == "bash"
    }

    fn write_registration(
        &self,
        var: &str,
        name: &str,
        bin: &str,
        completer: &str,
        buf: &mut dyn Write,
    ) -> Result<(), Error> {
        let script = BASH.replace("NAME", &name.replace('-', "_")).replace("BIN", bin);
        let script = script.replace("VARIABLE", var).replace("PROGRAM", &quoted(completer));
        buf.write_all(script.as_bytes())
    }

    fn write_complete(
        &self,
        cmd: &mut Command,
        args: Vec<OsString>,
        current_dir: Option<&Path>,
        buf: &mut dyn Write,
    ) -> Result<(), Error> {
        let index = stated_index().unwrap_or(args.len().saturating_sub(1));
        for candidate in candidates(cmd, args, index, current_dir)? {
            writeln!(buf, "{}", candidate.get_value().to_string_lossy())?;
        }
        Ok(())
    }
}

impl EnvCompleter for Kubectl {
    fn name(&self) -> &'static str {
        "kubectl"
    }

    fn is(&self, name: &str) -> bool {
        name == "kubectl"
    }

    fn write_registration(
        &self,
        var: &str,
        _: &str,
        _: &str,
        completer: &str,
        buf: &mut dyn Write,
    ) -> Result<(), Error> {
        let program = quoted(completer);
        writeln!(buf, "#!/bin/sh")?;
        writeln!(buf, "# Completes `kubectl uturn`: kubectl looks for this on the PATH as")?;
        writeln!(buf, "# {}.", super::KUBECTL_COMPLETE)?;
        writeln!(buf, "exec env {var}=kubectl {program} -- {} \"$@\"", crate::called::PLUGIN)
    }

    /// Writes a line for each candidate, with its help after a tab, and a number with the flags for
    /// the shell.
    fn write_complete(
        &self,
        cmd: &mut Command,
        args: Vec<OsString>,
        current_dir: Option<&Path>,
        buf: &mut dyn Write,
    ) -> Result<(), Error> {
        let index = args.len().saturating_sub(1);
        let found = candidates(cmd, args, index, current_dir)?;
        for candidate in &found {
            write!(buf, "{}", candidate.get_value().to_string_lossy())?;
            let help = candidate.get_help().map(ToString::to_string).unwrap_or_default();
            match help.lines().next() {
                Some(line) => writeln!(buf, "\t{line}")?,
                None => writeln!(buf)?,
            }
        }
        let goes_on = |candidate: &CompletionCandidate| {
            candidate.get_value().to_string_lossy().ends_with(['/', ':', '='])
        };
        let space = if found.iter().any(goes_on) { NO_SPACE } else { 0 };
        writeln!(buf, ":{}", NO_FILES + space)
    }
}

/// Returns the index of the word that is completed, if the shell states it.
pub(super) fn stated_index() -> Option<usize> {
    env::var("_CLAP_COMPLETE_INDEX").ok()?.parse().ok()
}

/// Returns the candidates for the cursor. Options are listed only where nothing else can stand, or
/// once one is begun.
fn candidates(
    cmd: &mut Command,
    args: Vec<OsString>,
    index: usize,
    current_dir: Option<&Path>,
) -> Result<Vec<CompletionCandidate>, Error> {
    let is_option = |text: &OsString| text.to_string_lossy().starts_with('-');
    let is_begun = args.get(index).is_some_and(is_option);
    let mut found = complete(cmd, args, index, current_dir)?;
    let is_option =
        |known: &CompletionCandidate| known.get_value().to_string_lossy().starts_with('-');
    if !is_begun && !found.iter().all(is_option) {
        found.retain(|known| !is_option(known));
    }
    Ok(found)
}

/// Quotes a word for shells.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-+".contains(c);
    if word.chars().all(is_plain) && !word.is_empty() {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}
