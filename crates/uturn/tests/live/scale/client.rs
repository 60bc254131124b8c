//! A client of the API server that does nothing but send and receive.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Ipv4Addr, TcpStream};
use std::sync::Arc;

use rustls::pki_types::ServerName;
use rustls::{ClientConnection, StreamOwned};
use uturn_testing::tls;

use crate::control_plane::ControlPlane;

/// How many objects a page has.
const PAGE: usize = 500;

/// A connection that is kept open.
pub(super) struct Client {
    connection: BufReader<StreamOwned<ClientConnection, TcpStream>>,
    user: String,
}

/// What a list has.
#[derive(Default)]
pub(super) struct Discarded {
    pub(super) objects: usize,
    pub(super) bytes: usize,
}

impl Client {
    pub(super) fn new(plane: &ControlPlane, user: &str) -> Self {
        let config = tls::any_server(&[&rustls::version::TLS13]).unwrap();
        let name = ServerName::try_from("127.0.0.1").unwrap();
        let session = ClientConnection::new(Arc::new(config), name).unwrap();
        let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, plane.port)).unwrap();
        stream.set_nodelay(true).unwrap();
        let connection = BufReader::with_capacity(1 << 16, StreamOwned::new(session, stream));
        Self { connection, user: user.to_owned() }
    }

    /// Sends an object. Returns the status and the answer.
    pub(super) fn send(&mut self, method: &str, path: &str, body: &str) -> (u16, Vec<u8>) {
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {}-token\r\n\
             Accept: application/json\r\nContent-Type: application/json\r\n\
             Content-Length: {}\r\n\r\n{body}",
            self.user,
            body.len(),
        );
        self.connection.get_mut().write_all(request.as_bytes()).unwrap();
        self.answer()
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.connection.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }

    fn answer(&mut self) -> (u16, Vec<u8>) {
        let status = self.line().split(' ').nth(1).unwrap().parse().unwrap();
        let (mut length, mut is_chunked) = (0, false);
        loop {
            let line = self.line().to_ascii_lowercase();
            match line.split_once(": ") {
                None => break,
                Some(("content-length", value)) => length = value.parse().unwrap(),
                Some(("transfer-encoding", value)) => is_chunked = value == "chunked",
                Some(_) => {}
            }
        }
        let mut body = Vec::new();
        loop {
            if is_chunked {
                length = usize::from_str_radix(&self.line(), 16).unwrap();
            }
            let end = body.len() + length;
            body.resize(end, 0);
            self.connection.read_exact(&mut body[end - length..]).unwrap();
            if !is_chunked {
                return (status, body);
            }
            self.line();
            if length == 0 {
                return (status, body);
            }
        }
    }

    /// Reads a list in pages as large as uturn's, and looks at nothing but the way to the next page
    /// and how many objects the first leaves.
    pub(super) fn discard(&mut self, path: &str) -> Discarded {
        let mut read = Discarded::default();
        let mut token = String::new();
        loop {
            let next = match &*token {
                "" => String::new(),
                token => format!("&continue={token}"),
            };
            let (status, body) = self.send("GET", &format!("{path}?limit={PAGE}{next}"), "");
            assert_eq!(status, 200, "{}", String::from_utf8_lossy(&body));
            read.bytes += body.len();
            let start = String::from_utf8_lossy(&body[..body.len().min(2000)]).into_owned();
            if read.objects == 0
                && let Some((_, rest)) = start.split_once("\"remainingItemCount\":")
            {
                let digits = rest.split(|next: char| !next.is_ascii_digit()).next();
                read.objects = PAGE + digits.unwrap_or_default().parse::<usize>().unwrap();
            }
            let Some((_, rest)) = start.split_once("\"continue\":\"") else { return read };
            rest.split('"').next().unwrap_or_default().clone_into(&mut token);
            if token.is_empty() {
                return read;
            }
        }
    }
}
