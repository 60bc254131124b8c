//! Drives the data plane: tells `uturn lb run` on each machine what to serve, and asks it how
//! targets are.
//!
//! Every machine has a task of its own, which compares what the machine serves with what it has
//! to serve: after each change, and each time it asks for the health of targets. So a machine that
//! was away, or was started anew, is driven again.

mod address;
mod admin;
mod document;
mod machine;
mod notice;
mod progress;
mod shared;
mod status;
mod view;

use std::io;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use tokio::runtime::Builder;
use tokio::sync::watch;
use tokio::task::JoinSet;

pub use self::address::{InvalidPlane, PlaneAddress, PlaneToken};
use self::machine::Machine;
pub use self::notice::Notice;
use self::shared::Shared;
pub use self::status::{DriveStatus, DriveView, MachineStatus, Sent};
pub use self::view::PlaneHealth;
use crate::cloud::Cloud;

/// A machine of the data plane.
#[derive(Clone, Debug)]
pub struct DataPlane {
    /// Its admin address.
    pub address: PlaneAddress,
    /// What it takes to change what it serves.
    pub token: PlaneToken,
}

/// How machines are driven.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pace {
    /// How often each is asked for the health of its targets.
    pub poll: Duration,
    /// How soon one that could not be reached is tried again; twice as long after each time.
    pub first_retry: Duration,
    /// The longest time until then.
    pub longest_retry: Duration,
    /// How often a load balancer is tried again that one refused.
    pub refused: Duration,
    /// How long one may be away, as for a restart, before what it serves counts as not served.
    pub lost: Duration,
}

impl Default for Pace {
    fn default() -> Self {
        Self {
            poll: Duration::from_secs(1),
            first_retry: Duration::from_millis(200),
            longest_retry: Duration::from_secs(5),
            refused: Duration::from_secs(30),
            lost: Duration::from_secs(10),
        }
    }
}

/// Takes what has to be reported while machines are driven.
pub type Observer = Arc<dyn Fn(&Notice) + Send + Sync>;

/// Drives machines until it is dropped.
#[derive(Debug)]
pub struct Driver {
    shared: Arc<Shared>,
    stop: watch::Sender<bool>,
    thread: Option<JoinHandle<()>>,
}

impl Driver {
    /// Starts to drive these machines. `health` is the view that the cloud was made with.
    ///
    /// # Errors
    ///
    /// Returns why there is no thread or runtime for it, or why the system's certificate
    /// authorities cannot be read, which machines with TLS need.
    pub fn start(
        cloud: Arc<Cloud>,
        planes: Vec<DataPlane>,
        health: Arc<PlaneHealth>,
        pace: Pace,
        observer: Observer,
    ) -> io::Result<Self> {
        let addresses = planes.iter().map(|plane| plane.address.to_string()).collect();
        let shared = Arc::new(Shared::new(cloud, addresses, health, observer));
        let machines = planes
            .into_iter()
            .enumerate()
            .map(|(number, plane)| Machine::new(number, plane, pace, Arc::clone(&shared)))
            .collect::<io::Result<Vec<_>>>()?;
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let stop = watch::Sender::new(false);
        let mut stopped = stop.subscribe();
        let thread = thread::Builder::new().name("data plane".to_owned()).spawn(move || {
            runtime.block_on(async {
                let mut running = JoinSet::new();
                for machine in machines {
                    running.spawn(machine.run());
                }
                // An error says that nothing can stop it any more but the end of the process.
                let _ = stopped.wait_for(|stopped| *stopped).await;
            });
        })?;
        Ok(Self { shared, stop, thread: Some(thread) })
    }

    /// Shows what the machines have taken.
    pub fn view(&self) -> DriveView {
        DriveView(Arc::clone(&self.shared))
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        self.stop.send_replace(true);
        if let Some(thread) = self.thread.take() {
            // A panic of the thread has been printed.
            let _ = thread.join();
        }
    }
}
