//! Status of each machine: the changes that it took, and what it refused.

use std::collections::BTreeMap;
use std::sync::Arc;

use http::Method;
use serde::Serialize;
use uturn_cloud_api::unserved::Unserved;

use super::shared::Shared;
use crate::plane::LeftOut;

/// The status of the data plane.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct DriveStatus {
    /// The number of the latest change. Numbers start again with each process.
    pub change: u64,
    /// The machines.
    pub data_planes: Vec<MachineStatus>,
    /// The load balancers and listeners that are not served, or not as the requests asked.
    pub left_out: Vec<LeftOut>,
    /// The number of load balancers and listeners that are not served, for each reason.
    pub unserved: BTreeMap<Unserved, usize>,
    /// The number of tasks that failed since the cloud was started, because the data plane does not
    /// serve their changes.
    pub failed_tasks: u64,
}

/// The status of one machine.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct MachineStatus {
    /// The admin address.
    pub address: String,
    /// Whether the machine answered the last request.
    pub is_reached: bool,
    /// The reason why the machine cannot be driven.
    pub why: Option<String>,
    /// The latest change that the machine serves.
    pub change: Option<u64>,
    /// The version of the served configuration, as the machine names it.
    pub version: Option<String>,
    /// The amount of configuration that was sent to the machine since the cloud was started.
    pub sent: Sent,
    /// The number of load balancers that the machine serves.
    pub load_balancers: usize,
    /// The load balancers that the machine refused, with its messages.
    pub refused: BTreeMap<String, String>,
}

/// The amount of configuration that was sent to a machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Sent {
    /// The number of times that the whole configuration was sent.
    pub whole: u64,
    /// The number of times that a change was sent.
    pub changes: u64,
    /// The bytes of whole configurations and changes together.
    pub bytes: u64,
}

impl Sent {
    /// Counts one transfer: PATCH as a change, any other method as a whole configuration.
    pub(super) fn count(&mut self, method: &Method, bytes: usize) {
        match *method {
            Method::PATCH => self.changes += 1,
            _ => self.whole += 1,
        }
        self.bytes += bytes as u64;
    }
}

impl DriveStatus {
    /// Returns the reasons why some machines do not serve all that they have to; empty if there are
    /// none.
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

/// A handle that shows the status of a driver's machines.
#[derive(Clone, Debug)]
pub struct DriveView(pub(super) Arc<Shared>);

impl DriveView {
    /// Returns the current status.
    pub fn status(&self) -> DriveStatus {
        self.0.status()
    }
}
