//! Makes completers of arguments.

use std::borrow::Cow;
use std::ffi::OsStr;

use clap_complete::engine::{ArgValueCompleter, CompletionCandidate};
use uturn_model::{ProxyMode, shell};

/// Creates a completer from candidates that depend on what is typed so far.
pub fn completer(all: impl Fn(&str) -> Vec<String> + Send + Sync + 'static) -> ArgValueCompleter {
    ArgValueCompleter::new(move |typed: &OsStr| {
        let mut found = typed.to_str().map(&all).unwrap_or_default();
        // A shell inserts the word unchanged, so a word that the shell would interpret is not
        // offered.
        found.retain(|word| matches!(shell::quoted(word.as_bytes()), Some(Cow::Borrowed(_))));
        matching(typed, found.into_iter().map(CompletionCandidate::new).collect())
    })
}

/// Returns the candidates that begin with what is typed.
pub fn matching(typed: &OsStr, mut all: Vec<CompletionCandidate>) -> Vec<CompletionCandidate> {
    let typed = typed.to_string_lossy();
    all.retain(|candidate| candidate.get_value().to_string_lossy().starts_with(&*typed));
    all
}

/// Completes a mode of kube-proxy.
pub fn proxy_mode() -> ArgValueCompleter {
    completer(|_| ProxyMode::ALL.map(|mode| mode.to_string()).into())
}
