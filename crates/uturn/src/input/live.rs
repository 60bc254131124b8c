//! Reads a running cluster as input.

use std::path::PathBuf;
use std::time::Duration;

use uturn_cli::{Failure, Printer, faulty};
use uturn_live::{Access, LiveError, Purpose, Reading, Session, Settings, Watching};
use uturn_model::cluster::Unread;
use uturn_snapshot::Manifests;

use crate::cli::{ApiArgs, ClusterArgs, Collect};

/// Reads the running cluster, and the Facts given with `-f`.
pub(super) fn manifests(
    args: &ClusterArgs,
    namespace: Option<&str>,
    printer: &Printer,
) -> Result<Manifests, Failure> {
    let facts = facts(&args.inputs.files)?;
    let (access, settings) = wanted(args, namespace);
    remark(&access, printer);
    Ok(read(&access, &settings, printer)?.manifests(facts))
}

/// Watches the running cluster. Also returns the Facts given with `-f`.
pub(crate) fn watch(
    args: &ClusterArgs,
    namespace: Option<&str>,
    printer: &Printer,
) -> Result<(Watching, Manifests), Failure> {
    let facts = facts(&args.inputs.files)?;
    let (access, settings) = wanted(args, namespace);
    remark(&access, printer);
    let printer = *printer;
    let progress = move |what: &str, count: usize| {
        printer.progress(&format!("reading {what}: {count}"));
    };
    let watching = uturn_live::watch(access, settings, progress).map_err(|why| failure(&why))?;
    Ok((watching, facts))
}

/// Prints the note that the user has to see before the cluster is read.
fn remark(access: &Access, printer: &Printer) {
    if let Some(remark) = access.remark() {
        printer.note(&remark);
    }
}

/// Returns the access to the cluster, and the settings for reading it to be analysed.
fn wanted(args: &ClusterArgs, namespace: Option<&str>) -> (Access, Settings) {
    let settings =
        Settings { namespace: namespace.map(str::to_owned), ..Settings::new(Purpose::Analysis) };
    (access(&args.api), settings)
}

/// Returns the access to the cluster that the arguments name.
fn access(args: &ApiArgs) -> Access {
    let ApiArgs { live: _, kubeconfig, context, request_timeout } = args.clone();
    Access { kubeconfig, context, request_timeout: Some(request_timeout) }
}

/// Connects to the cluster that the arguments name.
pub(crate) fn connect(args: &ApiArgs) -> Result<Session, Failure> {
    Session::open(&access(args)).map_err(|why| failure(&why))
}

/// Connects to the cluster of which a bundle is made. Allows for the time that a tool runs on a
/// node, since the API server may be silent meanwhile.
pub(crate) fn session(args: &Collect, printer: &Printer) -> Result<Session, Failure> {
    let tool = Duration::from_secs(args.here.timeout);
    let access = Access {
        kubeconfig: args.kubeconfig.clone(),
        context: args.context.clone(),
        request_timeout: Some(args.request_timeout.max(tool)),
    };
    remark(&access, printer);
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
    done(session.read(&settings, &progress), settings.namespace.as_deref(), printer)
}

fn read(access: &Access, settings: &Settings, printer: &Printer) -> Result<Reading, Failure> {
    let progress = |what: &str, count: usize| printer.progress(&format!("reading {what}: {count}"));
    let reading = uturn_live::read(access, settings, &progress);
    done(reading, settings.namespace.as_deref(), printer)
}

fn done(
    reading: Result<Reading, LiveError>,
    namespace: Option<&str>,
    printer: &Printer,
) -> Result<Reading, Failure> {
    printer.progress_done();
    let reading = reading.map_err(|why| failure(&why))?;
    check_read(&reading, namespace, printer)?;
    Ok(reading)
}

/// Converts an error of reading a cluster to a failure.
pub(crate) fn failure(error: &LiveError) -> Failure {
    match error {
        LiveError::Kubeconfig(_) => Failure::usage(error.to_string()),
        _ => Failure::unavailable(error.to_string()),
    }
}

/// Reports what could not be read, and how to get the missing rights.
///
/// # Errors
/// If nothing could be read at all.
pub(crate) fn check_read(
    reading: &Reading,
    namespace: Option<&str>,
    printer: &Printer,
) -> Result<(), Failure> {
    let rights = rights(reading, namespace);
    if let Some(why) = reading.nothing_read() {
        let rights = rights.map(|rights| format!("\n{rights}")).unwrap_or_default();
        return Err(Failure::unavailable(format!("nothing could be read: {why}{rights}")));
    }
    for refused in Unread::grouped(reading.unread()) {
        printer.note(&refused.to_string());
    }
    if let Some(rights) = rights {
        printer.note(&rights);
    }
    Ok(())
}

/// Returns advice on how to get the missing rights, or to do without them, if any are missing.
fn rights(reading: &Reading, namespace: Option<&str>) -> Option<String> {
    let rights = "uturn collect --rbac prints the rights that reading a cluster needs";
    let alone = "; if you may read a single namespace, name it with -n NAMESPACE (scan, trace, \
                 check, cure and collect)";
    let alone = if reading.lacks_namespaces() && namespace.is_none() { alone } else { "" };
    reading.lacks_rights().then(|| format!("{rights}{alone}"))
}

/// Reads the files that `-f` names beside a running cluster: only Facts, since objects are read
/// from the cluster.
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
            "with a running cluster, -f may name Facts only; it also names {}",
            objects.join(", ")
        )));
    }
    Ok(manifests)
}
