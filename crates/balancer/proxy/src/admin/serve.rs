//! The thread that answers at the admin address.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::convert::Infallible;
use std::io;
use std::net::TcpListener as StdListener;
use std::os::fd::AsFd;
use std::pin::pin;
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::{Builder, LocalOptions};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::task::{JoinHandle, spawn_local};
use tokio::time::{Instant, sleep, sleep_until, timeout};

use super::{Command, Known, change};
use crate::backlog::accept_waiting;
use crate::descriptors::Purpose;

/// The most connections at a time. Beyond that, a client that has not asked for anything is
/// disconnected for a new one.
const CONNECTIONS: usize = 64;

/// The longest time of a connection, from its beginning to its end.
const LIMIT: Duration = Duration::from_secs(10);

/// The longest time of a connection whose client may change the configuration.
const LIMIT_OF_CHANGES: Duration = Duration::from_secs(120);

/// The pause when the process has no descriptor left.
const EXHAUSTED: Duration = Duration::from_millis(100);

/// The state that serving a connection needs.
#[derive(Clone)]
struct Service {
    known: Arc<Known>,
    /// A sender of which each open connection has a clone. Its receiver sees when the last one
    /// closes.
    _open: mpsc::Sender<Infallible>,
}

impl Service {
    /// Returns whether a connection leaves enough descriptors for health checks.
    fn allows(&self, stream: &TcpStream) -> bool {
        self.known.process.descriptors.allow(stream, Purpose::Admin)
    }
}

/// Answers until a command says to end, or the sender of commands is gone.
///
/// # Errors
/// When the runtime cannot be set up.
pub(super) fn run(
    known: &Arc<Known>,
    mut commands: mpsc::UnboundedReceiver<Command>,
) -> io::Result<()> {
    let runtime = Builder::new_current_thread().enable_all().build_local(LocalOptions::default())?;
    runtime.block_on(async {
        let (open, mut connections) = mpsc::channel(1);
        let service = Service { known: Arc::clone(known), _open: open };
        let mut accepting: Option<Accepting> = None;
        let mut rest = Duration::ZERO;
        while let Some(command) = commands.recv().await {
            let next = match command {
                Command::Share(taker) => {
                    if let Some(accepting) = &accepting {
                        // The receiver waits until the sender is dropped.
                        let _ = taker.send(accepting.socket.as_fd().try_clone_to_owned());
                    }
                    continue;
                }
                Command::End(limit) => {
                    rest = limit;
                    break;
                }
                Command::Close => None,
                // A socket that listens already can always be watched.
                Command::Listen(socket) => Accepting::start(socket, &service).ok(),
            };
            if let Some(before) = std::mem::replace(&mut accepting, next) {
                before.stop(&service).await;
            }
        }
        if let Some(last) = accepting {
            last.stop(&service).await;
        }
        drop(service);
        // Connections that are still open then are cut with the runtime.
        let _ = timeout(rest, connections.recv()).await;
    });
    Ok(())
}

/// The address's socket, and the task that accepts its connections.
struct Accepting {
    socket: Rc<TcpListener>,
    task: JoinHandle<()>,
}

impl Accepting {
    fn start(socket: StdListener, service: &Service) -> io::Result<Self> {
        let socket = Rc::new(TcpListener::from_std(socket)?);
        let (of_task, service) = (Rc::clone(&socket), service.clone());
        let task = spawn_local(async move { accept(&of_task, &service).await });
        Ok(Self { socket, task })
    }

    /// Accepts the connections that the kernel has completed already, and closes the socket.
    async fn stop(self, service: &Service) {
        self.task.abort();
        let _ = self.task.await;
        while let Some((stream, _)) = accept_waiting(&self.socket).await {
            spawn_serving(stream, service, None);
        }
    }
}

async fn accept(socket: &TcpListener, service: &Service) {
    let room = Arc::new(Semaphore::new(CONNECTIONS));
    let callers = Callers::default();
    loop {
        match socket.accept().await {
            // The remaining descriptors are kept for health checks.
            Ok((stream, _)) if !service.allows(&stream) => {
                callers.make_room();
                drop(stream);
                sleep(EXHAUSTED).await;
            }
            Ok((stream, _)) => {
                if room.available_permits() == 0 {
                    callers.make_room();
                }
                let Ok(place) = Arc::clone(&room).acquire_owned().await else { return };
                spawn_serving(stream, service, Some((callers.add(), place)));
            }
            Err(_) => sleep(EXHAUSTED).await,
        }
    }
}

/// A client with an open connection.
#[derive(Debug, Default)]
struct Caller {
    has_asked: Cell<bool>,
    leaves: Notify,
}

/// The clients that have not asked for anything, the oldest first.
#[derive(Debug, Default)]
struct Callers(RefCell<VecDeque<Weak<Caller>>>);

impl Callers {
    fn add(&self) -> Rc<Caller> {
        let caller = Rc::new(Caller::default());
        let mut callers = self.0.borrow_mut();
        callers.retain(|caller| caller.upgrade().is_some_and(|caller| !caller.has_asked.get()));
        callers.push_back(Rc::downgrade(&caller));
        caller
    }

    /// Disconnects the oldest client that has not asked for anything.
    fn make_room(&self) {
        let mut callers = self.0.borrow_mut();
        while let Some(oldest) = callers.pop_front() {
            if let Some(caller) = oldest.upgrade().filter(|caller| !caller.has_asked.get()) {
                return caller.leaves.notify_one();
            }
        }
    }
}

/// Serves a connection in a task of its own. Its place is free again afterwards.
fn spawn_serving(
    stream: TcpStream,
    service: &Service,
    place: Option<(Rc<Caller>, OwnedSemaphorePermit)>,
) {
    let service = service.clone();
    spawn_local(async move {
        let (caller, place) = place.unzip();
        let caller = caller.unwrap_or_default();
        // A client that is too slow, or breaks the protocol, gets no answer.
        serve_for_a_while(stream, &service.known, &caller).await;
        drop((place, service));
    });
}

async fn serve_for_a_while(stream: TcpStream, known: &Arc<Known>, caller: &Rc<Caller>) {
    let (began, limit) = (Instant::now(), Rc::new(Cell::new(LIMIT)));
    let mut served = pin!(serve(stream, known, &limit, caller));
    let mut leaves = pin!(caller.leaves.notified());
    loop {
        let end = began + limit.get();
        tokio::select! {
            _ = &mut served => return,
            () = &mut leaves => return,
            // The limit may have changed meanwhile.
            () = sleep_until(end) => if end == began + limit.get() { return },
        }
    }
}

async fn serve(
    stream: TcpStream,
    known: &Arc<Known>,
    limit: &Rc<Cell<Duration>>,
    caller: &Caller,
) -> hyper::Result<()> {
    let answer = service_fn(|request| {
        caller.has_asked.set(true);
        let (known, limit) = (Arc::clone(known), Rc::clone(limit));
        let may_change = move || limit.set(LIMIT_OF_CHANGES);
        async move { Ok::<_, Infallible>(change::answer(request, &known, may_change).await) }
    });
    let mut builder = http1::Builder::new();
    builder.keep_alive(false).half_close(true);
    builder.serve_connection(TokioIo::new(stream), answer).await
}

#[cfg(test)]
mod tests {
    use tokio::time::timeout;

    use super::*;

    #[test]
    fn the_oldest_that_has_not_asked_makes_room() {
        let runtime = Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(async {
            let callers = Callers::default();
            let [asked, oldest, gone, newest] = std::array::from_fn(|_| callers.add());
            asked.has_asked.set(true);
            callers.make_room();
            // The notice came before the client waits for it.
            oldest.leaves.notified().await;
            drop(gone);
            callers.make_room();
            newest.leaves.notified().await;
            callers.make_room();
            let told = timeout(Duration::ZERO, asked.leaves.notified()).await;
            assert!(told.is_err(), "it is being answered");
            assert!(callers.0.borrow().is_empty());
        });
    }

    #[test]
    fn those_who_are_gone_take_no_memory() {
        let callers = Callers::default();
        let kept = callers.add();
        for _ in 0..1000 {
            drop(callers.add());
        }
        assert!(callers.0.borrow().len() <= 2);
        drop(kept);
    }
}
