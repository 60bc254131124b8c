//! Output formats, and the severity that fails a scan.

use clap::ValueEnum;
use uturn_cli::Output;

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum FailOn {
    Info,
    Warning,
    Error,
    /// Never, whatever the findings
    Never,
}

/// What is lost at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Survived {
    /// Each node by itself
    Node,
    /// All nodes with the same label topology.kubernetes.io/zone
    Zone,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ScanOutput {
    Text,
    /// Text with all details
    Wide,
    Json,
    Yaml,
    /// For code scanning: findings on the lines of the manifests
    Sarif,
    /// For CI that reads test results
    Junit,
    /// One HTML page with pictures, explanations and cures
    Html,
}

impl ScanOutput {
    /// As what every command can give, where it is such a form.
    pub(crate) fn plain(self) -> Option<Output> {
        match self {
            Self::Text => Some(Output::Text),
            Self::Wide => Some(Output::Wide),
            Self::Json => Some(Output::Json),
            Self::Yaml => Some(Output::Yaml),
            Self::Sarif | Self::Junit | Self::Html => None,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum TraceOutput {
    Text,
    /// Text with all details
    Wide,
    Json,
    Yaml,
    /// A picture of the path that the packets take
    Svg,
}

impl TraceOutput {
    /// As what every command can give, where it is such a form.
    pub(crate) fn plain(self) -> Option<Output> {
        match self {
            Self::Text => Some(Output::Text),
            Self::Wide => Some(Output::Wide),
            Self::Json => Some(Output::Json),
            Self::Yaml => Some(Output::Yaml),
            Self::Svg => None,
        }
    }
}
