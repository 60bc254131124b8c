//! The arguments that name manifests, and what is said of them.

use std::path::PathBuf;

use clap::Args;
use uturn_snapshot::bundle::UnpackLimit;
use uturn_snapshot::{Fault, Loaded, Manifests};

use crate::printer::Printer;
use crate::status::Failure;

/// Where the cluster comes from.
#[derive(Args, Clone, Debug)]
pub struct Inputs {
    /// Manifests and Facts: a file, a folder, or - for standard input (repeat for more)
    #[arg(short, long = "filename", value_name = "PATH")]
    pub files: Vec<PathBuf>,
    /// A bundle that `uturn collect` wrote: a folder or an archive of manifests, with captures of
    /// nodes in nodes/NAME (repeat for more)
    #[arg(long = "bundle", value_name = "PATH")]
    pub bundles: Vec<PathBuf>,
    /// The most to read in all, such as 512MiB or 2GiB; archives count unpacked. By default 256MiB,
    /// and at most 100 times the size of an archive
    #[arg(long, value_name = "SIZE")]
    pub unpack_limit: Option<UnpackLimit>,
    /// Take the input for the whole cluster: what it does not contain does not exist
    #[arg(long)]
    pub complete: bool,
}

impl Inputs {
    /// Reads the files and bundles.
    pub fn gather(&self) -> (Manifests, Vec<Fault>) {
        let limit = self.unpack_limit.unwrap_or_default();
        Manifests::gather_within(&self.files, &self.bundles, limit)
    }
}

/// Returns the failure of an input with faults. It lists all faults.
pub fn faulty<T: ToString>(faults: &[T]) -> Failure {
    Failure::input(faults.iter().map(ToString::to_string).collect())
}

/// Prints the number of objects of each kind, if --verbose was given.
pub fn print_counts(loaded: &Loaded, printer: &Printer) {
    let counts: Vec<String> =
        loaded.seen.iter().map(|(kind, count)| format!("{count} {kind}")).collect();
    printer.detail(&format!("read {}", counts.join(", ")));
}
