//! The thread that answers the administrator.

use std::cell::Cell;
use std::convert::Infallible;
use std::future::poll_fn;
use std::io;
use std::net::TcpListener as StdListener;
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use socket2::SockRef;
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::{Builder, LocalOptions};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::task::{JoinHandle, spawn_local};
use tokio::time::{Instant, sleep, timeout_at};

use super::{Command, Known, change};

/// Connections at a time; more wait.
const CONNECTIONS: usize = 64;

/// How long a connection may take, from its beginning to its end.
const LIMIT: Duration = Duration::from_secs(10);

/// The same for a client that may change the configuration, which may take its time.
const LIMIT_OF_CHANGES: Duration = Duration::from_secs(120);

/// How long to wait when the process has no descriptor left.
const EXHAUSTED: Duration = Duration::from_millis(100);

/// Answers until no commands can come any more.
///
/// # Errors
/// When the runtime cannot be set up.
pub(super) fn run(
    known: &Arc<Known>,
    mut commands: mpsc::UnboundedReceiver<Command>,
) -> io::Result<()> {
    let runtime = Builder::new_current_thread().enable_all().build_local(LocalOptions::default())?;
    runtime.block_on(async {
        let mut accepting: Option<Accepting> = None;
        while let Some(command) = commands.recv().await {
            let next = match command {
                Command::Share => {
                    if let Some(accepting) = &accepting {
                        // Without that, the other process says that the address is in use.
                        let _ = SockRef::from(&*accepting.socket).set_reuse_port(true);
                    }
                    continue;
                }
                Command::Close => None,
                // A socket that listens already can always be watched.
                Command::Listen(socket) => Accepting::start(socket, known).ok(),
            };
            if let Some(before) = std::mem::replace(&mut accepting, next) {
                before.stop(known).await;
            }
        }
    });
    Ok(())
}

/// The address's socket, and the task that accepts its connections.
struct Accepting {
    socket: Rc<TcpListener>,
    task: JoinHandle<()>,
}

impl Accepting {
    fn start(socket: StdListener, known: &Arc<Known>) -> io::Result<Self> {
        let socket = Rc::new(TcpListener::from_std(socket)?);
        let (of_task, known) = (Rc::clone(&socket), Arc::clone(known));
        let task = spawn_local(async move { accept(&of_task, &known).await });
        Ok(Self { socket, task })
    }

    /// Takes in the connections that the kernel has completed already, and closes the socket.
    async fn stop(self, known: &Arc<Known>) {
        self.task.abort();
        let _ = self.task.await;
        let next = async || {
            poll_fn(|cx| match self.socket.poll_accept(cx) {
                Poll::Ready(Ok((stream, _))) => Poll::Ready(Some(stream)),
                _ => Poll::Ready(None),
            })
            .await
        };
        while let Some(stream) = next().await {
            spawn_serving(stream, known, None);
        }
    }
}

async fn accept(socket: &TcpListener, known: &Arc<Known>) {
    let room = Arc::new(Semaphore::new(CONNECTIONS));
    loop {
        let Ok(place) = Arc::clone(&room).acquire_owned().await else { return };
        match socket.accept().await {
            Ok((stream, _)) => spawn_serving(stream, known, Some(place)),
            Err(_) => sleep(EXHAUSTED).await,
        }
    }
}

/// Serves a connection in a task of its own, which gives its place back.
fn spawn_serving(stream: TcpStream, known: &Arc<Known>, place: Option<OwnedSemaphorePermit>) {
    let known = Arc::clone(known);
    spawn_local(async move {
        // A client that is too slow, or breaks the protocol, gets no answer.
        serve_for_a_while(stream, &known).await;
        drop(place);
    });
}

async fn serve_for_a_while(stream: TcpStream, known: &Arc<Known>) {
    let (began, limit) = (Instant::now(), Rc::new(Cell::new(LIMIT)));
    let mut served = pin!(serve(stream, known, &limit));
    loop {
        let end = began + limit.get();
        // Meanwhile the limit may have become another one.
        if timeout_at(end, &mut served).await.is_ok() || end == began + limit.get() {
            return;
        }
    }
}

async fn serve(
    stream: TcpStream,
    known: &Arc<Known>,
    limit: &Rc<Cell<Duration>>,
) -> hyper::Result<()> {
    let answer = service_fn(|request| {
        let (known, limit) = (Arc::clone(known), Rc::clone(limit));
        let may_change = move || limit.set(LIMIT_OF_CHANGES);
        async move { Ok::<_, Infallible>(change::answer(request, &known, may_change).await) }
    });
    let mut builder = http1::Builder::new();
    builder.keep_alive(false).half_close(true);
    builder.serve_connection(TokioIo::new(stream), answer).await
}
