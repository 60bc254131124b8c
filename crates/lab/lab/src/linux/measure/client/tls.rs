//! HTTP over TLS. The certificate is not verified, because it does not affect the path of
//! packets.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags};
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, Error};
use socket2::Socket;
use uturn_model::Outcome;
use uturn_testing::tls;

use super::http::{begin, location, open, read_answer, request};
use super::{Ending, RequestSpec};

/// A connection with a request over TLS, and the answer so far.
#[derive(Debug)]
pub(super) struct Tls {
    stream: TcpStream,
    connection: ClientConnection,
    is_connected: bool,
    received: Vec<u8>,
}

impl Tls {
    pub(super) fn new(spec: &RequestSpec) -> io::Result<(Self, io::Result<()>)> {
        Self::on(open(spec.address)?, spec)
    }

    /// Uses a socket that was opened before.
    pub(super) fn on(socket: Socket, spec: &RequestSpec) -> io::Result<(Self, io::Result<()>)> {
        let begun = begin(&socket, spec.address);
        let stream = socket.into();
        let name = match spec.host.rsplit_once(':') {
            Some((host, port)) if port.parse::<u16>().is_ok() => host,
            _ => &spec.host,
        };
        let name = name.trim_matches(['[', ']']).to_owned();
        // Not every host name is valid in a ClientHello.
        let name = ServerName::try_from(name)
            .unwrap_or_else(|_| ServerName::IpAddress(spec.address.ip().into()));
        let mut connection = ClientConnection::new(config()?, name).map_err(io::Error::other)?;
        // The request is buffered until both sides speak TLS.
        connection.writer().write_all(request(spec).as_bytes())?;
        Ok((Self { stream, connection, is_connected: false, received: Vec::new() }, begun))
    }

    pub(super) fn location(&self) -> Option<String> {
        location(&self.received)
    }

    pub(super) fn waits_for(&self) -> PollFd<'_> {
        let writes = !self.is_connected || self.connection.wants_write();
        let flags = if writes { PollFlags::OUT | PollFlags::IN } else { PollFlags::IN };
        PollFd::from_borrowed_fd(std::os::fd::AsFd::as_fd(&self.stream), flags)
    }

    pub(super) fn advance(&mut self, waited: Duration) -> io::Result<Option<Ending>> {
        if !self.is_connected {
            if let Some(error) = self.stream.take_error()? {
                return Err(error);
            }
            self.is_connected = true;
        }
        let mut is_over = false;
        loop {
            while self.connection.wants_write() {
                match self.connection.write_tls(&mut self.stream) {
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                    done => drop(done?),
                }
            }
            match self.connection.read_tls(&mut self.stream) {
                Ok(0) => is_over = true,
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) => return Err(error),
            }
            if let Err(error) = self.connection.process_new_packets() {
                return end_of(error).map(Some);
            }
            is_over |= self.read_plain()?;
            if is_over {
                break;
            }
        }
        if is_over && self.connection.is_handshaking() {
            return Ok(Some((Outcome::TlsError, None)));
        }
        if is_over { read_answer(&self.received, waited, false).map(Some) } else { Ok(None) }
    }

    /// Reads the decrypted data. Returns whether the connection has ended.
    fn read_plain(&mut self) -> io::Result<bool> {
        let mut bytes = [0; 4096];
        loop {
            match self.connection.reader().read(&mut bytes) {
                Ok(0) => return Ok(true),
                Ok(count) => self.received.extend_from_slice(&bytes[..count]),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
                // The connection was closed without close_notify: the received data may be
                // complete.
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(true),
                Err(error) => return Err(error),
            }
        }
    }
}

/// Returns the outcome of a failed handshake.
fn end_of(error: Error) -> io::Result<Ending> {
    match error {
        Error::InvalidMessage(_)
        | Error::InappropriateMessage { .. }
        | Error::InappropriateHandshakeMessage { .. }
        | Error::PeerIncompatible(_)
        | Error::PeerMisbehaved(_)
        | Error::AlertReceived(_)
        | Error::DecryptError
        | Error::PeerSentOversizedRecord => Ok((Outcome::TlsError, None)),
        other => Err(io::Error::other(other)),
    }
}

fn config() -> io::Result<Arc<ClientConfig>> {
    static CONFIG: OnceLock<Arc<ClientConfig>> = OnceLock::new();
    if let Some(config) = CONFIG.get() {
        return Ok(Arc::clone(config));
    }
    let config = tls::any_server(rustls::DEFAULT_VERSIONS).map_err(io::Error::other)?;
    Ok(Arc::clone(CONFIG.get_or_init(|| Arc::new(config))))
}
