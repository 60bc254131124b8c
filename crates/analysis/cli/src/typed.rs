//! The command line as the user typed it: `uturn`, or `kubectl uturn`.

use std::ffi::OsString;
use std::path::Path;

use clap::builder::StyledStr;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory, FromArgMatches};

use crate::called;

/// Reads a command line, with the program's name before it. Texts name commands as they are typed:
/// `kubectl uturn scan` where kubectl called this.
///
/// # Errors
/// What is wrong with it; also help and the version, if they were asked for.
pub fn parse_as_typed<C: CommandFactory + FromArgMatches>(
    words: &[OsString],
) -> Result<C, clap::Error> {
    let mut command = as_typed(C::command()).bin_name(called::name());
    let mut matches = command
        .try_get_matches_from_mut(words)
        .map_err(|error| with_tip(error, words, &command))?;
    C::from_arg_matches_mut(&mut matches).map_err(|error| error.format(&mut command))
}

/// Where a command that reads manifests is given a path without its option: how it is given.
fn with_tip(mut error: clap::Error, words: &[OsString], command: &clap::Command) -> clap::Error {
    let mut words = words.iter().skip(1);
    let called = words.find_map(|word| command.find_subcommand(word));
    if !called.is_some_and(|called| called.get_arguments().any(|own| own.get_short() == Some('f')))
    {
        return error;
    }
    let path = match error.get(ContextKind::InvalidArg) {
        Some(ContextValue::String(argument)) if error.kind() == ErrorKind::UnknownArgument => {
            Some(argument.clone()).filter(|path| Path::new(path).exists())
        }
        _ => None,
    };
    if let Some(path) = path {
        let tip = StyledStr::from(format!("to read manifests, use '-f {path}'"));
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip]));
    }
    error
}

/// A command whose help names commands as they are typed.
fn as_typed(command: clap::Command) -> clap::Command {
    let typed = |text: &StyledStr| called::as_typed(&text.to_string()).into_owned();
    let after = command.get_after_help().map(typed);
    let command = match after {
        Some(after) => command.after_help(after),
        None => command,
    };
    let command = command.mut_args(|arg| match arg.get_help().map(typed) {
        Some(help) => arg.help(help),
        None => arg,
    });
    command.mut_subcommands(as_typed)
}
