//! Reads the cluster from files, bundles or an API server.

use uturn_cli::{Failure, Printer, faulty, print_counts};
use uturn_diagnose::analysis::Input;
use uturn_model::Cluster;
use uturn_model::cluster::Unread;
use uturn_snapshot::{Fault, Loaded, Manifests};

use crate::cli::ClusterArgs;

#[cfg(feature = "live")]
pub(crate) mod live;

/// Reads the cluster that the flags name. Texts of more than `most_bytes` in all are not kept. If
/// the whole of a running cluster may not be read, only `namespace` is.
pub(crate) fn read(
    args: &ClusterArgs,
    namespace: Option<&str>,
    printer: &Printer,
    most_bytes: usize,
) -> Result<Input, Failure> {
    let input = read_any(args, namespace, printer, most_bytes)?;
    check_scenarios(&input.loaded, printer)?;
    Ok(input)
}

/// Reads the cluster as [`read`] does, but does not check the number of Scenarios.
fn read_any(
    args: &ClusterArgs,
    namespace: Option<&str>,
    printer: &Printer,
    most_bytes: usize,
) -> Result<Input, Failure> {
    let (manifests, faults) = if args.is_live() {
        (running(args, namespace, printer)?, Vec::new())
    } else {
        let (manifests, faults) = args.inputs.gather();
        (manifests.complete_if(args.inputs.complete), faults)
    };
    let read = Input::of(manifests, faults, most_bytes).map_err(|faults| faulty(&faults))?;
    print_counts(&read.loaded, printer);
    if !args.is_live() {
        print_unread(&read.loaded.cluster, printer);
    }
    Ok(read)
}

/// Reads the cluster as [`read`] does, but leaves out and names files of folders that have faults,
/// if the rest can be read. Also returns whether there are such files.
pub(crate) fn read_what_can_be(
    args: &ClusterArgs,
    namespace: Option<&str>,
    printer: &Printer,
    most_bytes: usize,
) -> Result<(Input, bool), Failure> {
    let whole = read_any(args, namespace, printer, most_bytes);
    let is_once = args.inputs.files.iter().any(|path| path.as_os_str() == "-");
    let failure = match whole {
        Err(failure) if !args.is_live() && !is_once => failure,
        whole => {
            let input = whole?;
            check_scenarios(&input.loaded, printer)?;
            return Ok((input, false));
        }
    };
    match without_faulty(args, most_bytes) {
        Some((input, faults)) => {
            for fault in &faults {
                printer.error(&fault.to_string());
            }
            printer.note("files with errors are left out");
            print_counts(&input.loaded, printer);
            check_scenarios(&input.loaded, printer)?;
            print_unread(&input.loaded.cluster, printer);
            Ok((input, true))
        }
        None => Err(failure),
    }
}

/// Reads the files except those of folders that have faults, and returns these faults. Returns
/// `None` if that leaves nothing, or if there are faults elsewhere.
fn without_faulty(args: &ClusterArgs, most_bytes: usize) -> Option<(Input, Vec<Fault>)> {
    let (manifests, faults) = args.inputs.gather();
    if !faults.is_empty() {
        return None;
    }
    let mut manifests = manifests.complete_if(args.inputs.complete);
    let mut all = Vec::new();
    // A fault may show only once another file is left out.
    for _ in 0..MAX_ROUNDS {
        match Input::of(manifests.clone(), Vec::new(), most_bytes) {
            Ok(input) => {
                return Some((input, all)).filter(|(input, _)| !input.loaded.seen.is_empty());
            }
            Err(faults) => {
                manifests = manifests.without_faulty(&faults)?;
                all.extend(faults);
            }
        }
    }
    None
}

const MAX_ROUNDS: usize = 8;

/// Reads the cluster as [`read`] does, and returns only the cluster.
pub(crate) fn cluster(
    args: &ClusterArgs,
    namespace: Option<&str>,
    printer: &Printer,
) -> Result<Cluster, Failure> {
    read(args, namespace, printer, 0).map(|input| input.loaded.cluster)
}

#[cfg(feature = "live")]
fn running(
    args: &ClusterArgs,
    namespace: Option<&str>,
    printer: &Printer,
) -> Result<Manifests, Failure> {
    live::manifests(args, namespace, printer)
}

#[cfg(not(feature = "live"))]
fn running(_: &ClusterArgs, _: Option<&str>, _: &Printer) -> Result<Manifests, Failure> {
    Err(Failure::unavailable(
        "no manifests given: name them with -f PATH or --bundle PATH (this uturn was built without \
         the feature `live`, which reads a running cluster)",
    ))
}

/// Checks that there is at most one Scenario, and nothing beside it: each Scenario is a cluster of
/// its own.
fn check_scenarios(loaded: &Loaded, printer: &Printer) -> Result<(), Failure> {
    let names: Vec<&str> = loaded.scenarios.iter().map(|scenario| &*scenario.name).collect();
    let why = "each is a cluster of its own; give the file of one with -f, and nothing else";
    match (names.as_slice(), loaded.has_only_scenarios()) {
        ([], _) | ([_], true) => {}
        ([one], false) => {
            printer.note(&format!("left out: Scenario {one}: {why}"));
        }
        ([first, rest @ ..], only) => {
            let what = format!("Scenario {first} and {} more", rest.len());
            if only {
                return Err(Failure::usage(format!("{what}: {why}")));
            }
            printer.note(&format!("left out: {what}: {why}"));
        }
    }
    Ok(())
}

/// Returns the words for the place where a requested object is missing. If an API server did not
/// give everything, the object may exist.
pub(crate) fn scope_phrase(cluster: &Cluster) -> &'static str {
    if cluster.unread.is_empty() {
        "in this cluster"
    } else {
        "among what could be read of this cluster"
    }
}

/// Prints what an API server did not give.
pub(crate) fn print_unread(cluster: &Cluster, printer: &Printer) {
    for unread in Unread::grouped(&cluster.unread) {
        printer.note(&unread.to_string());
    }
}
