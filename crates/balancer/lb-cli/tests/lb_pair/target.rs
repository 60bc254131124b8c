//! Targets: HTTP on port 80, lines on port 5432.

use std::io::{self, BufRead, BufReader, ErrorKind, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::Duration;

use socket2::SockRef;

use crate::space::Space;

/// How often a target that speaks does so.
const TICK: Duration = Duration::from_millis(20);

/// Answers to `/wait` wait until this is opened.
#[derive(Clone, Default)]
pub(crate) struct Gate(Arc<(Mutex<bool>, Condvar)>);

impl Gate {
    pub(crate) fn set(&self, open: bool) {
        *self.0.0.lock().unwrap() = open;
        self.0.1.notify_all();
    }

    fn wait(&self) {
        let is_open = self.0.0.lock().unwrap();
        drop(self.0.1.wait_while(is_open, |open| !*open).unwrap());
    }
}

/// A target, which serves until this is dropped.
pub(crate) struct Target {
    _space: Space,
    listeners: [TcpListener; 2],
}

impl Target {
    pub(crate) fn start(space: Space, name: &'static str, gate: &Gate) -> Self {
        let [web, lines] =
            [80, 5432].map(|port| space.run(|| TcpListener::bind(("0.0.0.0", port))).unwrap());
        let gate = gate.clone();
        accept(&web, move |stream| serve_requests(stream, name, &gate));
        accept(&lines, move |stream| serve_lines(stream, name));
        Self { _space: space, listeners: [web, lines] }
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        for listener in &self.listeners {
            let _ = SockRef::from(listener).shutdown(Shutdown::Both);
        }
    }
}

/// Serves each connection on a thread.
fn accept(
    listener: &TcpListener,
    serve: impl Fn(&TcpStream) -> io::Result<()> + Clone + Send + 'static,
) {
    let listener = listener.try_clone().unwrap();
    thread::spawn(move || {
        while let Ok((stream, _)) = listener.accept() {
            let serve = serve.clone();
            thread::spawn(move || {
                // A connection that breaks is what this test is about.
                let _ = serve(&stream);
                let _ = stream.shutdown(Shutdown::Both);
            });
        }
    });
}

/// Answers requests with the target's name, the addresses of X-Forwarded-For and the client's
/// address as it sees it.
fn serve_requests(mut stream: &TcpStream, name: &str, gate: &Gate) -> io::Result<()> {
    let peer = stream.peer_addr()?.ip();
    let mut lines = BufReader::new(stream).lines();
    while let Some(first) = lines.next().transpose()? {
        let mut forwarded = String::new();
        while let Some(line) = lines.next().transpose()?.filter(|line| !line.is_empty()) {
            if let Some(value) = line.to_ascii_lowercase().strip_prefix("x-forwarded-for: ") {
                forwarded = value.to_owned();
            }
        }
        if first.contains("/wait") {
            gate.wait();
        }
        let body = format!("{name} {forwarded} {peer}");
        let shown = if first.starts_with("HEAD") { "" } else { &body };
        let length = body.len();
        write!(stream, "HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n{shown}")?;
    }
    Ok(())
}

/// Greets with the target's name and the client's address, then sends back each line. After the
/// line `speak`, it sends lines by itself.
fn serve_lines(mut stream: &TcpStream, name: &str) -> io::Result<()> {
    writeln!(stream, "{name} {}", stream.peer_addr()?.ip())?;
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    loop {
        match reader.read_line(&mut line) {
            Ok(0) => return Ok(()),
            Ok(_) if line == "speak\n" => stream.set_read_timeout(Some(TICK))?,
            Ok(_) => stream.write_all(line.as_bytes())?,
            Err(error) if error.kind() == ErrorKind::WouldBlock => writeln!(stream, "tick")?,
            Err(error) => return Err(error),
        }
        line.clear();
    }
}
