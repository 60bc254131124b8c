//! `uturn lb run` as a process, in a folder with its file, its addresses and two targets.
#![cfg(target_os = "linux")]

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

use serde_json::Value;
use uturn_testing::commands::{Folder, uturn};

/// The token of the admin address.
pub(crate) const TOKEN: &str = "0123456789abcdef-token";

/// The whole of 127.0.0.0/8 is this machine: every process has ports of its own there.
pub(crate) fn free_address() -> SocketAddr {
    static NEXT: AtomicU16 = AtomicU16::new(1);
    let [_, high, middle, low] = std::process::id().to_be_bytes();
    let ip = Ipv4Addr::new(127, 64 | high, middle, low);
    SocketAddr::new(ip.into(), 21000 + NEXT.fetch_add(1, Ordering::Relaxed))
}

/// A web server that answers with its name.
fn target(name: &'static str) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
            while lines.next().is_some_and(|line| line.is_ok_and(|line| !line.is_empty())) {}
            let length = name.len();
            let answer = format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n{name}");
            let _ = stream.write_all(answer.as_bytes());
        }
    });
    address
}

/// The documents of a load balancer with a single target.
pub(crate) fn documents(listener: SocketAddr, admin: SocketAddr, target: SocketAddr) -> String {
    format!(
        "apiVersion: uturn.dev/v1alpha1
kind: DataPlane
spec:
  workers: 1
  admin: {{address: '{admin}', tokenFile: admin.token, localTargets: true}}
---
apiVersion: uturn.dev/v1alpha1
kind: LoadBalancer
metadata: {{name: web}}
spec:
  vip: {}
  listeners:
  - port: {}
    protocol: HTTP
    source: 127.0.0.1/32
    avoidsClient: false
    healthCheck: none
    targets: ['{target}']
",
        listener.ip(),
        listener.port()
    )
}

/// `uturn lb run`, killed when this is dropped.
pub(crate) struct Running {
    pub(crate) child: Child,
    events: BufReader<ChildStdout>,
    errors: Arc<Mutex<Vec<String>>>,
}

impl Running {
    /// Starts it, and waits until it serves.
    pub(crate) fn start(mut command: Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let events = BufReader::new(child.stdout.take().unwrap());
        let lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let errors = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&errors);
        thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                kept.lock().unwrap().push(line);
            }
        });
        let mut running = Self { child, events, errors };
        // On a busy machine, a health check may decide something before that is printed.
        while running.event()["event"] != "ready" {}
        running
    }

    /// The next event.
    pub(crate) fn event(&mut self) -> Value {
        let mut line = String::new();
        self.events.read_line(&mut line).unwrap();
        serde_json::from_str(&line)
            .unwrap_or_else(|_| panic!("{line:?} {:?}", self.errors.lock().unwrap()))
    }

    /// Waits for the next configuration. Returns its cause.
    pub(crate) fn reloaded(&mut self) -> String {
        let event = self.event();
        assert_eq!(event["event"], "reloaded", "{event}");
        event["cause"].as_str().unwrap().to_owned()
    }

    /// Waits until a line is printed on standard error that contains this, and forgets all lines.
    pub(crate) fn error(&self, part: &str) -> String {
        loop {
            let mut lines = self.errors.lock().unwrap();
            if let Some(line) = lines.iter().find(|line| line.contains(part)).cloned() {
                lines.clear();
                return line;
            }
            drop(lines);
            thread::yield_now();
        }
    }

    pub(crate) fn signal(&self, name: &str) {
        let id = self.child.id().to_string();
        assert!(Command::new("kill").args([name, &id]).status().unwrap().success());
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A folder with a file `lb.yaml`, its addresses, and two targets.
pub(crate) struct Site {
    pub(crate) folder: Folder,
    pub(crate) listener: SocketAddr,
    pub(crate) admin: SocketAddr,
    pub(crate) targets: [SocketAddr; 2],
}

impl Site {
    pub(crate) fn new(name: &str) -> Self {
        let site = Self {
            folder: Folder::new(name),
            listener: free_address(),
            admin: free_address(),
            targets: [target("first"), target("second")],
        };
        site.folder.file("admin.token", &format!("{TOKEN}\n")).file("lb.yaml", &site.text(0));
        site
    }

    pub(crate) fn text(&self, target: usize) -> String {
        documents(self.listener, self.admin, self.targets[target])
    }

    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = uturn(&[&["lb", "run"], args].concat());
        command.current_dir(&self.folder.0);
        command
    }

    pub(crate) fn start(&self, args: &[&str]) -> Running {
        Running::start(self.command(&[args, &["-f", "lb.yaml"]].concat()))
    }

    /// The name of the target that answers.
    pub(crate) fn ask(&self) -> String {
        self.ask_at(self.listener)
    }

    /// The name of the target that answers at a listener.
    pub(crate) fn ask_at(&self, listener: SocketAddr) -> String {
        let answer = exchange(listener, "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
        answer.split_once("\r\n\r\n").unwrap().1.to_owned()
    }

    /// A request to the admin address, with headers that end their lines.
    pub(crate) fn admin(
        &self,
        method: &str,
        path: &str,
        headers: &str,
        body: &str,
    ) -> (u16, String) {
        let length = body.len();
        let head = format!("{method} {path} HTTP/1.1\r\nHost: admin\r\n{headers}");
        let text = format!("{head}Content-Length: {length}\r\n\r\n{body}");
        let answer = exchange(self.admin, &text);
        (answer[9..12].parse().unwrap(), answer)
    }

    pub(crate) fn allowed(&self, method: &str, path: &str, body: &str) -> (u16, String) {
        self.admin(method, path, &format!("Authorization: Bearer {TOKEN}\r\n"), body)
    }

    pub(crate) fn metric(&self, name: &str) -> String {
        let (_, page) = self.admin("GET", "/metrics", "", "");
        let line = page.lines().find(|line| line.starts_with(name)).unwrap();
        line.rsplit_once(' ').unwrap().1.to_owned()
    }
}

pub(crate) fn exchange(address: SocketAddr, bytes: &str) -> String {
    try_exchange(address, bytes).unwrap_or_else(|error| panic!("{address}: {bytes}: {error}"))
}

pub(crate) fn try_exchange(address: SocketAddr, bytes: &str) -> io::Result<String> {
    let mut stream = TcpStream::connect(address)?;
    stream.write_all(bytes.as_bytes())?;
    let _ = stream.shutdown(Shutdown::Write);
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer)
}
