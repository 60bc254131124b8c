//! The thread that answers the administrator.

use std::cell::Cell;
use std::convert::Infallible;
use std::io;
use std::net::TcpListener as StdListener;
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::{Builder, LocalOptions};
use tokio::sync::{Semaphore, mpsc};
use tokio::task::spawn_local;
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
        let mut accepting = None;
        while let Some(command) = commands.recv().await {
            let next = match command {
                Command::Close => None,
                Command::Listen(socket) => {
                    let known = Arc::clone(known);
                    Some(spawn_local(async move { accept(socket, &known).await }))
                }
            };
            if let Some(before) = std::mem::replace(&mut accepting, next) {
                before.abort();
            }
        }
    });
    Ok(())
}

async fn accept(socket: StdListener, known: &Arc<Known>) {
    // A socket that listens already can always be watched.
    let Ok(socket) = TcpListener::from_std(socket) else { return };
    let room = Arc::new(Semaphore::new(CONNECTIONS));
    loop {
        let Ok(place) = Arc::clone(&room).acquire_owned().await else { return };
        match socket.accept().await {
            Ok((stream, _)) => {
                let known = Arc::clone(known);
                spawn_local(async move {
                    // A client that is too slow, or breaks the protocol, gets no answer.
                    serve_for_a_while(stream, &known).await;
                    drop(place);
                });
            }
            Err(_) => sleep(EXHAUSTED).await,
        }
    }
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
