//! Ends TLS: what a client says under it goes on in the clear, and back.
//!
//! The certificate is made when the process starts and is signed by itself: it shows that TLS
//! ends here, and proves no identity.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::{ServerConfig, ServerConnection};
use socket2::Socket;

/// How much may wait to be written to either side.
const PLENTY: usize = 64 * 1024;

/// The kind of record that every connection begins with.
const HANDSHAKE: u8 = 22;

/// How long both sides may say nothing.
const SILENCE: Duration = Duration::from_secs(60);

/// How long a client may go on once it has all it gets.
const FAREWELL: Duration = Duration::from_millis(500);

/// What every listener that ends TLS shows its clients.
pub(crate) fn server() -> io::Result<Arc<ServerConfig>> {
    let made = rcgen::generate_simple_self_signed(vec!["uturn-lb".into()]).map_err(other)?;
    let certificate = CertificateDer::from(made.cert);
    let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(made.signing_key.serialize_der()));
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(other)?
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)
        .map_err(other)?;
    Ok(Arc::new(config))
}

fn other(error: impl std::error::Error + Send + Sync + 'static) -> io::Error {
    io::Error::other(error)
}

/// Whether a client begins as TLS does. Its bytes are left to be read; a client that sends
/// nothing at all may still do so.
///
/// # Errors
/// When it says nothing for too long, and when it breaks off.
pub(crate) fn is_spoken(client: &TcpStream) -> io::Result<bool> {
    let mut first = [0];
    let count = client.peek(&mut first)?;
    Ok(count == 0 || first == [HANDSHAKE])
}

/// Passes bytes between a client that speaks TLS and a side that does not, until both are
/// through.
///
/// # Errors
/// When the client speaks no TLS, when either side breaks off, and after a long silence.
pub(crate) fn pass(config: &Arc<ServerConfig>, client: &Socket, plain: &Socket) -> io::Result<()> {
    client.set_nonblocking(true)?;
    plain.set_nonblocking(true)?;
    let tls = ServerConnection::new(Arc::clone(config)).map_err(other)?;
    let mut passage = Passage {
        tls,
        client,
        plain,
        heard: Vec::new(),
        client_is_done: false,
        plain_is_done: false,
        quit: None,
    };
    while !passage.is_over() {
        passage.step()?;
    }
    Ok(())
}

struct Passage<'a> {
    tls: ServerConnection,
    client: &'a Socket,
    plain: &'a Socket,
    /// The client's bytes that the other side has not taken yet.
    heard: Vec<u8>,
    client_is_done: bool,
    plain_is_done: bool,
    /// When to stop waiting for the client after everything was sent to it.
    quit: Option<Instant>,
}

impl Passage<'_> {
    fn is_over(&self) -> bool {
        let is_sent = self.plain_is_done && !self.tls.wants_write();
        is_sent && (self.client_is_done || self.quit.is_some_and(|quit| Instant::now() >= quit))
    }

    fn step(&mut self) -> io::Result<()> {
        let [client, plain] = self.ready()?;
        if client.contains(PollFlags::OUT) || self.tls.wants_write() {
            self.write_to_client()?;
        }
        if !(client & (PollFlags::IN | PollFlags::HUP | PollFlags::ERR)).is_empty() {
            self.hear_client()?;
        }
        if !self.heard.is_empty() {
            self.write_to_plain()?;
        }
        if !(plain & (PollFlags::IN | PollFlags::HUP | PollFlags::ERR)).is_empty() {
            self.hear_plain()?;
        }
        Ok(())
    }

    /// Waits for whatever can go on.
    fn ready(&self) -> io::Result<[PollFlags; 2]> {
        let mut of_client = PollFlags::empty();
        if !self.client_is_done && self.heard.len() < PLENTY {
            of_client |= PollFlags::IN;
        }
        if self.tls.wants_write() {
            of_client |= PollFlags::OUT;
        }
        let mut of_plain = PollFlags::empty();
        if !self.plain_is_done && !self.tls.wants_write() && !self.tls.is_handshaking() {
            of_plain |= PollFlags::IN;
        }
        if !self.heard.is_empty() {
            of_plain |= PollFlags::OUT;
        }
        let patience =
            self.quit.map_or(SILENCE, |quit| quit.saturating_duration_since(Instant::now()));
        let patience = Timespec {
            tv_sec: patience.as_secs() as i64,
            tv_nsec: i64::from(patience.subsec_nanos()),
        };
        // A side that nothing is wanted of is left out: it would report its end for ever.
        let mut fds: Vec<PollFd<'_>> = [(self.client, of_client), (self.plain, of_plain)]
            .into_iter()
            .filter(|(_, flags)| !flags.is_empty())
            .map(|(socket, flags)| PollFd::new(socket, flags))
            .collect();
        match poll(&mut fds, Some(&patience)) {
            Ok(0) if self.quit.is_none() => return Err(ErrorKind::TimedOut.into()),
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let mut seen = fds.iter().map(PollFd::revents);
        let mut of = |flags: PollFlags| {
            if flags.is_empty() { flags } else { seen.next().unwrap_or(PollFlags::empty()) }
        };
        Ok([of(of_client), of(of_plain)])
    }

    fn write_to_client(&mut self) -> io::Result<()> {
        while self.tls.wants_write() {
            match self.tls.write_tls(&mut &*self.client) {
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error),
            }
        }
        if self.plain_is_done && self.quit.is_none() {
            self.quit = Some(Instant::now() + FAREWELL);
            self.client.shutdown(Shutdown::Write)?;
        }
        Ok(())
    }

    fn hear_client(&mut self) -> io::Result<()> {
        match self.tls.read_tls(&mut &*self.client) {
            Ok(0) => self.client_is_done = true,
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
            Err(_) if self.plain_is_done => self.client_is_done = true,
            Err(error) => return Err(error),
        }
        let state = match self.tls.process_new_packets() {
            Ok(state) => state,
            Err(error) => {
                // The client gets an alert that names the fault.
                let _ = self.tls.write_tls(&mut &*self.client);
                return Err(other(error));
            }
        };
        let begin = self.heard.len();
        self.heard.resize(begin + state.plaintext_bytes_to_read(), 0);
        self.tls.reader().read_exact(&mut self.heard[begin..])?;
        if state.peer_has_closed() {
            self.client_is_done = true;
        }
        if self.client_is_done && self.heard.is_empty() {
            let _ = self.plain.shutdown(Shutdown::Write);
        }
        self.write_to_client()
    }

    fn write_to_plain(&mut self) -> io::Result<()> {
        if self.plain_is_done {
            self.heard.clear();
            return Ok(());
        }
        match (&mut &*self.plain).write(&self.heard) {
            Ok(count) => drop(self.heard.drain(..count)),
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
            // It has sent everything and takes no more.
            Err(error) if error.kind() == ErrorKind::BrokenPipe => self.heard.clear(),
            Err(error) => return Err(error),
        }
        if self.client_is_done && self.heard.is_empty() {
            let _ = self.plain.shutdown(Shutdown::Write);
        }
        Ok(())
    }

    fn hear_plain(&mut self) -> io::Result<()> {
        let mut bytes = [0; 16 * 1024];
        match (&mut &*self.plain).read(&mut bytes) {
            Ok(0) => {
                self.plain_is_done = true;
                self.tls.send_close_notify();
            }
            Ok(count) => self.tls.writer().write_all(&bytes[..count])?,
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
            Err(error) => return Err(error),
        }
        self.write_to_client()
    }
}
