//! Connections to the server. The HTTP/1.1 client costs little CPU time: it looks only at status
//! and length, and keeps nothing.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use rustls::client::Resumption;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::net::{TcpStream, UdpSocket};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::http2::Http2;
use super::raw::{self, Datagrams, Echo, Flow};
use crate::arguments::{Exchange, LoadArguments};
use crate::failure::Failure;
use crate::socket::connect;

/// The longest head of an answer.
const HEAD: usize = 8 * 1024;

/// The PROXY header that a proxy in front of the server sends. The client address belongs to
/// nobody.
const PROXY_HEADER: &[u8] = b"PROXY TCP4 198.51.100.7 198.51.100.8 40000 80\r\n";

/// The largest number of bytes of a body that are read at a time.
const PART: usize = 128 * 1024;

/// The server, and the requests that it is sent.
pub(super) struct Server {
    pub(super) address: SocketAddr,
    pub(super) request: Vec<u8>,
    exchange: Exchange,
    from: Vec<IpAddr>,
    path: String,
    tls: Option<TlsConnector>,
    is_proxied: bool,
}

impl Server {
    pub(super) fn new(arguments: &LoadArguments) -> Result<Self, Failure> {
        let close = if arguments.new { "Connection: close\r\n" } else { "" };
        let http = format!(
            "GET {} HTTP/1.1\r\nHost: bench.example\r\nUser-Agent: uturn-bench\r\n\
             Accept: */*\r\n{close}\r\n",
            arguments.path
        );
        let request = match arguments.exchange {
            Exchange::Http | Exchange::Http2 => http.into(),
            exchange => raw::request(exchange, arguments.new).to_bytes().to_vec(),
        };
        let is_tls = arguments.tls || arguments.exchange == Exchange::Http2;
        let tls = is_tls.then(|| connector(arguments.exchange)).transpose();
        Ok(Self {
            address: arguments.to,
            request,
            exchange: arguments.exchange,
            from: arguments.from.clone(),
            path: arguments.path.clone(),
            is_proxied: arguments.proxied,
            tls: tls.map_err(|error| Failure(format!("cannot speak TLS: {error}")))?,
        })
    }

    /// Opens a connection from one of the clients' addresses.
    ///
    /// # Errors
    /// When the server does not accept the connection.
    pub(super) async fn connect(&self, number: usize) -> io::Result<Connection> {
        let from = number.checked_rem(self.from.len()).map(|turn| self.from[turn]);
        if self.exchange == Exchange::Datagram {
            return self.datagrams(from).await.map(Connection::Datagrams);
        }
        let mut stream = connect(from, self.address, None).await?;
        match self.exchange {
            Exchange::Http | Exchange::Http2 => {}
            Exchange::Stream => return Ok(Connection::Flow(Flow::new(stream))),
            Exchange::Echo | Exchange::Datagram => return Ok(Connection::Echo(Echo::new(stream))),
        }
        if self.is_proxied {
            stream.write_all(PROXY_HEADER).await?;
        }
        let stream = match &self.tls {
            None => Stream::Plain(stream),
            Some(tls) => {
                let name = ServerName::try_from("bench.example").map_err(io::Error::other)?;
                Stream::Tls(Box::new(tls.connect(name, stream).await?))
            }
        };
        match self.exchange {
            Exchange::Http2 => Http2::begin(stream, &self.path).await.map(Connection::Http2),
            _ => Ok(Connection::Http(Http { stream, buffer: vec![0; HEAD] })),
        }
    }

    async fn datagrams(&self, from: Option<IpAddr>) -> io::Result<Datagrams> {
        let any = match self.address {
            SocketAddr::V4(_) => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
            SocketAddr::V6(_) => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
        };
        let socket = UdpSocket::bind((from.unwrap_or(any), 0)).await?;
        socket.connect(self.address).await?;
        Ok(Datagrams::new(socket))
    }
}

/// A connection to the server.
pub(super) enum Connection {
    Http(Http),
    Http2(Http2),
    Echo(Echo),
    Flow(Flow),
    Datagrams(Datagrams),
}

impl Connection {
    /// Sends the request and reads the answer.
    ///
    /// # Errors
    /// When no answer comes, or not the expected one.
    pub(super) async fn ask(&mut self, request: &[u8]) -> io::Result<()> {
        match self {
            Self::Http(http) => http.ask(request).await,
            Self::Http2(http) => http.ask().await,
            Self::Echo(echo) => echo.ask(request).await,
            Self::Flow(flow) => flow.read(request).await,
            Self::Datagrams(datagrams) => datagrams.ask(request).await,
        }
    }
}

/// A connection over HTTP/1.1.
pub(super) struct Http {
    stream: Stream,
    buffer: Vec<u8>,
}

pub(super) enum Stream {
    Plain(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
}

impl Http {
    /// Sends the request and reads the answer to its end.
    ///
    /// # Errors
    /// When the answer is not `200` with a length, or the connection ends before it does.
    async fn ask(&mut self, request: &[u8]) -> io::Result<()> {
        self.stream.write_all(request).await?;
        let mut filled = 0;
        let (head, length) = loop {
            let count = self.stream.read(&mut self.buffer[filled..]).await?;
            if count == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            filled += count;
            if let Some(found) = read_head(&self.buffer[..filled])? {
                break found;
            }
        };
        let mut left = (head + length).saturating_sub(filled);
        if left > self.buffer.len() {
            self.buffer.resize(PART, 0);
        }
        while left > 0 {
            let most = left.min(self.buffer.len());
            let count = self.stream.read(&mut self.buffer[..most]).await?;
            if count == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            left -= count;
        }
        Ok(())
    }
}

/// Returns the lengths of an answer's head and of its body, or `None` if the head is not complete.
fn read_head(bytes: &[u8]) -> io::Result<Option<(usize, usize)>> {
    let Some(end) = bytes.windows(4).position(|part| part == b"\r\n\r\n") else {
        return match bytes.len() {
            HEAD.. => Err(io::Error::other("the answer's head is too long")),
            _ => Ok(None),
        };
    };
    let head = String::from_utf8_lossy(&bytes[..end]);
    let mut lines = head.split("\r\n");
    let status = lines.next().unwrap_or_default();
    if !status.starts_with("HTTP/1.1 200") {
        return Err(io::Error::other(format!("answered {status}")));
    }
    let length = lines.find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse().ok())?
    });
    match length {
        Some(length) => Ok(Some((end + 4, length))),
        None => Err(io::Error::other("the answer has no length")),
    }
}

impl AsyncRead for Stream {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_read(cx, buffer),
            Self::Tls(stream) => Pin::new(stream).poll_read(cx, buffer),
        }
    }
}

impl AsyncWrite for Stream {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_write(cx, bytes),
            Self::Tls(stream) => Pin::new(stream).poll_write(cx, bytes),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_flush(cx),
            Self::Tls(stream) => Pin::new(stream).poll_flush(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_shutdown(cx),
            Self::Tls(stream) => Pin::new(stream).poll_shutdown(cx),
        }
    }
}

/// Returns a connector for TLS 1.3 without resumption, so that every connection has a full
/// handshake.
fn connector(exchange: Exchange) -> Result<TlsConnector, rustls::Error> {
    let mut config = uturn_testing::tls::any_server(&[&rustls::version::TLS13])?;
    config.resumption = Resumption::disabled();
    if exchange == Exchange::Http2 {
        config.alpn_protocols = vec![b"h2".to_vec()];
    }
    Ok(Arc::new(config).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_whole_heads_of_good_answers_are_read() {
        let whole = b"HTTP/1.1 200 OK\r\nServer: x\r\ncontent-length: 3\r\n\r\nabc";
        assert_eq!(read_head(&whole[..20]).unwrap(), None);
        assert_eq!(read_head(whole).unwrap(), Some((whole.len() - 3, 3)));
        let failed = b"HTTP/1.1 503 Service Unavailable\r\ncontent-length: 0\r\n\r\n";
        assert!(read_head(failed).unwrap_err().to_string().contains("503"));
        assert!(read_head(b"HTTP/1.1 200 OK\r\n\r\n").is_err());
    }
}
