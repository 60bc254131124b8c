//! Drives the data plane: configures `uturn lb run` on each machine, and asks it for the health of
//! targets.
//!
//! Every machine has a task of its own, which compares the configuration that the machine serves
//! with the one that it has to serve: after each change, and each time it asks for the health of
//! targets. So a machine that was away, or was restarted, is configured again.

mod address;
mod admin;
mod document;
mod machine;
mod notice;
mod progress;
mod refusal;
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
    /// The admin address.
    pub address: PlaneAddress,
    /// The token that authorizes changes of the machine's configuration.
    pub token: PlaneToken,
}

/// The intervals and timeouts with which machines are driven.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pace {
    /// The interval at which each machine is asked for the health of its targets.
    pub poll: Duration,
    /// The pause before a machine that could not be reached is tried again; it doubles after each
    /// try.
    pub first_retry: Duration,
    /// The longest pause between such tries.
    pub longest_retry: Duration,
    /// The time after which a load balancer that a machine refused is tried again.
    pub refused: Duration,
    /// The time a machine may be away, as for a restart, before its load balancers count as not
    /// served.
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

/// A callback that receives notices while machines are driven.
pub type Observer = Arc<dyn Fn(&Notice) + Send + Sync>;

/// A driver of machines, which runs until it is dropped.
#[derive(Debug)]
pub struct Driver {
    shared: Arc<Shared>,
    stop: watch::Sender<bool>,
    thread: Option<JoinHandle<()>>,
}

impl Driver {
    /// Starts to drive these machines. `health` must be the view that the cloud was created with.
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
                // An error means that nothing can stop the thread any more but the end of the
                // process.
                let _ = stopped.wait_for(|stopped| *stopped).await;
            });
        })?;
        Ok(Self { shared, stop, thread: Some(thread) })
    }

    /// Returns a view of the status of the machines.
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
