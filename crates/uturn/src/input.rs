//! Where the cluster comes from.

use uturn_model::Cluster;
use uturn_snapshot::{Loaded, Manifests};

use crate::cli::Inputs;
use crate::printer::Printer;
use crate::status::Failure;

/// The cluster that the flags name.
pub(crate) fn load(inputs: &Inputs, printer: &Printer) -> Result<Loaded, Failure> {
    if inputs.files.is_empty() && inputs.bundles.is_empty() {
        return Err(Failure::not_here(
            "no manifests given: name them with -f PATH or --bundle PATH (reading the live API is \
             not built yet)",
        ));
    }
    let (manifests, faults) = Manifests::gather(&inputs.files, &inputs.bundles);
    let loaded = uturn_snapshot::load_gathered(manifests.complete_if(inputs.complete), faults)
        .map_err(|faults| Failure::input(faults.iter().map(ToString::to_string).collect()))?;
    let seen: Vec<String> =
        loaded.seen.iter().map(|(kind, count)| format!("{count} {kind}")).collect();
    printer.detail(&format!("read {}", seen.join(", ")));
    Ok(loaded)
}

/// The same, where only the cluster matters.
pub(crate) fn cluster(inputs: &Inputs, printer: &Printer) -> Result<Cluster, Failure> {
    load(inputs, printer).map(|loaded| loaded.cluster)
}
