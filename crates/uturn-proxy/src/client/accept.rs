//! A connection that a client opened, from its first byte to its last.

use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use socket2::SockRef;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, copy_bidirectional};
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use uturn_model::lb::Layer;

use super::phase::Phase;
use super::prefixed::Prefixed;
use super::stream;
use super::watched::Watched;
use crate::exchange::{Client, Upgrade, serve};
use crate::local::LocalTasks;
use crate::state::Slot;
use crate::worker::Worker;

/// What every HTTP/2 connection begins with.
const HTTP2_PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// The kind of record that every TLS connection begins with.
const TLS_HANDSHAKE: u8 = 22;

/// Requests that a client may have under way on one HTTP/2 connection.
const HTTP2_STREAMS: u32 = 128;

/// What a client is told that does not complete its request in time.
const TOO_SLOW: &[u8] =
    b"HTTP/1.1 408 Request Timeout\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";

/// What a client is told that speaks no TLS where TLS is terminated.
const NO_TLS: &[u8] =
    b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\nContent-Type: text/plain\r\n\
    Content-Length: 16\r\n\r\n400 Bad Request\n";

/// A connection that was accepted.
#[derive(Debug)]
pub(crate) struct Accepted {
    pub(crate) worker: Rc<Worker>,
    pub(crate) slot: Arc<Slot>,
    pub(crate) stream: TcpStream,
    pub(crate) address: SocketAddr,
    /// Counts the connections of the process.
    pub(crate) connection: u64,
}

/// How a client begins.
enum Beginning {
    Http1,
    Http2,
}

impl Accepted {
    /// Serves the connection until it ends.
    pub(crate) async fn run(self) {
        let client = self.client();
        if let Err(error) = self.serve(&client).await {
            client.report_failure(None, &error.to_string());
        }
    }

    fn client(&self) -> Rc<Client> {
        let deadline = self.worker.deadlines.add();
        let phase = Rc::new(Phase::new(&self.slot.current().settings.timeouts, deadline));
        let (worker, slot) = (Rc::clone(&self.worker), Arc::clone(&self.slot));
        Rc::new(Client::new(worker, slot, self.address, self.connection, phase))
    }

    async fn serve(self, client: &Rc<Client>) -> io::Result<()> {
        let Self { mut stream, .. } = self;
        let listener = &client.listener;
        stream.set_nodelay(true)?;
        let Some(tls) = &listener.tls else {
            return serve_plain(client, stream).await;
        };
        let begins_tls = |bytes: &[u8]| Some(bytes.first() == Some(&TLS_HANDSHAKE));
        let (prefix, is_tls) = client.phase.limit(read_until(&mut stream, begins_tls)).await??;
        let mut stream = Prefixed::new(prefix, stream);
        match (is_tls, listener.protocol.layer()) {
            (None, _) => Ok(()),
            (Some(true), Layer::L4) => {
                let accept = TlsAcceptor::from(Arc::clone(tls)).accept(stream);
                let stream = client.phase.limit(accept).await??;
                stream::forward(client, stream).await
            }
            (Some(true), Layer::L7) => {
                let accept = TlsAcceptor::from(Arc::clone(tls)).accept(stream);
                let stream = client.phase.limit(accept).await??;
                match stream.get_ref().1.alpn_protocol() {
                    Some(b"h2") => serve_http2(client, stream).await,
                    _ => serve_http1(client, stream).await,
                }
            }
            (Some(false), Layer::L7) => {
                stream.write_all(NO_TLS).await?;
                client.report_failure(Some(400), "the client does not speak TLS");
                linger(stream).await
            }
            (Some(false), Layer::L4) => {
                // Layer 4 has no other way to say that something is wrong than to reset.
                SockRef::from(stream.get_ref()).set_linger(Some(Duration::ZERO))?;
                Err(io::Error::other("the client does not speak TLS"))
            }
        }
    }
}

/// Serves requests in the clear, of either version.
async fn serve_plain(client: &Rc<Client>, mut stream: TcpStream) -> io::Result<()> {
    if !client.listener.settings.http2 {
        return serve_http1(client, stream).await;
    }
    let beginning = |bytes: &[u8]| {
        let common = bytes.len().min(HTTP2_PREFACE.len());
        if bytes[..common] != HTTP2_PREFACE[..common] {
            Some(Beginning::Http1)
        } else {
            (common == HTTP2_PREFACE.len()).then_some(Beginning::Http2)
        }
    };
    let (prefix, beginning) = client.phase.limit(read_until(&mut stream, beginning)).await??;
    let stream = Prefixed::new(prefix, stream);
    match beginning {
        None => Ok(()),
        Some(Beginning::Http1) => serve_http1(client, stream).await,
        Some(Beginning::Http2) => serve_http2(client, stream).await,
    }
}

/// Reads until the bytes so far decide something. Returns them, and `None` instead of the decision
/// if the client ends before.
async fn read_until<T>(
    stream: &mut TcpStream,
    decide: impl Fn(&[u8]) -> Option<T>,
) -> io::Result<(Bytes, Option<T>)> {
    let mut bytes = BytesMut::with_capacity(8 * 1024);
    loop {
        if stream.read_buf(&mut bytes).await? == 0 {
            return Ok((bytes.freeze(), None));
        }
        if let Some(decision) = decide(&bytes) {
            return Ok((bytes.freeze(), Some(decision)));
        }
    }
}

async fn serve_http1<S>(client: &Rc<Client>, stream: S) -> io::Result<()>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    client.phase.set_http1();
    let limits = &client.listener.settings.limits;
    let service = service_fn(|request| serve(Rc::clone(client), request));
    let mut builder = http1::Builder::new();
    // Phases limit the time, without a timer for each request.
    builder
        .header_read_timeout(None)
        .max_headers(limits.headers)
        .max_header_size(limits.header_bytes);
    // Room for headers that are too large, so that they get an answer.
    builder.max_buf_size((2 * limits.header_bytes).max(64 * 1024)).half_close(true);
    let watched = Watched::new(stream, Rc::clone(&client.phase));
    let mut connection = builder.serve_connection(TokioIo::new(watched), service);
    let mut drained = pin!(client.worker.drained());
    let mut is_draining = false;
    let ended = poll_fn(|cx| {
        if !is_draining && drained.as_mut().poll(cx).is_ready() {
            is_draining = true;
            Pin::new(&mut connection).graceful_shutdown();
        }
        if let Poll::Ready(ended) = Pin::new(&mut connection).poll(cx) {
            return Poll::Ready(Some(ended));
        }
        client.phase.poll_exceeded(cx).map(|_| None)
    })
    .await;
    let upgrade = client.take_upgrade();
    let is_too_slow = ended.is_none() && client.phase.is_in_headers();
    if upgrade.is_none() && !is_too_slow {
        return ended.unwrap_or(Ok(())).or_else(|error| refused(client, error));
    }
    let parts = connection.into_parts();
    let mut stream = parts.io.into_inner().into_inner();
    match upgrade {
        Some(upgrade) => switch(stream, &parts.read_buf, upgrade).await,
        // A client that sent nothing gets nothing.
        None if parts.read_buf.is_empty() => Ok(()),
        None => stream.write_all(TOO_SLOW).await,
    }
}

/// Reports a request that broke the protocol; it has had its answer.
fn refused(client: &Client, error: hyper::Error) -> io::Result<()> {
    if !error.is_parse() {
        return Err(io::Error::other(error));
    }
    let status = if error.is_parse_too_large() { 431 } else { 400 };
    client.report_failure(Some(status), &error.to_string());
    Ok(())
}

async fn serve_http2<S>(client: &Rc<Client>, stream: S) -> io::Result<()>
where
    S: AsyncRead + AsyncWrite + Unpin + 'static,
{
    let limits = &client.listener.settings.limits;
    let service = service_fn({
        let client = Rc::clone(client);
        move |request| serve(Rc::clone(&client), request)
    });
    let mut builder = http2::Builder::new(LocalTasks);
    builder.max_concurrent_streams(HTTP2_STREAMS);
    builder.max_header_list_size(u32::try_from(limits.header_bytes).unwrap_or(u32::MAX));
    let watched = Watched::new(stream, Rc::clone(&client.phase));
    let mut connection = pin!(builder.serve_connection(TokioIo::new(watched), service));
    let mut drained = pin!(client.worker.drained());
    let mut is_draining = false;
    poll_fn(|cx| {
        if !is_draining && drained.as_mut().poll(cx).is_ready() {
            is_draining = true;
            connection.as_mut().graceful_shutdown();
        }
        if let Poll::Ready(ended) = connection.as_mut().poll(cx) {
            return Poll::Ready(ended);
        }
        client.phase.poll_exceeded(cx).map(|_| Ok(()))
    })
    .await
    .map_err(io::Error::other)
}

/// Passes bytes between a client and a target that have switched protocols.
async fn switch<S>(mut client: S, read: &[u8], upgrade: Upgrade) -> io::Result<()>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let Upgrade { mut stream, received, open } = upgrade;
    client.write_all(&received).await?;
    stream.write_all(read).await?;
    copy_bidirectional(&mut client, &mut stream).await?;
    drop(open);
    Ok(())
}

/// Reads what a client still sends after it was turned away, so that its connection is not reset
/// before it has read the answer.
async fn linger(mut stream: impl AsyncRead + AsyncWrite + Unpin) -> io::Result<()> {
    const AT_MOST: u64 = 1 << 20;
    const LIMIT: Duration = Duration::from_millis(500);
    stream.shutdown().await?;
    let rest = &mut stream.take(AT_MOST);
    let _ = tokio::time::timeout(LIMIT, tokio::io::copy(rest, &mut tokio::io::sink())).await;
    Ok(())
}
