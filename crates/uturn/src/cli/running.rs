//! The options of a running cluster.

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;

use clap::builder::{OsStringValueParser, TypedValueParser};
use clap::{Args, ValueHint};
use uturn_model::shell::Command;

use super::redacted::Redaction;
use super::{Here, Inputs};
use crate::completion;

/// Where the cluster comes from, if it may be a running one.
#[derive(Args, Clone, Debug)]
pub(crate) struct ClusterArgs {
    #[command(flatten)]
    pub(crate) inputs: Inputs,
    #[command(flatten)]
    pub(crate) api: ApiArgs,
}

impl ClusterArgs {
    /// The options that name the input, as they are typed. Nothing where that is standard input,
    /// which was read.
    pub(crate) fn as_typed(&self) -> Command {
        let Inputs { files, bundles, unpack_limit, complete } = &self.inputs;
        let mut typed = Command::default();
        if files.iter().any(|file| file.as_os_str() == "-") {
            return typed;
        }
        for file in files {
            typed = typed.words("-f").path(file);
        }
        for bundle in bundles {
            typed = typed.words("--bundle").path(bundle);
        }
        if let Some(limit) = unpack_limit {
            typed = typed.words("--unpack-limit").value(limit.value());
        }
        let ApiArgs { live, kubeconfig, context, .. } = &self.api;
        if let Some(file) = kubeconfig.as_ref().filter(|file| !file.as_os_str().is_empty()) {
            typed = typed.words("--kubeconfig").path(file);
        }
        if let Some(name) = context.as_ref().filter(|name| !name.is_empty()) {
            // The name could be taken for an option.
            typed = typed.words("--context=").joined(name);
        }
        if *complete {
            typed = typed.words("--complete");
        }
        if *live {
            typed = typed.words("--live");
        }
        typed
    }
}

/// The heading of the options of a running cluster in `--help`.
const RUNNING: &str = "A running cluster (where neither -f nor --bundle is given)";

/// Which running cluster, and as whom.
#[derive(Args, Clone, Debug)]
pub(crate) struct ApiArgs {
    /// Read the running cluster although -f is given; -f may then name Facts only
    #[arg(long, conflicts_with_all = ["bundles", "complete"], help_heading = RUNNING)]
    pub(crate) live: bool,
    /// The kubeconfig, instead of those that kubectl finds
    #[arg(long, value_name = "FILE", conflicts_with = "bundles", help_heading = RUNNING)]
    #[arg(value_parser = file(), value_hint = ValueHint::FilePath)]
    pub(crate) kubeconfig: Option<PathBuf>,
    /// The context of the kubeconfig, instead of the current one
    #[arg(long, value_name = "NAME", conflicts_with = "bundles", help_heading = RUNNING)]
    #[arg(add = completion::context())]
    pub(crate) context: Option<String>,
    /// How long to wait for the API server, such as 30s or 2m
    #[arg(
        long,
        value_name = "TIME",
        default_value = "60s",
        value_parser = duration,
        help_heading = RUNNING
    )]
    pub(crate) request_timeout: Duration,
}

impl ClusterArgs {
    /// Whether a running cluster is meant.
    pub(crate) fn is_live(&self) -> bool {
        // What is named by an empty text is not named, as with kubectl.
        let is_kubeconfig = |path: &PathBuf| !path.as_os_str().is_empty();
        let has_kubeconfig = self.api.kubeconfig.as_ref().is_some_and(is_kubeconfig);
        let has_context = self.api.context.as_ref().is_some_and(|name| !name.is_empty());
        let is_named = self.api.live || has_kubeconfig || has_context;
        is_named || self.inputs.files.is_empty() && self.inputs.bundles.is_empty()
    }
}

/// The name of a file, which may be empty.
fn file() -> impl TypedValueParser<Value = PathBuf> {
    OsStringValueParser::new().map(PathBuf::from)
}

/// A time as kubectl takes it: seconds, or a number with its unit.
pub(super) fn duration(text: &str) -> Result<Duration, String> {
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let seconds = match unit {
        "" | "s" => Some(1),
        "m" => Some(60),
        "h" => Some(3600),
        _ => None,
    };
    let seconds = seconds.zip(number.parse::<u64>().ok());
    let seconds = seconds.and_then(|(unit, number)| number.checked_mul(unit));
    let seconds = seconds.filter(|seconds| *seconds > 0);
    seconds.map(Duration::from_secs).ok_or_else(|| "expected a time such as 30s or 2m".to_owned())
}

#[derive(Args, Debug)]
pub(crate) struct Collect {
    #[command(flatten)]
    pub(crate) here: Here,
    #[command(flatten)]
    pub(crate) redaction: Redaction,
    /// Where to write the bundle: a folder, or an archive if it ends in .tar.gz. With --here, a
    /// folder that may have other nodes already: the capture becomes nodes/NAME in it
    #[arg(short, long, value_name = "PATH", required_unless_present = "rbac")]
    pub(crate) output: Option<PathBuf>,
    /// Print manifests with the rights that reading a cluster needs, and read nothing
    #[arg(long, conflicts_with_all = ["output", "here"])]
    pub(crate) rbac: bool,
    /// With --rbac: also the rights of `uturn scan --watch`
    #[arg(long, requires = "rbac")]
    pub(crate) watch: bool,
    /// With --rbac: also the rights of `uturn probe`
    #[arg(long, requires = "rbac")]
    pub(crate) probe: bool,
    /// The only namespace to read, if you may not read the whole cluster
    #[arg(short, long, value_name = "NS", add = completion::namespace())]
    pub(crate) namespace: Option<String>,
    /// The kubeconfig, instead of those that kubectl finds
    #[arg(long, value_name = "FILE")]
    #[arg(value_parser = file(), value_hint = ValueHint::FilePath)]
    pub(crate) kubeconfig: Option<PathBuf>,
    /// The context of the kubeconfig, instead of the current one
    #[arg(long, value_name = "NAME", add = completion::context())]
    pub(crate) context: Option<String>,
    /// How long to wait for the API server, such as 30s or 2m
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = duration)]
    pub(crate) request_timeout: Duration,
    /// How many objects to ask for at once
    #[arg(long, value_name = "COUNT", default_value = "500", hide = true)]
    pub(crate) page: NonZeroUsize,
}
