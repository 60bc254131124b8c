//! Where the cluster comes from.

use uturn_model::Cluster;
use uturn_snapshot::{Fault, Loaded, Manifests};

use crate::cli::Inputs;
use crate::printer::Printer;
use crate::status::Failure;

/// The cluster that the flags name.
pub(crate) fn load(inputs: &Inputs, printer: &Printer) -> Result<Loaded, Failure> {
    if inputs.files.is_empty() && inputs.bundles.is_empty() {
        return Err(nothing_named());
    }
    let (manifests, faults) = Manifests::gather(&inputs.files, &inputs.bundles);
    let loaded = uturn_snapshot::load_gathered(manifests.complete_if(inputs.complete), faults)
        .map_err(|faults| faulty(&faults))?;
    print_counts(&loaded, printer);
    Ok(loaded)
}

/// The same, if only the cluster matters.
pub(crate) fn cluster(inputs: &Inputs, printer: &Printer) -> Result<Cluster, Failure> {
    load(inputs, printer).map(|loaded| loaded.cluster)
}

/// Neither -f nor --bundle was given.
pub(crate) fn nothing_named() -> Failure {
    Failure::not_here(
        "no manifests given: name them with -f PATH or --bundle PATH (reading the live API is not \
         built yet)",
    )
}

/// The input has faults: all of them are printed.
pub(crate) fn faulty(faults: &[Fault]) -> Failure {
    Failure::input(faults.iter().map(ToString::to_string).collect())
}

/// Prints how many objects of each kind were read, with --verbose.
pub(crate) fn print_counts(loaded: &Loaded, printer: &Printer) {
    let counts: Vec<String> =
        loaded.seen.iter().map(|(kind, count)| format!("{count} {kind}")).collect();
    printer.detail(&format!("read {}", counts.join(", ")));
}
