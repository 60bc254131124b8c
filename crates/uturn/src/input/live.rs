//! A running cluster.

use std::path::PathBuf;
use std::time::Duration;

use uturn_live::{Access, LiveError, Purpose, Reading, Session, Settings, Watching};
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
    let (access, settings) = wanted(args, namespace);
    Ok(read(&access, &settings, printer)?.manifests(facts))
}

/// Watches the running cluster. Returns the Facts beside it too.
pub(crate) fn watch(
    args: &ClusterArgs,
    namespace: Option<&str>,
    printer: &Printer,
) -> Result<(Watching, Manifests), Failure> {
    let facts = facts(&args.inputs.files)?;
    let (access, settings) = wanted(args, namespace);
    let printer = *printer;
    let progress = move |what: &str, count: usize| {
        printer.progress(&format!("reading {what}: {count}"));
    };
    let watching = uturn_live::watch(access, settings, progress).map_err(|why| failure(&why))?;
    Ok((watching, facts))
}

/// Which cluster is wanted, and how it is read to be analysed.
fn wanted(args: &ClusterArgs, namespace: Option<&str>) -> (Access, Settings) {
    let settings =
        Settings { namespace: namespace.map(str::to_owned), ..Settings::new(Purpose::Analysis) };
    (access(&args.api), settings)
}

/// Which cluster is wanted, and as whom.
fn access(args: &ApiArgs) -> Access {
    let ApiArgs { live: _, kubeconfig, context, request_timeout } = args.clone();
    Access { kubeconfig, context, request_timeout: Some(request_timeout) }
}

/// Connects to the cluster that is wanted.
pub(crate) fn connect(args: &ApiArgs) -> Result<Session, Failure> {
    Session::open(&access(args)).map_err(|why| failure(&why))
}

/// Connects to the cluster of which a bundle is made. While a tool runs on a node, the API server may
/// be silent.
pub(crate) fn session(args: &Collect) -> Result<Session, Failure> {
    let tool = Duration::from_secs(args.here.timeout);
    let access = Access {
        kubeconfig: args.kubeconfig.clone(),
        context: args.context.clone(),
        request_timeout: Some(args.request_timeout.max(tool)),
    };
    Session::open(&access).map_err(|why| failure(&why))
}

/// Reads the running cluster for a bundle.
pub(crate) fn for_bundle(
    session: &Session,
    args: &Collect,
    printer: &Printer,
) -> Result<Reading, Failure> {
    let settings = Settings {
        page: args.page.get(),
        namespace: args.namespace.clone(),
        ..Settings::new(Purpose::Bundle)
    };
    let progress = |what: &str, count: usize| printer.progress(&format!("reading {what}: {count}"));
    done(session.read(&settings, &progress), printer)
}

fn read(access: &Access, settings: &Settings, printer: &Printer) -> Result<Reading, Failure> {
    let progress = |what: &str, count: usize| printer.progress(&format!("reading {what}: {count}"));
    done(uturn_live::read(access, settings, &progress), printer)
}

fn done(reading: Result<Reading, LiveError>, printer: &Printer) -> Result<Reading, Failure> {
    printer.progress_done();
    let reading = reading.map_err(|why| failure(&why))?;
    print_unread(reading.unread(), printer);
    Ok(reading)
}

/// Why a cluster cannot be read.
pub(crate) fn failure(error: &LiveError) -> Failure {
    match error {
        LiveError::Kubeconfig(_) => Failure::usage(error.to_string()),
        _ => Failure::not_here(error.to_string()),
    }
}

pub(crate) fn print_unread(unread: &[Unread], printer: &Printer) {
    for refused in Unread::grouped(unread) {
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
