//! Sends requests through a data plane on the loopback interface to a target that checks what it
//! receives.

use std::io::{self, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread;
use std::time::Duration;

use uturn_lb::config::Config;
use uturn_proxy::{Detail, Server};
use uturn_snapshot::{Source, read_lb_config};

/// The longest wait. It only ends a test that hangs.
const LIMIT: Duration = Duration::from_secs(600);

/// The longest request head that is read.
const HEAD: usize = 1 << 20;

/// The beginning of an HTTP/2 connection.
const HTTP_2: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Sends bytes from a client that then closes its side. Panics unless the answer is HTTP or the end
/// of the connection, the target gets only well-formed requests of unambiguous length, and the data
/// plane continues to serve.
pub fn proxy_request(data: &[u8]) -> bool {
    static PROXY: OnceLock<Proxy> = OnceLock::new();
    let proxy = PROXY.get_or_init(|| Proxy::start().expect("the loopback interface serves"));
    let answer = proxy.answer(data).expect("the data plane accepts connections");
    if let Some(fault) = proxy.fault.lock().unwrap_or_else(PoisonError::into_inner).take() {
        panic!("the target got {fault}");
    }
    assert!(
        answer.is_empty() || answer.starts_with(b"HTTP/1.") || data.starts_with(HTTP_2),
        "answered with {:?}",
        String::from_utf8_lossy(&answer)
    );
    assert!(proxy.server.is_responsive(LIMIT), "a worker is gone");
    answer.starts_with(b"HTTP/1.1 200")
}

struct Proxy {
    address: SocketAddr,
    server: Server,
    /// The first fault in what the target received.
    fault: Arc<Mutex<Option<String>>>,
}

impl Proxy {
    fn start() -> io::Result<Self> {
        let target = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        // Finds a port that is free at present, on an address that only this process uses.
        let [_, high, middle, low] = std::process::id().to_be_bytes();
        let own = IpAddr::V4(Ipv4Addr::new(127, 64 | high, middle, low));
        let address = TcpListener::bind((own, 0))?.local_addr()?;
        let config = config(address, target.local_addr()?)?;
        let server = Server::start_without_layer_4(&config, Arc::new(|_| {}), Detail::Changes)
            .map_err(io::Error::other)?;
        let fault = Arc::new(Mutex::new(None));
        let noted = Arc::clone(&fault);
        thread::Builder::new().name("target".into()).spawn(move || serve(&target, &noted))?;
        Ok(Self { address, server, fault })
    }

    fn answer(&self, data: &[u8]) -> io::Result<Vec<u8>> {
        let mut stream = TcpStream::connect(self.address)?;
        stream.set_read_timeout(Some(LIMIT))?;
        stream.set_write_timeout(Some(LIMIT))?;
        // The data may be refused before all of it is sent.
        let _ = stream.write_all(data).and_then(|()| stream.shutdown(Shutdown::Write));
        let mut answer = Vec::new();
        match stream.read_to_end(&mut answer) {
            Err(error) if error.kind() != io::ErrorKind::ConnectionReset => Err(error),
            _ => Ok(answer),
        }
    }
}

/// Returns a configuration with one listener and one rule, without health checks.
fn config(address: SocketAddr, target: SocketAddr) -> io::Result<Config> {
    let (vip, port) = (address.ip(), address.port());
    let text = format!(
        r#"apiVersion: uturn.dev/v1alpha1
kind: DataPlane
spec: {{workers: 1}}
---
apiVersion: uturn.dev/v1alpha1
kind: LoadBalancer
metadata: {{name: lb}}
spec:
  vip: {vip}
  listeners:
  - {{port: {port}, protocol: HTTP, source: 127.0.0.1/32, avoidsClient: false, healthCheck: none, passiveCheck: none, targets: ["{target}"]}}
"#
    );
    read_lb_config(vec![Source { name: "lb.yaml".into(), text }])
        .map_err(|faults| io::Error::other(format!("{faults:?}")))
}

/// Answers each request with 200, after checking its head.
fn serve(target: &TcpListener, fault: &Mutex<Option<String>>) {
    for stream in target.incoming() {
        let Ok(mut stream) = stream else { continue };
        let Some(head) = head(&mut stream) else { continue };
        if let Some(why) = judge(&head) {
            let text = String::from_utf8_lossy(&head).into_owned();
            let mut fault = fault.lock().unwrap_or_else(PoisonError::into_inner);
            fault.get_or_insert(format!("{why}: {text:?}"));
        }
        // The load balancer may have closed the connection.
        let answer = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok";
        let _ = stream.write_all(answer.as_bytes());
    }
}

/// Reads the head of a request, without the line that ends it. Returns `None` if the connection
/// ends before.
fn head(stream: &mut TcpStream) -> Option<Vec<u8>> {
    let mut head = Vec::new();
    let mut bytes = [0; 4096];
    while head.len() < HEAD {
        match stream.read(&mut bytes) {
            Ok(length) if length > 0 => head.extend(&bytes[..length]),
            _ => return None,
        }
        if let Some(end) = head.windows(4).position(|four| four == b"\r\n\r\n") {
            head.truncate(end);
            return Some(head);
        }
    }
    Some(head)
}

/// Returns the fault of a head, if it has one.
fn judge(head: &[u8]) -> Option<&'static str> {
    let text = String::from_utf8_lossy(head);
    let mut lines = text.split("\r\n");
    let words: Vec<&str> = lines.next().unwrap_or_default().split(' ').collect();
    if !matches!(words[..], [method, path, "HTTP/1.1"] if is_token(method) && !path.is_empty()) {
        return Some("a request line that is none");
    }
    let (mut lengths, mut codings, mut hosts) = (0, 0, 0);
    for line in lines {
        let Some((name, value)) = line.split_once(':') else {
            return Some("a line without a name");
        };
        if !is_token(name) || value.chars().any(|c| c.is_ascii_control() && c != '\t') {
            return Some("a header that is none");
        }
        match name.to_ascii_lowercase().as_str() {
            "content-length" if value.trim().parse::<u64>().is_err() => {
                return Some("a length that is none");
            }
            "content-length" => lengths += 1,
            "transfer-encoding" if !value.trim().eq_ignore_ascii_case("chunked") => {
                return Some("a coding other than chunked");
            }
            "transfer-encoding" => codings += 1,
            "host" => hosts += 1,
            _ => {}
        }
    }
    match (lengths + codings, hosts) {
        (0 | 1, 0 | 1) => None,
        (0 | 1, _) => Some("two hosts"),
        _ => Some("two lengths"),
    }
}

fn is_token(text: &str) -> bool {
    let is_own = |c: char| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c);
    !text.is_empty() && text.chars().all(is_own)
}
