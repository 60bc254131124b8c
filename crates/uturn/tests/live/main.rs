//! A running cluster, as a real API server with RBAC has it: `uturn scan` of it, of the same objects
//! in a file, and of what `uturn collect` wrote; each right taken away; every kind of kubeconfig; an
//! API server that dies.

#![cfg(all(feature = "live", target_os = "linux"))]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on panics")]

mod access;
mod control_plane;
mod dies;
mod objects;
mod rights;
mod same;

use std::path::Path;
use std::process::{Command, Output};

use control_plane::{ADMIN, ControlPlane, Stage};
use uturn_testing::{Requirement, skip};

/// One test after the other: each API server needs a good part of a machine.
#[test]
fn live() {
    let Some(stage) = Stage::find() else {
        let why = "UTURN_CLUSTER_PARTS does not name the folder of the programs";
        return skip(Requirement::ClusterParts, "a running cluster", why);
    };
    {
        let plane = stage.start("shop");
        same::shop(&plane);
        access::kubeconfigs(&plane);
        rights::taken_away(&plane);
        dies::while_collecting(&plane);
    }
    same::generated(&stage);
}

/// The program as a user runs it, without any kubeconfig but the named one.
pub(crate) fn uturn(plane: &ControlPlane, words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_uturn"));
    command
        .args(words)
        .current_dir(&plane.folder)
        .env("NO_COLOR", "1")
        .env("HOME", &plane.folder)
        .env_remove("KUBECONFIG")
        .env_remove("KUBERNETES_SERVICE_HOST");
    command
}

/// Runs it as a user of the cluster.
pub(crate) fn run(plane: &ControlPlane, words: &[&str], user: &str) -> Output {
    uturn(plane, words).env("KUBECONFIG", plane.kubeconfig(user)).output().unwrap()
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

pub(crate) fn shown(path: &Path) -> String {
    path.display().to_string()
}
