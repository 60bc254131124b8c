//! Listeners on the loopback interface that answer, refuse, reset, or do nothing.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::{Duration, Instant};

use socket2::{Domain, SockRef, Socket, Type};
use uturn_model::Port;

/// What a listener answers.
#[derive(Clone)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) location: Option<String>,
    /// How long it thinks.
    pub(crate) delay: Duration,
}

impl Answer {
    pub(crate) fn of(status: u16) -> Self {
        Self { status, location: None, delay: Duration::ZERO }
    }

    fn text(&self) -> String {
        let location = self.location.as_ref().map(|url| format!("Location: {url}\r\n"));
        let (has_body, status) = (self.status != 204, self.status);
        let body = if has_body { "Content-Length: 2\r\n\r\nok" } else { "\r\n" };
        let location = location.unwrap_or_default();
        format!("HTTP/1.1 {status} Some\r\nConnection: close\r\n{location}{body}")
    }
}

/// A port of the loopback interface, and what it was asked.
pub(crate) struct Listener {
    address: SocketAddr,
    asked: Receiver<String>,
    /// What keeps the port, and connections that fill it.
    _held: Vec<Socket>,
}

enum End {
    Answer(Answer),
    Reset,
    Close,
}

impl Listener {
    pub(crate) fn port(&self) -> Port {
        Port::new(self.address.port()).unwrap()
    }

    /// The first request that it was asked, whole.
    pub(crate) fn asked(&self) -> String {
        self.asked.recv().unwrap()
    }

    pub(crate) fn answering(answer: Answer) -> Self {
        Self::ending(End::Answer(answer))
    }

    /// Reads, and resets the connection.
    pub(crate) fn resetting() -> Self {
        Self::ending(End::Reset)
    }

    /// Reads, and closes the connection without an answer.
    pub(crate) fn closing() -> Self {
        Self::ending(End::Close)
    }

    fn ending(end: End) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let (sender, asked) = mpsc::channel();
        // It ends with the process.
        thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                let request = read_request(&mut stream);
                match &end {
                    End::Answer(answer) => {
                        wait(answer.delay);
                        // A client that has gone wants no answer.
                        let _ = stream.write_all(answer.text().as_bytes());
                    }
                    End::Reset => {
                        SockRef::from(&stream).set_linger(Some(Duration::ZERO)).unwrap();
                    }
                    End::Close => {}
                }
                // Nobody may want to know any more.
                let _ = sender.send(request);
            }
        });
        Self { address, asked, _held: Vec::new() }
    }

    /// Has a port, and does not listen on it.
    pub(crate) fn refusing() -> Self {
        Self::holding(bound(), Vec::new())
    }

    /// Makes connections, and does nothing with them.
    pub(crate) fn silent() -> Self {
        let socket = bound();
        socket.listen(16).unwrap();
        Self::holding(socket, Vec::new())
    }

    /// Has so many connections waiting that the kernel answers no more.
    pub(crate) fn full() -> Self {
        let socket = bound();
        socket.listen(0).unwrap();
        let address = socket.local_addr().unwrap();
        let waiting = (0..4).map(|_| {
            let client = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
            client.set_nonblocking(true).unwrap();
            // It is in progress, and for the last ones stays so.
            let _ = client.connect(&address);
            client
        });
        let waiting = waiting.collect();
        Self::holding(socket, waiting)
    }

    fn holding(socket: Socket, mut held: Vec<Socket>) -> Self {
        let address = socket.local_addr().unwrap().as_socket().unwrap();
        held.push(socket);
        Self { address, asked: mpsc::channel().1, _held: held }
    }
}

fn bound() -> Socket {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    socket.bind(&SocketAddr::from((Ipv4Addr::LOCALHOST, 0)).into()).unwrap();
    socket
}

/// Reads to the end of the head, or what comes instead of one.
fn read_request(stream: &mut TcpStream) -> String {
    let (mut received, mut bytes) = (Vec::new(), [0; 4096]);
    while !received.windows(4).any(|window| window == b"\r\n\r\n") {
        match stream.read(&mut bytes) {
            Ok(0) | Err(_) => break,
            Ok(count) => received.extend_from_slice(&bytes[..count]),
        }
        // A handshake of TLS has no such end.
        if received.first() == Some(&0x16) {
            break;
        }
    }
    String::from_utf8_lossy(&received).into_owned()
}

fn wait(delay: Duration) {
    let end = Instant::now() + delay;
    while let Some(left) = end.checked_duration_since(Instant::now()) {
        thread::park_timeout(left);
    }
}
