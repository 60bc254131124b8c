//! A running cluster, as a real API server with RBAC has it: `uturn scan` of it, of the same objects
//! in a file, and of what `uturn collect` wrote; each right taken away; every kind of kubeconfig; an
//! API server that dies.

#![cfg(all(feature = "live", target_os = "linux"))]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on panics")]
#![expect(clippy::print_stdout, reason = "a test says what it measured")]

mod access;
mod account;
mod complete;
mod control_plane;
mod dies;
mod objects;
mod rights;
mod same;
mod scale;
mod watch;

use std::ffi::OsString;
use std::path::Path;
use std::process::{Command, Output};

use control_plane::{ADMIN, ControlPlane, Stage};
use uturn_testing::{Requirement, skip, variables};

/// One test after the other: each API server needs a good part of a machine.
#[test]
fn live() {
    let Some(stage) = Stage::find() else {
        let why = format!("{} does not name the folder of the programs", variables::CLUSTER_PARTS);
        return skip(Requirement::ClusterParts, "a running cluster", why);
    };
    if watch::minutes().is_some() {
        return watch::random_changes(&stage);
    }
    if let Some(cluster) = scale::wanted() {
        return scale::measure(&stage, &cluster);
    }
    {
        let plane = stage.start("shop");
        same::shop(&plane);
        access::kubeconfigs(&plane);
        complete::names(&plane);
        account::proxies(&plane);
        account::pods_account(&plane);
        rights::taken_away(&plane);
        rights::of_a_probe(&plane);
        dies::while_reading(&plane);
    }
    same::generated(&stage);
    watch::random_changes(&stage);
}

/// The program. What is measured is another build of it.
pub(crate) fn built() -> OsString {
    variables::path(variables::PROGRAM).map_or(env!("CARGO_BIN_EXE_uturn").into(), OsString::from)
}

/// The program as a user runs it, without any kubeconfig but the named one.
pub(crate) fn uturn(plane: &ControlPlane, words: &[&str]) -> Command {
    let mut command = Command::new(built());
    command
        .args(words)
        .current_dir(&plane.folder)
        .env("NO_COLOR", "1")
        .env("HOME", &plane.folder)
        .env_remove("KUBECONFIG")
        .env_remove("HTTPS_PROXY")
        .env_remove("NO_PROXY")
        .env_remove("KUBERNETES_SERVICE_HOST");
    command
}

/// The program as a user of the cluster runs it.
pub(crate) fn program(plane: &ControlPlane, words: &[&str], user: &str) -> Command {
    let mut command = uturn(plane, words);
    command.env("KUBECONFIG", plane.kubeconfig(user));
    command
}

/// Runs it as a user of the cluster.
pub(crate) fn run(plane: &ControlPlane, words: &[&str], user: &str) -> Output {
    program(plane, words, user).output().unwrap()
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

pub(crate) fn shown(path: &Path) -> String {
    path.display().to_string()
}
