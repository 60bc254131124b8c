//! Web servers that can die, and clients of what is served.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

use rustls::pki_types::ServerName;
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use rustls::version::{TLS12, TLS13};
use rustls::{ClientConnection, StreamOwned};
use uturn_testing::tls::any_server;

use crate::site::try_exchange;

/// A web server that answers with its name. Its address is not the clients', so that the load
/// balancer does not avoid it.
pub(super) struct Target {
    pub(super) address: SocketAddr,
    stops: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Target {
    pub(super) fn start(name: &'static str) -> Self {
        let listener = TcpListener::bind("127.0.0.2:0").unwrap();
        let address = listener.local_addr().unwrap();
        let stops = Arc::new(AtomicBool::new(false));
        let is_over = Arc::clone(&stops);
        let thread = thread::spawn(move || {
            for mut stream in listener.incoming().map_while(Result::ok) {
                if is_over.load(Ordering::Relaxed) {
                    return;
                }
                let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
                while lines.next().is_some_and(|line| line.is_ok_and(|line| !line.is_empty())) {}
                let length = name.len();
                let head =
                    format!("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: {length}");
                // A probe may have gone away already.
                let _ = stream.write_all(format!("{head}\r\n\r\n{name}").as_bytes());
            }
        });
        Self { address, stops, thread: Some(thread) }
    }

    /// Stops it. From then on its port refuses connections.
    pub(super) fn stop(mut self) -> Self {
        self.end();
        self
    }

    fn end(&mut self) {
        if let Some(thread) = self.thread.take() {
            self.stops.store(true, Ordering::Relaxed);
            drop(TcpStream::connect(self.address));
            thread.join().unwrap();
        }
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        self.end();
    }
}

/// What a web server answers with: its body, or the status if that is not 200. `None` if it
/// refuses the connection, or ends it without an answer.
pub(super) fn web(address: (IpAddr, u16), host: &str) -> Option<String> {
    let request = format!("GET / HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
    let answer = try_exchange(address.into(), &request).ok()?;
    (!answer.is_empty()).then(|| content(&answer))
}

fn content(answer: &str) -> String {
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    match &head[9..12] {
        "200" => body.to_owned(),
        status => status.to_owned(),
    }
}

/// The certificate that a web server shows, and what it answers.
pub(super) fn shown_certificate(address: (IpAddr, u16), host: &str) -> (Vec<u8>, String) {
    let config = Arc::new(any_server(&[&TLS13, &TLS12]).unwrap());
    let name = ServerName::try_from(host.to_owned()).unwrap();
    let connection = ClientConnection::new(config, name).unwrap();
    let mut stream = StreamOwned::new(connection, TcpStream::connect(address).unwrap());
    let request = format!("GET / HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let shown = stream.conn.peer_certificates().unwrap()[0].to_vec();
    (shown, content(&answer))
}

/// What a web server answers over TLS to a client that shows this certificate, if it has one.
///
/// # Errors
/// When the server ends the connection.
pub(super) fn web_over_tls(
    address: (IpAddr, u16),
    host: &str,
    shown: Option<Arc<CertifiedKey>>,
) -> io::Result<String> {
    let mut config = any_server(&[&TLS13, &TLS12]).unwrap();
    if let Some(shown) = shown {
        config.client_auth_cert_resolver = Arc::new(SingleCertAndKey::from(shown));
    }
    let name = ServerName::try_from(host.to_owned()).unwrap();
    let connection = ClientConnection::new(Arc::new(config), name).unwrap();
    let mut stream = StreamOwned::new(connection, TcpStream::connect(address)?);
    let request = format!("GET / HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes())?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(content(&answer))
}

/// A certificate for this name, and its key, as PEM; and the certificate as DER.
pub(super) fn certificate(name: &str) -> (String, String, Vec<u8>) {
    let made = rcgen::generate_simple_self_signed(vec![name.to_owned()]).unwrap();
    (made.cert.pem(), made.signing_key.serialize_pem(), made.cert.der().to_vec())
}
