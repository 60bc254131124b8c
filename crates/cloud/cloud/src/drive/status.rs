//! What each machine has taken.

use std::collections::BTreeMap;
use std::sync::Arc;

use http::Method;
use serde::Serialize;

use super::shared::Shared;
use crate::plane::LeftOut;
use crate::unserved::Unserved;

/// What the data plane has taken.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct DriveStatus {
    /// The number of the latest change. Numbers begin anew with the process.
    pub change: u64,
    /// The machines.
    pub data_planes: Vec<MachineStatus>,
    /// What is not served, or not as it was asked for.
    pub left_out: Vec<LeftOut>,
    /// How many load balancers and listeners are not served, for each reason.
    pub unserved: BTreeMap<Unserved, usize>,
    /// How many tasks failed since the cloud was started, because what they asked for is not served.
    pub failed_tasks: u64,
}

/// What a machine has taken.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct MachineStatus {
    /// Its admin address.
    pub address: String,
    /// Whether it answered when it was asked last.
    pub is_reached: bool,
    /// Why it cannot be driven.
    pub why: Option<String>,
    /// The latest change that it serves.
    pub change: Option<u64>,
    /// The version of what it serves, as it names it itself.
    pub version: Option<String>,
    /// What was sent to it since the cloud was started.
    pub sent: Sent,
    /// How many load balancers it serves.
    pub load_balancers: usize,
    /// The load balancers that it refused, and what it said.
    pub refused: BTreeMap<String, String>,
}

/// What was sent to a machine to be served.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Sent {
    /// How often everything was sent.
    pub whole: u64,
    /// How often a change was sent.
    pub changes: u64,
    /// The bytes of both.
    pub bytes: u64,
}

impl Sent {
    /// Counts what is sent.
    pub(super) fn count(&mut self, method: &Method, bytes: usize) {
        match *method {
            Method::PATCH => self.changes += 1,
            _ => self.whole += 1,
        }
        self.bytes += bytes as u64;
    }
}

impl DriveStatus {
    /// Why not every machine serves what it has to; empty if all do.
    pub fn problems(&self) -> Vec<String> {
        let problems = |machine: &MachineStatus| {
            let address = &machine.address;
            match (machine.is_reached, &machine.why, machine.change) {
                (true, _, Some(_)) => {
                    let refused = machine
                        .refused
                        .iter()
                        .map(|(id, message)| format!("{address} refuses {id}: {message}"));
                    refused.collect()
                }
                (_, Some(why), _) => vec![format!("{address} is not driven: {why}")],
                _ => vec![format!("{address} has not taken anything yet")],
            }
        };
        self.data_planes.iter().flat_map(problems).collect()
    }
}

/// Shows what the machines of a driver have taken.
#[derive(Clone, Debug)]
pub struct DriveView(pub(super) Arc<Shared>);

impl DriveView {
    /// What they have taken by now.
    pub fn status(&self) -> DriveStatus {
        self.0.status()
    }
}
