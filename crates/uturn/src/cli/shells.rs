//! The options of `uturn completion`.

use clap::{Args, ValueEnum};

#[derive(Args, Debug)]
pub(crate) struct Completion {
    /// The shell, or kubectl
    pub(crate) shell: CompletionShell,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum CompletionShell {
    Bash,
    Elvish,
    Fish,
    /// For kubectl uturn
    Kubectl,
    Powershell,
    Zsh,
}

impl CompletionShell {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Bash => "bash",
            Self::Elvish => "elvish",
            Self::Fish => "fish",
            Self::Kubectl => "kubectl",
            Self::Powershell => "powershell",
            Self::Zsh => "zsh",
        }
    }
}
