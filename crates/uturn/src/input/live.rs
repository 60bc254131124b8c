//! A running cluster.

use std::path::PathBuf;

use uturn_live::{Access, LiveError, Purpose, Reading, Settings};
use uturn_model::cluster::Unread;
use uturn_snapshot::Manifests;

use super::faulty;
use crate::cli::{ApiArgs, ClusterArgs, Collect};
use crate::printer::Printer;
use crate::status::Failure;

/// Reads the running cluster, and Facts beside it.
pub(super) fn manifests(
    args: &ClusterArgs,
    namespace: Option<&str>,
    printer: &Printer,
) -> Result<Manifests, Failure> {
    let facts = facts(&args.inputs.files)?;
    let ApiArgs { live: _, kubeconfig, context, request_timeout } = args.api.clone();
    let access = Access { kubeconfig, context, request_timeout: Some(request_timeout) };
    let settings =
        Settings { namespace: namespace.map(str::to_owned), ..Settings::new(Purpose::Analysis) };
    Ok(read(&access, &settings, printer)?.manifests(facts))
}

/// Reads the running cluster for a bundle.
pub(crate) fn for_bundle(args: &Collect, printer: &Printer) -> Result<Reading, Failure> {
    let access = Access {
        kubeconfig: args.kubeconfig.clone(),
        context: args.context.clone(),
        request_timeout: Some(args.request_timeout),
    };
    let settings = Settings {
        page: args.page.get(),
        namespace: args.namespace.clone(),
        ..Settings::new(Purpose::Bundle)
    };
    read(&access, &settings, printer)
}

fn read(access: &Access, settings: &Settings, printer: &Printer) -> Result<Reading, Failure> {
    let progress = |what: &str, count: usize| printer.progress(&format!("reading {what}: {count}"));
    let reading = uturn_live::read(access, settings, &progress);
    printer.progress_done();
    let reading = reading.map_err(|error| match error {
        LiveError::Kubeconfig(_) => Failure::usage(error.to_string()),
        _ => Failure::not_here(error.to_string()),
    })?;
    print_unread(reading.unread(), printer);
    Ok(reading)
}

fn print_unread(unread: &[Unread], printer: &Printer) {
    for refused in unread {
        printer.note(&refused.to_string());
    }
    if !unread.is_empty() {
        printer.note("uturn collect --rbac prints the rights that reading a cluster needs");
    }
}

/// What `-f` names beside a running cluster: Facts alone, since objects are read from the cluster.
fn facts(files: &[PathBuf]) -> Result<Manifests, Failure> {
    let (manifests, faults) = Manifests::gather(files, &[]);
    if !faults.is_empty() {
        return Err(faulty(&faults));
    }
    if files.is_empty() {
        return Ok(manifests);
    }
    let loaded = manifests.load().map_err(|faults| faulty(&faults))?;
    let objects: Vec<&str> =
        loaded.seen.keys().map(|kind| &**kind).filter(|kind| *kind != "Facts").collect();
    if !objects.is_empty() {
        return Err(Failure::usage(format!(
            "-f beside a running cluster names Facts only, and there is {} too",
            objects.join(", ")
        )));
    }
    Ok(manifests)
}
