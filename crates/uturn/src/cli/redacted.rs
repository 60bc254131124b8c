//! The options of `uturn collect --redact`.

use std::path::PathBuf;

use clap::Args;

#[derive(Args, Debug)]
pub(crate) struct Redaction {
    /// Replace names and addresses, so that the bundle can be shown to others. What uturn says of
    /// it stays the same, under the new names. It is made of the running cluster, or of what -f and
    /// --bundle name
    #[arg(long, conflicts_with_all = ["rbac", "here"])]
    pub(crate) redact: bool,
    /// Write to this file what stands for what. It undoes the redaction: keep it to yourself
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
