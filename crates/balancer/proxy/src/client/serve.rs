//! Serves the requests of a connection until it ends.

use std::future::poll_fn;
use std::io;
use std::mem::MaybeUninit;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::Poll;
use std::time::Instant;

use bytes::Bytes;
use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, ReadBuf};

use super::FIRST_READ;
use super::counted::Counted;
use super::floods::Floods;
use super::linger::linger;
use super::tunnel;
use super::watched::{Connected, Watched};
use crate::exchange::{self, Client, Upgrade, record_unreadable};
use crate::joined::join;
use crate::local::LimitedTasks;
use crate::phase::BUSY;
use crate::prefixed::Prefixed;

/// The number of requests that a client may have under way on one HTTP/2 connection.
const HTTP2_STREAMS: u32 = 128;

/// The answer to a client that does not complete its request in time.
const TOO_SLOW: &[u8] =
    b"HTTP/1.1 408 Request Timeout\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";

/// Serves HTTP/1, and the tunnel after an upgrade. Some bytes may have been received already.
///
/// hyper and its buffers exist only while there is something to serve, and a little longer if
/// requests follow each other quickly. A connection that waits for a request consists of its stream
/// only.
pub(super) async fn serve_http1<S>(
    client: &Rc<Client>,
    mut stream: S,
    mut received: Bytes,
) -> io::Result<()>
where
    S: AsyncRead + AsyncWrite + Connected + Unpin,
{
    client.phase.set_http1();
    let mut has_served = false;
    loop {
        if received.is_empty() {
            let since = Instant::now();
            match next_bytes(client, &mut stream).await {
                Waited::Received(bytes) => received = bytes,
                Waited::End => return stream.shutdown().await,
                Waited::TooLong => return Ok(()),
            }
            client.phase.set_busy(has_served && since.elapsed() < BUSY);
        }
        let served = Box::pin(serve_until_idle(client, Prefixed::new(received, stream)));
        match served.await? {
            Some((unread, idle)) => (received, stream) = (unread, idle),
            None => return Ok(()),
        }
        has_served = true;
    }
}

/// The outcome of waiting for bytes.
enum Waited {
    Received(Bytes),
    /// The client has ended the connection, or the worker drains.
    End,
    /// The client has sent nothing for the longest permitted time.
    TooLong,
}

/// Waits for bytes on a connection that has nothing to serve.
async fn next_bytes<S: AsyncRead + Unpin>(client: &Client, stream: &mut S) -> Waited {
    poll_fn(|cx| {
        if client.worker.is_draining() {
            return Poll::Ready(Waited::End);
        }
        // The buffer is on the stack, so that it takes no memory while nothing comes.
        let mut space = [MaybeUninit::uninit(); FIRST_READ];
        let mut buffer = ReadBuf::uninit(&mut space);
        match Pin::new(&mut *stream).poll_read(cx, &mut buffer) {
            Poll::Pending => client.phase.poll_exceeded(cx).map(|_| Waited::TooLong),
            Poll::Ready(Ok(())) if !buffer.filled().is_empty() => {
                client.phase.read();
                Poll::Ready(Waited::Received(Bytes::copy_from_slice(buffer.filled())))
            }
            Poll::Ready(_) => Poll::Ready(Waited::End),
        }
    })
    .await
}

/// Serves requests until all that the client has sent is answered. Returns the stream and what
/// was read from it, or `None` if the connection has ended.
async fn serve_until_idle<S>(
    client: &Rc<Client>,
    stream: Prefixed<S>,
) -> io::Result<Option<(Bytes, S)>>
where
    S: AsyncRead + AsyncWrite + Connected + Unpin,
{
    let limits = &client.listener.settings.limits;
    let service = service_fn(|request| exchange::serve(Rc::clone(client), request));
    let mut builder = http1::Builder::new();
    // Phases limit the time, without a timer for each request.
    builder
        .header_read_timeout(None)
        .max_headers(limits.headers)
        .max_header_size(limits.header_bytes);
    // The buffer has room for headers that are too large, so that they get an answer.
    builder.max_buf_size((2 * limits.header_bytes).max(64 * 1024)).half_close(true);
    let watched = Watched::new(stream, client);
    let mut connection = builder.serve_connection(TokioIo::new(watched), service);
    let mut is_draining = false;
    let stopped = poll_fn(|cx| {
        if !is_draining && client.worker.is_draining() {
            is_draining = true;
            Pin::new(&mut connection).graceful_shutdown();
        }
        if let Poll::Ready(ended) = Pin::new(&mut connection).poll(cx) {
            return Poll::Ready(Stopped::Ended(ended));
        }
        if client.phase.poll_exceeded(cx).is_ready() && !client.phase.end_busy() {
            return Poll::Ready(Stopped::Exceeded);
        }
        if !is_draining && client.phase.may_rest() {
            return Poll::Ready(Stopped::Idle);
        }
        client.phase.poll_exceeded(cx).map(|_| Stopped::Exceeded)
    })
    .await;
    let upgrade = client.take_upgrade();
    let parts = connection.into_parts();
    let (unread, mut stream) = parts.io.into_inner().into_inner().into_parts();
    let received = join(parts.read_buf, &unread);
    if let Some(upgrade) = upgrade {
        Box::pin(switch(client, stream, &received, upgrade)).await?;
        return Ok(None);
    }
    match stopped {
        Stopped::Idle => return Ok(Some((received, stream))),
        // A client that sent nothing gets no answer.
        Stopped::Exceeded if client.phase.is_in_headers() && !received.is_empty() => {
            record_unreadable(client, 408, "the request's headers did not come in time");
            stream.write_all(TOO_SLOW).await?;
        }
        Stopped::Ended(Err(error)) => refused(client, error)?,
        Stopped::Ended(Ok(())) if client.phase.leaves_unread() => {}
        _ => return Ok(None),
    }
    Box::pin(linger(stream)).await;
    Ok(None)
}

/// The reason why hyper serves a connection no further.
enum Stopped {
    Ended(hyper::Result<()>),
    /// Nothing is left to serve.
    Idle,
    /// A time limit was exceeded.
    Exceeded,
}

/// Reports a request that broke the protocol, and that hyper has answered.
fn refused(client: &Client, error: hyper::Error) -> io::Result<()> {
    if !error.is_parse() {
        return Err(io::Error::other(error));
    }
    let status = if error.is_parse_too_large() { 431 } else { 400 };
    record_unreadable(client, status, &error.to_string());
    client.report_failure(Some(status), &error.to_string());
    Ok(())
}

/// Serves HTTP/2.
pub(super) async fn serve_http2<S>(client: &Rc<Client>, stream: S) -> io::Result<()>
where
    S: AsyncRead + AsyncWrite + Connected + Unpin + 'static,
{
    let limits = &client.listener.settings.limits;
    let service = service_fn({
        let client = Rc::clone(client);
        move |request| exchange::serve(Rc::clone(&client), request)
    });
    let listener = &client.listener;
    // Anything else that a stream waits for wakes it within one of the two times.
    let limit = listener.settings.timeouts.read + listener.profile.connect_timeout;
    let streams = LimitedTasks::new(&client.worker.deadlines, limit);
    let mut builder = http2::Builder::new(streams);
    builder.max_concurrent_streams(HTTP2_STREAMS);
    builder.max_header_list_size(u32::try_from(limits.header_bytes).unwrap_or(u32::MAX));
    let watched = Watched::new(Floods::new(stream, &client.worker.deadlines), client);
    let mut connection = pin!(builder.serve_connection(TokioIo::new(watched), service));
    let mut is_draining = false;
    poll_fn(|cx| {
        if !is_draining && client.worker.is_draining() {
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

/// Forwards bytes between a client and a target that have switched protocols.
async fn switch<S>(client: &Client, stream: S, read: &[u8], upgrade: Upgrade) -> io::Result<()>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let Upgrade { stream: mut target, received, open, record, idle } = upgrade;
    let mut stream = Counted::new(stream);
    let passed = async {
        stream.write_all(&received).await?;
        target.write_all(read).await?;
        tunnel::pass(&client.worker, &mut stream, &mut target, idle).await
    }
    .await;
    if let Some(mut record) = record {
        let counts = &stream.counts;
        record.switched(read.len() as u64 + counts.read.get(), counts.written.get());
        if let Err(error) = &passed {
            record.explain(&error.to_string());
        }
    }
    drop(open);
    passed
}
