//! The beginning of a connection: finds out who the client is, whether it is admitted, and which
//! protocol it speaks.

use std::future::poll_fn;
use std::io;
use std::mem::MaybeUninit;
use std::net::SocketAddr;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use bytes::{Buf, Bytes, BytesMut};
use rustls::ServerConfig;
use socket2::SockRef;
use tokio::io::{AsyncRead, AsyncWriteExt, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use uturn_lb::client_address::canonical;
use uturn_lb::proxy_header;
use uturn_model::lb::Layer;

use super::FIRST_READ;
use super::linger::linger;
use super::serve::{serve_http1, serve_http2};
use super::stream;
use crate::by_client::Counted;
use crate::exchange::{Client, record_unreadable};
use crate::metrics::Refusal;
use crate::phase::Phase;
use crate::prefixed::Prefixed;
use crate::state::{Listener, Slot};
use crate::worker::Worker;

/// The first bytes of every HTTP/2 connection.
const HTTP2_PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// The type of the first record of every TLS connection.
const TLS_HANDSHAKE: u8 = 22;

/// The answer to a client that does not speak TLS where TLS is terminated.
const NO_TLS: &[u8] =
    b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\nContent-Type: text/plain\r\n\
    Content-Length: 16\r\n\r\n400 Bad Request\n";

/// A connection that was accepted.
#[derive(Debug)]
pub(crate) struct Accepted {
    pub(crate) worker: Rc<Worker>,
    pub(crate) slot: Arc<Slot>,
    pub(crate) stream: TcpStream,
    /// The other end of the connection: the client, or a proxy in front of it.
    pub(crate) peer: SocketAddr,
    /// Counts the connection as the client's; as the peer's until the client is known.
    pub(crate) share: Counted,
    /// The number of the connection within the process.
    pub(crate) connection: u64,
}

/// The protocol that the first bytes of an unencrypted connection show.
enum Beginning {
    Http1,
    Http2,
}

impl Accepted {
    /// Serves the connection until it ends.
    pub(crate) async fn run(mut self) {
        let listener = self.slot.current();
        let phase = Phase::new(&listener.settings.timeouts, self.worker.deadlines.add());
        let mut received = BytesMut::new();
        let address = match self.client_address(&listener, &phase, &mut received).await {
            Ok(address) => address,
            Err(error) => {
                self.refuse(Refusal::ProxyHeader);
                return self.client(self.peer, phase).report_failure(None, &error.to_string());
            }
        };
        // Clients that are not admitted use up no shared limit.
        if !listener.admits(address.ip()) {
            return self.turn_away(Refusal::SecurityGroup, address, phase);
        }
        // A proxy's connections count as those of its clients.
        if !self.share.is_of(address.ip()) {
            self.share = match self.worker.process.share(address.ip()) {
                Some(share) => share,
                None => return self.turn_away(Refusal::ProcessLimit, address, phase),
            };
        }
        let entered = match self.slot.gate.enter(address.ip(), &listener.settings.limits) {
            Ok(entered) => entered,
            Err(full) => return self.turn_away(Refusal::from(full), address, phase),
        };
        let client = self.client(address, phase);
        if let Err(error) = serve(&client, self.stream, received).await {
            client.shard().fail();
            client.report_failure(None, &error.to_string());
        }
        drop((entered, self.share));
    }

    /// Resets a connection that is not admitted.
    fn turn_away(&self, refusal: Refusal, client: SocketAddr, phase: Phase) {
        self.refuse(refusal);
        reset(&self.stream);
        self.client(client, phase).report_failure(None, "not admitted");
    }

    fn refuse(&self, refusal: Refusal) {
        self.slot.metrics.of_worker(self.worker.number).refuse(refusal);
    }

    fn client(&self, address: SocketAddr, phase: Phase) -> Rc<Client> {
        let (worker, slot) = (Rc::clone(&self.worker), Arc::clone(&self.slot));
        Rc::new(Client::new(worker, slot, address, self.connection, Rc::new(phase)))
    }

    /// Returns the client's address: the peer's, or the one in the peer's PROXY header.
    async fn client_address(
        &mut self,
        listener: &Listener,
        phase: &Phase,
        received: &mut BytesMut,
    ) -> io::Result<SocketAddr> {
        let peer = self.peer.ip();
        if !listener.settings.proxy_from.iter().any(|range| range.contains(&peer)) {
            return Ok(self.peer);
        }
        let header = |bytes: &[u8]| match proxy_header::read(bytes) {
            Ok(None) => None,
            read => Some(read),
        };
        let worker = Rc::clone(&self.worker);
        let read = read_until(&mut self.stream, received, &worker, header);
        let read = phase.limit(read).await??;
        let Some(read) = read else { return Err(io::ErrorKind::UnexpectedEof.into()) };
        let read = read.map_err(|error| {
            reset(&self.stream);
            io::Error::new(io::ErrorKind::InvalidData, error)
        })?;
        let Some(header) = read else { return Ok(self.peer) };
        received.advance(header.length);
        Ok(header.addresses.map_or(self.peer, |(client, _)| canonical(client)))
    }
}

/// Serves the protocol that the client speaks. Some of its bytes may have been received already.
///
/// Futures that not every connection needs are boxed, as a connection takes as much memory as the
/// largest future that is not.
async fn serve(client: &Rc<Client>, stream: TcpStream, received: BytesMut) -> io::Result<()> {
    let listener = &client.listener;
    match (&listener.tls, listener.protocol.layer()) {
        (Some(tls), _) => Box::pin(serve_tls(client, tls, stream, received)).await,
        (None, Layer::L7) => serve_plain(client, stream, received).await,
        (None, Layer::L4) => {
            let stream = Prefixed::new(received.freeze(), stream);
            Box::pin(stream::forward(client, stream)).await
        }
    }
}

/// Serves the protocol that the client speaks under TLS.
async fn serve_tls(
    client: &Rc<Client>,
    tls: &Arc<ServerConfig>,
    mut stream: TcpStream,
    mut received: BytesMut,
) -> io::Result<()> {
    let begins_tls = |bytes: &[u8]| bytes.first().map(|first| *first == TLS_HANDSHAKE);
    let is_tls = read_until(&mut stream, &mut received, &client.worker, begins_tls);
    let is_tls = client.phase.limit(is_tls).await??;
    let mut stream = Prefixed::new(received.freeze(), stream);
    match (is_tls, client.listener.protocol.layer()) {
        (None, _) => Ok(()),
        (Some(true), layer) => {
            let accept = TlsAcceptor::from(Arc::clone(tls)).accept(stream);
            let stream = Box::pin(client.phase.limit(accept)).await??;
            match (layer, stream.get_ref().1.alpn_protocol()) {
                (Layer::L4, _) => Box::pin(stream::forward(client, stream)).await,
                (Layer::L7, Some(b"h2")) => Box::pin(serve_http2(client, stream)).await,
                (Layer::L7, _) => serve_http1(client, stream, Bytes::new()).await,
            }
        }
        (Some(false), Layer::L7) => {
            stream.write_all(NO_TLS).await?;
            let why = "the client does not speak TLS";
            record_unreadable(client, 400, why);
            client.report_failure(Some(400), why);
            linger(stream).await;
            Ok(())
        }
        (Some(false), Layer::L4) => {
            // On layer 4, a reset is the only way to report an error.
            reset(stream.get_ref());
            Err(io::Error::other("the client does not speak TLS"))
        }
    }
}

/// Serves unencrypted requests of HTTP/1 and HTTP/2.
async fn serve_plain(
    client: &Rc<Client>,
    mut stream: TcpStream,
    mut received: BytesMut,
) -> io::Result<()> {
    if !client.listener.settings.http2 {
        return serve_http1(client, stream, received.freeze()).await;
    }
    let beginning = |bytes: &[u8]| {
        let common = bytes.len().min(HTTP2_PREFACE.len());
        if bytes[..common] != HTTP2_PREFACE[..common] {
            Some(Beginning::Http1)
        } else {
            (common == HTTP2_PREFACE.len()).then_some(Beginning::Http2)
        }
    };
    let beginning = read_until(&mut stream, &mut received, &client.worker, beginning);
    let beginning = client.phase.limit(beginning).await??;
    let received = received.freeze();
    match beginning {
        None => Ok(()),
        Some(Beginning::Http1) => serve_http1(client, stream, received).await,
        Some(Beginning::Http2) => {
            Box::pin(serve_http2(client, Prefixed::new(received, stream))).await
        }
    }
}

/// Reads until the bytes so far permit a decision. Returns `None` if the client ends before, or has
/// sent nothing when connections are to end.
async fn read_until<T>(
    stream: &mut TcpStream,
    received: &mut BytesMut,
    worker: &Worker,
    decide: impl Fn(&[u8]) -> Option<T>,
) -> io::Result<Option<T>> {
    loop {
        if !received.is_empty()
            && let Some(decision) = decide(received)
        {
            return Ok(Some(decision));
        }
        let count = poll_fn(|cx| {
            // The buffer is on the stack, so that a connection takes no memory for bytes that may
            // never come.
            let mut space = [MaybeUninit::uninit(); FIRST_READ];
            let mut buffer = ReadBuf::uninit(&mut space);
            match Pin::new(&mut *stream).poll_read(cx, &mut buffer) {
                Poll::Pending if received.is_empty() && worker.is_draining() => Poll::Ready(Ok(0)),
                polled => polled.map_ok(|()| {
                    received.extend_from_slice(buffer.filled());
                    buffer.filled().len()
                }),
            }
        })
        .await?;
        if count == 0 {
            return Ok(None);
        }
    }
}

/// Makes the connection end with a reset when it is dropped.
fn reset(stream: &TcpStream) {
    // This fails only on a socket that is gone already.
    let _ = SockRef::from(stream).set_linger(Some(Duration::ZERO));
}
