//! The options of `uturn collect --redact`.

use std::path::PathBuf;

use clap::Args;

#[derive(Args, Debug)]
pub(crate) struct Redaction {
    /// Replace names and addresses, so that the bundle can be shown to others. Findings stay the
    /// same, under the new names. The bundle is made of the running cluster, or of the input that
    /// -f and --bundle name
    #[arg(long, conflicts_with_all = ["rbac", "here"])]
    pub(crate) redact: bool,
    /// Write the original of each replaced name and address to this file. It undoes the redaction:
    /// keep it to yourself
    #[arg(long, value_name = "FILE", requires = "redact")]
    pub(crate) redact_map: Option<PathBuf>,
    /// With --redact: manifests and Facts, instead of a running cluster (repeat for more)
    #[arg(short, long = "filename", value_name = "PATH", requires = "redact")]
    pub(crate) files: Vec<PathBuf>,
    /// With --redact: a bundle, captures of nodes included, instead of a running cluster (repeat
    /// for more)
    #[arg(long = "bundle", value_name = "PATH", requires = "redact")]
    pub(crate) bundles: Vec<PathBuf>,
}
