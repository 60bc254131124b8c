//! The API over HTTP: accepts connections, reads requests within limits, and hands them to the
//! [`Cloud`].

mod admin;
mod body;
mod large_bodies;
mod limits;
mod metrics;
mod places;
mod request;
mod signals;
mod stream;
mod tls;

use std::convert::Infallible;
use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener as StdListener};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio::runtime::Builder;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use uturn_model::client_network;

pub use self::admin::AdminPages;
pub use self::limits::Limits;
use self::places::{Client, Places};
use self::request::Shared;
use self::stream::TimedStream;
pub use self::tls::Tls;
use crate::cloud::Cloud;

/// The longest head of a request, with its first line, which has the query string, and its headers.
const MAX_HEAD: usize = 64 << 10;

/// The pause before the next attempt to accept when the process has no file descriptor left.
const EXHAUSTED: Duration = Duration::from_millis(100);

/// The interval at which connections without a request are closed while another one waits.
const MAKE_ROOM: Duration = Duration::from_secs(1);

/// The time that open requests have to end when the server stops.
const DRAIN: Duration = Duration::from_secs(5);

/// A server that listens but does not serve yet.
#[derive(Debug)]
pub struct Server {
    socket: StdListener,
    handler: Handler,
    limits: Limits,
    tls: Option<Tls>,
}

/// The part of the server that answers requests.
#[derive(Clone, Debug)]
enum Handler {
    Api(Shared),
    Admin(Arc<AdminPages>),
}

impl Handler {
    async fn answer(
        &self,
        request: Request<Incoming>,
        network: IpAddr,
        limits: &Limits,
    ) -> Response<Full<Bytes>> {
        match self {
            Self::Api(shared) => request::answer(request, shared, network, limits).await,
            Self::Admin(pages) => pages.answer(&request),
        }
    }
}

/// A handle that stops a server from another thread.
#[derive(Clone, Debug)]
pub struct Stop(Arc<watch::Sender<bool>>);

impl Stop {
    /// Returns a handle for a server that is not stopped yet.
    pub fn new() -> Self {
        Self(Arc::new(watch::Sender::new(false)))
    }

    /// Stops the server: it accepts no more connections, and open ones get some seconds to end.
    pub fn stop(&self) {
        self.0.send_replace(true);
    }
}

impl Default for Stop {
    fn default() -> Self {
        Self::new()
    }
}

impl Server {
    /// Listens on an address; port 0 selects a free one.
    ///
    /// # Errors
    ///
    /// Returns why the address cannot be listened on.
    pub fn bind(address: SocketAddr, cloud: Arc<Cloud>) -> io::Result<Self> {
        Self::listen(address, Handler::Api(Shared::new(cloud)))
    }

    /// Listens on an address, and serves the operator's pages there.
    ///
    /// # Errors
    ///
    /// Returns the same error as [`Self::bind`].
    pub fn bind_admin(address: SocketAddr, pages: AdminPages) -> io::Result<Self> {
        Self::listen(address, Handler::Admin(Arc::new(pages)))
    }

    fn listen(address: SocketAddr, handler: Handler) -> io::Result<Self> {
        let socket = StdListener::bind(address)?;
        socket.set_nonblocking(true)?;
        Ok(Self { socket, handler, limits: Limits::default(), tls: None })
    }

    /// Returns the server with TLS. It then accepts no plain HTTP.
    #[must_use]
    pub fn with_tls(self, tls: Tls) -> Self {
        Self { tls: Some(tls), ..self }
    }

    /// Returns the server with other limits.
    #[must_use]
    pub fn with_limits(self, limits: Limits) -> Self {
        Self { limits, ..self }
    }

    /// Returns the address that the server listens on.
    ///
    /// # Errors
    ///
    /// Returns why the system cannot tell the address.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    /// Serves until the server is stopped.
    ///
    /// # Errors
    ///
    /// Returns why the runtime cannot be set up.
    pub fn run(self, stop: &Stop) -> io::Result<()> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let _guard = runtime.enter();
        let socket = TcpListener::from_std(self.socket)?;
        runtime.block_on(accept(socket, self.handler, self.limits, self.tls, stop))
    }

    /// Serves until the server is stopped, or the process gets SIGTERM or an interrupt.
    ///
    /// # Errors
    ///
    /// Returns why the runtime or the signals cannot be set up.
    pub fn run_until_signalled(self, stop: &Stop) -> io::Result<()> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let _guard = runtime.enter();
        let socket = TcpListener::from_std(self.socket)?;
        let (signalled, stop_then) = (signals::signalled()?, stop.clone());
        runtime.spawn(async move {
            signalled.await;
            stop_then.stop();
        });
        runtime.block_on(accept(socket, self.handler, self.limits, self.tls, stop))
    }
}

async fn accept(
    socket: TcpListener,
    handler: Handler,
    limits: Limits,
    tls: Option<Tls>,
    stop: &Stop,
) -> io::Result<()> {
    let room = Arc::new(Semaphore::new(limits.connections));
    let places = Arc::new(Places::new(limits.connections_per_address));
    let mut connections = JoinSet::new();
    let mut stopping = stop.0.subscribe();
    loop {
        let accepted = tokio::select! {
            () = stopped(&mut stopping) => break,
            accepted = socket.accept() => accepted,
        };
        while connections.try_join_next().is_some() {}
        let Ok((stream, peer)) = accepted else {
            sleep(EXHAUSTED).await;
            continue;
        };
        let network = client_network(peer.ip());
        if places.is_full(network) {
            continue;
        }
        let Some(permit) = permit(&room, &places, &mut stopping).await else { break };
        let (handler, tls, stopping) = (handler.clone(), tls.clone(), stopping.clone());
        let place = places.enter(network);
        connections.spawn(async move {
            let client = &place.client;
            let stream = TimedStream::new(stream, limits.answer);
            let serving = async {
                match tls {
                    None => serve(stream, handler, limits, client, stopping).await,
                    Some(tls) => {
                        // A client that does not speak TLS needs no answer.
                        if let Ok(stream) = tls.acceptor().accept(stream).await {
                            serve(stream, handler, limits, client, stopping).await;
                        }
                    }
                }
            };
            tokio::select! {
                () = serving => {}
                () = client.leaves(limits.first_head) => {}
            }
            drop((place, permit));
        });
    }
    drop(socket);
    // Connections that are still open after this are closed with the runtime.
    let _ = timeout(DRAIN, async { while connections.join_next().await.is_some() {} }).await;
    Ok(())
}

/// Waits for room for one more connection; `None` if the server stops meanwhile.
async fn permit(
    room: &Arc<Semaphore>,
    places: &Places,
    stopping: &mut watch::Receiver<bool>,
) -> Option<OwnedSemaphorePermit> {
    loop {
        if let Ok(permit) = Arc::clone(room).try_acquire_owned() {
            return Some(permit);
        }
        places.make_room();
        tokio::select! {
            () = stopped(stopping) => return None,
            permit = Arc::clone(room).acquire_owned() => return permit.ok(),
            () = sleep(MAKE_ROOM) => {}
        }
    }
}

async fn serve<S: AsyncRead + AsyncWrite + Unpin>(
    stream: S,
    handler: Handler,
    limits: Limits,
    client: &Client,
    mut stopping: watch::Receiver<bool>,
) {
    let service = service_fn(|request| async {
        client.begins();
        let answer = handler.answer(request, client.network, &limits).await;
        client.ends();
        Ok::<_, Infallible>(answer)
    });
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(limits.head).max_buf_size(MAX_HEAD);
    // A client that has shut down its sending side still gets its answer.
    builder.half_close(true);
    let connection = builder.serve_connection(TokioIo::new(stream), service);
    tokio::pin!(connection);
    // A client that breaks the protocol or goes away needs no answer.
    tokio::select! {
        _ = connection.as_mut() => {}
        () = stopped(&mut stopping) => {
            connection.as_mut().graceful_shutdown();
            let _ = connection.await;
        }
    }
}

/// Waits until the server has to stop.
async fn stopped(stopping: &mut watch::Receiver<bool>) {
    // An error means that the sender is gone and nothing else can stop the server: it stops now.
    let _ = stopping.wait_for(|stopping| *stopping).await;
}
