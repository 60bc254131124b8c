//! The load balancer that h2spec calls, and the server behind it.

use std::fs;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;

use crate::shell::{Failure, built};

/// A server that answers every request with a few bytes.
pub(super) struct Target {
    pub(super) address: SocketAddr,
}

impl Target {
    /// Starts a server that runs until the process ends.
    pub(super) fn start() -> Result<Self, Failure> {
        let listener = TcpListener::bind("127.0.0.1:0").map_err(|error| failed(&error))?;
        let address = listener.local_addr().map_err(|error| failed(&error))?;
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                // If a connection breaks, h2spec has reset a stream.
                thread::spawn(move || drop(serve(&stream)));
            }
        });
        Ok(Self { address })
    }
}

/// Answers the requests of a connection. Bodies are read by their length or to the last chunk.
fn serve(stream: &TcpStream) -> io::Result<()> {
    let mut reader = BufReader::new(stream);
    let mut writer = stream;
    loop {
        let (mut length, mut is_chunked) = (0, false);
        loop {
            let mut line = String::new();
            if reader.read_line(&mut line)? == 0 {
                return Ok(());
            }
            let line = line.trim_end().to_ascii_lowercase();
            match line.split_once(':') {
                Some(("content-length", value)) => length = value.trim().parse().unwrap_or(0),
                Some(("transfer-encoding", _)) => is_chunked = true,
                _ if line.is_empty() => break,
                _ => {}
            }
        }
        loop {
            if is_chunked {
                let mut size = String::new();
                reader.read_line(&mut size)?;
                // The chunk is followed by the end of its line.
                length = 2 + u64::from_str_radix(size.trim_end(), 16).unwrap_or(0);
            }
            io::copy(&mut (&mut reader).take(length), &mut io::sink())?;
            if !is_chunked || length == 2 {
                break;
            }
        }
        writer.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 12\r\n\r\nhello world\n")?;
    }
}

/// `uturn lb run`, which ends when this is dropped.
pub(super) struct Balancer {
    child: Child,
    pub(super) http: u16,
    pub(super) https: u16,
}

impl Balancer {
    /// Starts the load balancer. Returns when it listens.
    pub(super) fn start(work: &Path, target: SocketAddr) -> Result<Self, Failure> {
        let (http, https) = (unused_port()?, unused_port()?);
        let listener = |port: u16, protocol: &str| {
            format!(
                "  - {{port: {port}, protocol: {protocol}, source: 127.0.0.1/32, \
                 avoidsClient: false, healthCheck: none, targets: [\"{target}\"]}}\n"
            )
        };
        let config = format!(
            "apiVersion: uturn.dev/v1alpha1\nkind: LoadBalancer\nmetadata: {{name: h2spec}}\n\
             spec:\n  vip: 127.0.0.1\n  listeners:\n{}{}",
            listener(http, "HTTP"),
            listener(https, "HTTPS")
        );
        let file = work.join("lb.yaml");
        fs::write(&file, config).map_err(|error| failed(&error))?;
        let mut uturn = Command::new(built("uturn-lb"));
        uturn.args(["lb", "run", "--no-layer-4", "-f"]).arg(&file);
        let child = uturn.stdin(Stdio::null()).stdout(Stdio::piped()).spawn();
        let mut balancer = Self { child: child.map_err(|error| failed(&error))?, http, https };
        let stdout = balancer.child.stdout.take().map(BufReader::new);
        let mut events = stdout.into_iter().flat_map(BufRead::lines).map_while(Result::ok);
        if !events.any(|event| event.contains("\"ready\"")) {
            return Err(Failure("uturn lb run ended before it listened".to_owned()));
        }
        // Later output is read and discarded, so that the process is not blocked.
        thread::spawn(move || events.for_each(drop));
        Ok(balancer)
    }
}

impl Drop for Balancer {
    fn drop(&mut self) {
        // A process that has ended already cannot be ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Returns a port that is free at present.
fn unused_port() -> Result<u16, Failure> {
    let listener = TcpListener::bind("127.0.0.1:0").map_err(|error| failed(&error))?;
    Ok(listener.local_addr().map_err(|error| failed(&error))?.port())
}

fn failed(error: &io::Error) -> Failure {
    Failure(format!("the load balancer or its target: {error}"))
}
