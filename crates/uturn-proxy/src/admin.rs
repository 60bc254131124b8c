//! What the person who runs the load balancer can ask it: an HTTP server on a thread of its own.
//!
//! - `/metrics`: counts, for Prometheus
//! - `/targets`: what is known of each target, as JSON
//! - `/healthz`: 200 if every listener accepts connections, else 503

mod metrics;
mod overview;
mod pages;
mod serve;
mod targets;

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::SystemTime;

use arc_swap::ArcSwap;
use tokio::sync::mpsc;

pub(crate) use overview::{Overview, ShownListener};

use crate::error::StartError;
use crate::process::Process;

/// The thread that answers.
#[derive(Debug)]
pub(crate) struct Admin {
    commands: Option<mpsc::UnboundedSender<Command>>,
    handle: Option<JoinHandle<io::Result<()>>>,
    known: Arc<Known>,
    address: Option<SocketAddr>,
}

/// What the answers are made of.
#[derive(Debug)]
struct Known {
    process: Arc<Process>,
    overview: ArcSwap<Overview>,
    started: SystemTime,
}

/// What the thread is told to do.
#[derive(Debug)]
enum Command {
    /// Answer what comes in here, and nowhere else.
    Listen(TcpListener),
    /// Answer no more.
    Close,
}

/// A change of the address, for which everything is ready.
#[derive(Debug)]
pub(crate) enum Move {
    /// The address stays.
    Stay,
    /// It is another one, or the first.
    Open(SocketAddr, TcpListener),
    /// There is none any more.
    Close,
}

impl Admin {
    /// Starts the thread. It does not listen yet.
    ///
    /// # Errors
    /// When there is no thread to be had.
    pub(crate) fn start(process: Arc<Process>) -> Result<Self, StartError> {
        let (commands, receiver) = mpsc::unbounded_channel();
        let overview = ArcSwap::default();
        let known = Arc::new(Known { process, overview, started: SystemTime::now() });
        let of_thread = Arc::clone(&known);
        let handle = thread::Builder::new()
            .name("admin".into())
            .spawn(move || serve::run(&of_thread, receiver))
            .map_err(|source| StartError { doing: "start the admin thread".into(), source })?;
        Ok(Self { commands: Some(commands), handle: Some(handle), known, address: None })
    }

    /// Prepares to answer at this address.
    ///
    /// # Errors
    /// When it cannot be listened at; then nothing has changed.
    pub(crate) fn prepare(&self, address: Option<SocketAddr>) -> Result<Move, StartError> {
        match address {
            same if same == self.address => Ok(Move::Stay),
            None => Ok(Move::Close),
            Some(address) => match listen(address) {
                Ok(listener) => Ok(Move::Open(address, listener)),
                Err(source) => {
                    let doing = format!("listen on {address}, the admin address");
                    Err(StartError { doing, source })
                }
            },
        }
    }

    /// Moves to an address that was prepared, and shows this from now on.
    pub(crate) fn change(&mut self, to: Move, overview: Overview) {
        self.known.overview.store(Arc::new(overview));
        let (address, command) = match to {
            Move::Stay => return,
            Move::Open(address, listener) => (Some(address), Command::Listen(listener)),
            Move::Close => (None, Command::Close),
        };
        self.address = address;
        if let Some(commands) = &self.commands {
            // The thread is gone only if its runtime could not be set up.
            let _ = commands.send(command);
        }
    }

    /// What is shown.
    pub(crate) fn overview(&self) -> Arc<Overview> {
        self.known.overview.load_full()
    }
}

impl Drop for Admin {
    fn drop(&mut self) {
        drop(self.commands.take());
        if let Some(handle) = self.handle.take() {
            let _ = handle.join();
        }
    }
}

fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let listener = TcpListener::bind(address)?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}
