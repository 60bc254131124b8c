//! `uturn operator run`: a process that watches a cluster.

use std::convert::Infallible;
use std::{env, fs, process};

use uturn_cli::{Failure, Printer, Status};
use uturn_cloud_api::client::Retries;
use uturn_kube::lease::LeaseSettings;
use uturn_kube::start::{self, Start, StartError};
use uturn_kube::sync::{Settings, SyncError, Synced};
use uturn_model::visible;

use super::settings;
use crate::cli::OperatorRun;

/// Runs the operator until the lease is lost.
pub(super) fn run(args: &OperatorRun, printer: &Printer) -> Result<Status, Failure> {
    if !args.inputs.files.is_empty() || !args.inputs.bundles.is_empty() {
        return Err(Failure::usage(
            "-f and --bundle are for --dry-run only: without it, a running cluster is watched",
        ));
    }
    let lease = LeaseSettings::new(args.lease_namespace.clone(), identity());
    let start = Start {
        kubeconfig: args.kubeconfig.clone(),
        cloud: settings(args, Retries::default(), printer)?,
        settings: Settings {
            cluster: args.cluster_id.clone(),
            network: args.network.clone(),
            namespace: args.lease_namespace.clone(),
            shares: args.share_load_balancer.iter().cloned().collect(),
        },
        lease: (!args.without_lease).then_some(lease),
        listen: args.listen,
    };
    let mut before = None;
    let report = |result: &Result<Synced, SyncError>| {
        let line = match result {
            Ok(synced) => text(*synced),
            Err(error) => format!("round failed: {error}"),
        };
        // An unchanged status is not printed again.
        if before.as_ref() != Some(&line) {
            printer.result(&format!("{}\n", visible::line(&line)));
        }
        before = Some(line);
    };
    let ended: Result<Infallible, StartError> = start::run(start, report);
    match ended {
        Ok(never) => match never {},
        Err(error) => Err(Failure::unavailable(error.to_string())),
    }
}

fn text(synced: Synced) -> String {
    let Synced { calls, writes, left } = synced;
    format!("round: {calls} calls, {writes} writes to objects, {left} load balancers left")
}

/// Returns a name that no other process has: the host's name and the process's number.
fn identity() -> String {
    let host = env::var("HOSTNAME").ok().or_else(|| fs::read_to_string("/etc/hostname").ok());
    format!("{}_{}", host.unwrap_or_default().trim(), process::id())
}
