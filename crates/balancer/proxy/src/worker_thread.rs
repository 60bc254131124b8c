//! A thread that serves connections, with state of its own.
//!
//! Each worker has sockets of its own for each listener, and the kernel spreads clients over them.
//! A connection stays with the worker that accepted it, and so do the connections to targets, so
//! serving takes no lock.

use std::collections::HashMap;
use std::future::{pending, poll_fn};
use std::io;
use std::net::{SocketAddr, TcpListener as StdListener};
use std::os::fd::{AsFd, OwnedFd};
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::task::Poll;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::{Builder, LocalOptions};
use tokio::sync::mpsc;
use tokio::task::{JoinHandle, spawn_local, yield_now};
use tokio::time::{Instant, sleep, timeout, timeout_at};
use uturn_lb::client_address::canonical;

use crate::backlog::accept_waiting;
use crate::client::Accepted;
use crate::descriptors::Purpose;
use crate::local_error::{Cause, Operation};
use crate::metrics::Refusal;
use crate::process::Process;
use crate::state::Slot;
use crate::worker::Worker;

/// The pause when the process has no descriptor left.
const EXHAUSTED: Duration = Duration::from_millis(10);

/// The longest time until a client's first request when the process stops.
const FIRST_REQUEST: Duration = Duration::from_millis(250);

/// A command to a worker.
#[derive(Debug)]
pub(crate) enum Command {
    /// Serve a listener, at these sockets.
    Listen(Vec<StdListener>, Arc<Slot>),
    /// Send duplicates of all listening sockets to another process, which accepts there as well.
    Share(Sender<io::Result<OwnedFd>>),
    /// Accept no more connections of the listener at this address, and answer when its sockets are
    /// closed.
    Close(SocketAddr, Sender<()>),
    /// Answer, to show that commands are followed.
    Answer(Sender<()>),
    /// Accept no more connections, and end the open ones within this time. A second such command
    /// ends them at once.
    Stop(Duration),
}

/// Serves until a command says to stop, or the sender of commands is gone.
///
/// # Errors
/// When the runtime cannot be set up.
pub(crate) fn run(
    number: usize,
    process: Arc<Process>,
    mut commands: mpsc::UnboundedReceiver<Command>,
) -> io::Result<()> {
    let runtime = Builder::new_current_thread().enable_all().build_local(LocalOptions::default())?;
    runtime.block_on(async {
        let worker = Rc::new(Worker::new(number, process));
        let (deadlines, pool) = (Rc::clone(&worker.deadlines), Rc::clone(&worker));
        spawn_local(async move { deadlines.run().await });
        spawn_local(async move { pool.pool.run().await });
        let mut listeners: HashMap<SocketAddr, Accepting> = HashMap::new();
        let mut drain = Duration::ZERO;
        while let Some(command) = commands.recv().await {
            match command {
                Command::Listen(sockets, slot) => {
                    let address = slot.current().address;
                    // A socket that listens already can always be watched.
                    if let Ok(accepting) = Accepting::start(&worker, sockets, slot) {
                        listeners.insert(address, accepting);
                    }
                }
                Command::Share(taker) => {
                    for socket in listeners.values().flat_map(|listener| &listener.sockets) {
                        // The receiver waits until all senders are dropped.
                        let _ = taker.send(socket.as_fd().try_clone_to_owned());
                    }
                }
                Command::Close(address, answer) => {
                    if let Some(accepting) = listeners.remove(&address) {
                        accepting.stop(&worker).await;
                    }
                    // The receiver is gone if the server does not wait any more.
                    let _ = answer.send(());
                }
                Command::Answer(answer) => {
                    // The receiver is gone if the server does not wait any more.
                    let _ = answer.send(());
                }
                Command::Stop(limit) => {
                    drain = limit;
                    break;
                }
            }
        }
        for (_, accepting) in listeners {
            accepting.stop(&worker).await;
        }
        let end = Instant::now() + drain;
        let mut ended = pin!(async {
            // Clients that were accepted last have had no time yet to send a request.
            let _ = timeout(FIRST_REQUEST.min(drain), worker.all_closed()).await;
            worker.end_connections().await;
        });
        // Connections that are open after that are cut with the runtime.
        let mut stopped = pin!(another_stop(&mut commands));
        let either = poll_fn(|cx| match ended.as_mut().poll(cx) {
            Poll::Ready(()) => Poll::Ready(()),
            Poll::Pending => stopped.as_mut().poll(cx),
        });
        let _ = timeout_at(end, either).await;
    });
    Ok(())
}

/// Completes when a worker that stops gets another command to stop.
async fn another_stop(commands: &mut mpsc::UnboundedReceiver<Command>) {
    while let Some(command) = commands.recv().await {
        if matches!(command, Command::Stop(_)) {
            return;
        }
    }
    // The sender of commands is gone.
    pending::<()>().await;
}

/// A worker's sockets of a listener, and the tasks that accept their connections. There is more
/// than one socket if the previous process had more workers.
struct Accepting {
    sockets: Vec<Rc<TcpListener>>,
    slot: Arc<Slot>,
    tasks: Vec<JoinHandle<()>>,
}

impl Accepting {
    fn start(worker: &Rc<Worker>, sockets: Vec<StdListener>, slot: Arc<Slot>) -> io::Result<Self> {
        let watched = |socket| Ok(Rc::new(TcpListener::from_std(socket)?));
        let sockets = sockets.into_iter().map(watched).collect::<io::Result<Vec<_>>>()?;
        let accepting = |socket: &Rc<TcpListener>| {
            let (worker, socket, slot) = (Rc::clone(worker), Rc::clone(socket), Arc::clone(&slot));
            spawn_local(async move { accept(&worker, &socket, &slot).await })
        };
        let tasks = sockets.iter().map(accepting).collect();
        slot.metrics.begin_accepting();
        Ok(Self { sockets, slot, tasks })
    }

    /// Accepts the connections that the kernel has completed already, and closes the sockets.
    async fn stop(self, worker: &Rc<Worker>) {
        for task in self.tasks {
            task.abort();
            let _ = task.await;
        }
        self.slot.metrics.end_accepting();
        for socket in &self.sockets {
            while let Some((stream, address)) = accept_waiting(socket).await {
                serve(worker, &self.slot, stream, address);
            }
        }
    }
}

async fn accept(worker: &Rc<Worker>, socket: &TcpListener, slot: &Arc<Slot>) {
    loop {
        match socket.accept().await {
            Ok((stream, address)) => serve(worker, slot, stream, address),
            Err(error) => {
                // Errors without a local cause concern a client that is gone already.
                if let Some(cause) = Cause::of(&error) {
                    worker.process.local_errors.count(Operation::Accept, cause);
                    worker.pool.close_idle();
                    // Some connections have to end first.
                    sleep(EXHAUSTED).await;
                }
                yield_now().await;
            }
        }
    }
}

/// Serves a connection in a task of its own, or closes it if a limit is reached.
fn serve(worker: &Rc<Worker>, slot: &Arc<Slot>, stream: TcpStream, address: SocketAddr) {
    let metrics = slot.metrics.of_worker(worker.number);
    metrics.accept();
    if !worker.process.descriptors.allow(&stream, Purpose::Client) {
        worker.process.local_errors.count(Operation::Accept, Cause::Descriptors);
        worker.pool.close_idle();
        metrics.refuse(Refusal::Descriptors);
        return metrics.close();
    }
    let peer = canonical(address);
    let Some((admission, share)) = worker.process.admit(peer.ip()) else {
        metrics.refuse(Refusal::ProcessLimit);
        return metrics.close();
    };
    let accepted = Accepted {
        worker: Rc::clone(worker),
        slot: Arc::clone(slot),
        stream,
        peer,
        share,
        connection: admission.number,
    };
    let (number, slot, open) = (worker.number, Arc::clone(slot), worker.open());
    spawn_local(async move {
        accepted.run().await;
        slot.metrics.of_worker(number).close();
        drop((admission, open));
    });
}
