//! The thread that answers the administrator.

use std::convert::Infallible;
use std::io;
use std::net::TcpListener as StdListener;
use std::sync::Arc;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::{Builder, LocalOptions};
use tokio::sync::{Semaphore, mpsc};
use tokio::task::spawn_local;
use tokio::time::{sleep, timeout};

use super::{Command, Known, pages};

/// Connections at a time; more wait.
const CONNECTIONS: usize = 64;

/// How long a connection may take, from its beginning to its end.
const LIMIT: Duration = Duration::from_secs(10);

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
                    let _ = timeout(LIMIT, serve(stream, &known)).await;
                    drop(place);
                });
            }
            Err(_) => sleep(EXHAUSTED).await,
        }
    }
}

async fn serve(stream: TcpStream, known: &Arc<Known>) -> hyper::Result<()> {
    let answer = service_fn(|request| {
        let answer = pages::answer(&request, known);
        async move { Ok::<_, Infallible>(answer) }
    });
    let mut builder = http1::Builder::new();
    builder.keep_alive(false).half_close(true);
    builder.serve_connection(TokioIo::new(stream), answer).await
}
