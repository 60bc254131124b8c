//! A server whose limits a test sets, and clients that write their requests byte by byte.

use std::collections::HashMap;
use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use jiff::Timestamp;
use serde_json::Value;
use uturn_cloud::cloud::{Batch, Cloud, Settings, Storage, StorageError};
use uturn_cloud::credentials::Credentials;
use uturn_cloud::ids::IdSource;
use uturn_cloud::inventory::Inventory;
use uturn_cloud::server::{Limits, Server, Stop};

/// What a request without a signature is told.
const UNSIGNED: &str = "AuthFailure.InvalidAuthorization";

/// Nothing here is allowed to write.
struct Untouched;

impl Storage for Untouched {
    fn commit(&self, _: &Batch) -> Result<(), StorageError> {
        panic!("a request without a signature changes something")
    }
}

/// A server that is stopped when this is dropped.
pub(crate) struct Running {
    address: SocketAddr,
    stop: Stop,
    thread: Option<JoinHandle<()>>,
}

impl Running {
    pub(crate) fn start(limits: Limits) -> Self {
        let credentials = Credentials::parse("id1 key1").unwrap();
        let cloud = Cloud::new(
            credentials,
            Inventory::Open,
            Settings::default(),
            Box::new(Untouched),
            IdSource::random(),
            HashMap::new(),
        );
        let server = Server::bind(([127, 0, 0, 1], 0).into(), Arc::new(cloud)).unwrap();
        let server = server.with_limits(limits);
        let (address, stop) = (server.address().unwrap(), Stop::new());
        let stopping = stop.clone();
        let thread = thread::spawn(move || server.run(&stopping).unwrap());
        Self { address, stop, thread: Some(thread) }
    }

    pub(crate) fn connect(&self) -> TcpStream {
        TcpStream::connect(self.address).unwrap()
    }

    /// Connects from an address of the loopback interface.
    pub(crate) fn connect_from(&self, address: [u8; 4]) -> TcpStream {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let stream = runtime.block_on(async {
            let socket = tokio::net::TcpSocket::new_v4().unwrap();
            socket.bind((address, 0).into()).unwrap();
            socket.connect(self.address).await.unwrap().into_std().unwrap()
        });
        stream.set_nonblocking(false).unwrap();
        stream
    }

    /// Answers another client.
    pub(crate) fn serves(&self) {
        request(&mut self.connect());
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop.stop();
        if let Some(thread) = self.thread.take() {
            let ended = thread.join();
            assert!(ended.is_ok() || thread::panicking(), "the server panicked");
        }
    }
}

/// Sends a request without a signature and reads its answer; the connection stays open.
pub(crate) fn request(stream: &mut TcpStream) {
    send(stream);
    receive(stream);
}

/// Sends a request without a signature.
pub(crate) fn send(stream: &mut TcpStream) {
    write_request(stream).unwrap();
}

/// The same, unless the connection ends before it is answered.
pub(crate) fn try_request(stream: &mut TcpStream) -> bool {
    let answer = write_request(stream).and_then(|()| answer(stream));
    answer.is_ok_and(|body| body.contains(UNSIGNED))
}

/// Reads the answer to a request without a signature.
pub(crate) fn receive(stream: &mut TcpStream) {
    let body = answer(stream).unwrap();
    assert!(body.contains(UNSIGNED), "{body}");
}

fn write_request(stream: &mut TcpStream) -> io::Result<()> {
    write!(stream, "GET / HTTP/1.1\r\nHost: clb\r\n\r\n")
}

/// The body of an answer.
fn answer(stream: &mut TcpStream) -> io::Result<String> {
    let mut reader = BufReader::new(stream);
    let mut length = 0;
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        if line == "\r\n" {
            break;
        }
        let line = line.to_ascii_lowercase();
        if let Some(value) = line.strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    Ok(String::from_utf8(body).unwrap())
}

/// What comes until the server closes the connection. A reset counts as its end.
pub(crate) fn rest(mut stream: TcpStream) -> String {
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    String::from_utf8(answer).unwrap()
}

/// The code in an answer, whose HTTP status has to be 200.
pub(crate) fn code(answer: &str) -> String {
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((answer, ""));
    assert!(head.starts_with("HTTP/1.1 200"), "{answer:.300}");
    let body: Value = serde_json::from_str(body).unwrap();
    body["Response"]["Error"]["Code"].as_str().unwrap().to_owned()
}

/// The head of a request that is well formed and has a wrong signature.
pub(crate) fn well_formed(id: &str, length: usize) -> String {
    format!(
        "POST / HTTP/1.1\r\nHost: clb\r\nConnection: close\r\nContent-Type: application/json\r\n\
         Content-Length: {length}\r\nX-TC-Timestamp: {}\r\n\
         Authorization: TC3-HMAC-SHA256 Credential={id}/{}/clb/tc3_request, \
         SignedHeaders=content-type;host, Signature={}\r\n\r\n",
        now().as_second(),
        now().strftime("%Y-%m-%d"),
        "0".repeat(64),
    )
}

pub(crate) fn now() -> Timestamp {
    Timestamp::now()
}
