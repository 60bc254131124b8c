//! A client, the load balancer and targets, each in a network namespace of its own.

use std::io::{BufRead, BufReader, Write};
use std::net::{IpAddr, Shutdown, SocketAddr, TcpListener, TcpStream, ToSocketAddrs, UdpSocket};
use std::sync::Mutex;
use std::thread;

use socket2::{Domain, SockRef, Socket, Type};
use uturn_netns::Held;

use crate::queue::Queue;
use crate::wait::{PATIENCE, await_that};

pub(crate) const VIP: &str = "10.9.9.9";
pub(crate) const VIP_6: &str = "fd00:9::9";

/// A network namespace, which is gone when this is dropped.
pub(crate) struct Space(Held);

/// A client at 10.1.0.2 and targets at 10.2.N.2, all routed by the load balancer's namespace.
pub(crate) struct Network {
    pub(crate) client: Space,
    pub(crate) balancer: Space,
    pub(crate) targets: Vec<Target>,
}

/// A target, which serves in a namespace of its own.
pub(crate) struct Target {
    pub(crate) space: Space,
    service: Service,
}

/// Serves TCP and UDP at port 80 of any address until it is told to stop.
pub(crate) struct Service {
    listener: TcpListener,
    /// Until it is told to stop: a port is open as long as somebody has it.
    datagrams: Mutex<Option<UdpSocket>>,
}

impl Space {
    fn new() -> Self {
        let space = Self(Held::new().unwrap());
        // Addresses of links are there at once.
        space.sh("sysctl -qw net.ipv6.conf.all.accept_dad=0 net.ipv6.conf.default.accept_dad=0");
        space
    }

    /// Runs a shell script there, and returns what it printed.
    pub(crate) fn sh(&self, script: &str) -> String {
        self.0.sh(script).unwrap()
    }

    /// Runs a closure there. Threads that it starts stay there.
    pub(crate) fn run<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        self.0.run(work).unwrap()
    }

    /// Connects from there. Returns `None` if the connection is refused, or its packet was dropped.
    pub(crate) fn connect(&self, address: impl ToSocketAddrs) -> Option<Connection> {
        let address = address.to_socket_addrs().unwrap().next().unwrap();
        self.run(|| Connection::open(address))
    }

    /// Connects so many times, one after the other; returns the targets, as `t1 t2`.
    pub(crate) fn targets(&self, count: usize, address: &str) -> String {
        let met = |_| match self.connect(address) {
            Some(connection) => connection.target().to_owned(),
            None => "none".to_owned(),
        };
        (0..count).map(met).collect::<Vec<_>>().join(" ")
    }

    /// Sends datagrams from one port each; returns who answered them.
    pub(crate) fn datagrams(&self, count: usize, from: &str, address: &str) -> String {
        // All at a time: one that has another's port goes where that went.
        let sockets: Vec<_> = (0..count).map(|_| self.datagram_socket(from)).collect();
        sockets.iter().map(|socket| self.ask(socket, address)).collect::<Vec<_>>().join(" ")
    }

    /// A socket for datagrams from there.
    pub(crate) fn datagram_socket(&self, from: &str) -> UdpSocket {
        let socket = self.run(|| UdpSocket::bind((from, 0))).unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        socket
    }

    /// Sends a datagram; returns who answered.
    pub(crate) fn ask(&self, socket: &UdpSocket, address: &str) -> String {
        socket.send_to(b"?", address).unwrap();
        let mut answer = [0; 100];
        match socket.recv_from(&mut answer) {
            Ok((length, from)) => {
                assert_eq!(from, address.parse().unwrap());
                let answer = String::from_utf8_lossy(&answer[..length]).into_owned();
                answer.split(' ').next().unwrap().to_owned()
            }
            Err(_) => "none".to_owned(),
        }
    }
}

impl Network {
    pub(crate) fn new(targets: usize) -> Self {
        let balancer = Space::new();
        balancer.sh(&format!(
            "sysctl -qw net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1
             ip addr add {VIP}/32 dev lo; ip addr add {VIP_6}/128 dev lo nodad"
        ));
        let client = Space::new();
        link(&balancer, &client, "c", "10.1.0", "fd00:1:0:");
        let targets = (1..=targets)
            .map(|number| {
                let space = Space::new();
                let prefixes = (format!("10.2.{number}"), format!("fd00:2:{number}:"));
                link(&balancer, &space, &format!("t{number}"), &prefixes.0, &prefixes.1);
                Target::start(space, number)
            })
            .collect();
        let network = Self { client, balancer, targets };
        network.await_links();
        network
    }
}

impl Network {
    /// A link carries IPv6 some time after it is up.
    fn await_links(&self) {
        let spaces = self.targets.iter().map(|target| &target.space);
        for space in spaces.chain([&self.client]) {
            for number in 1..=self.targets.len() {
                let address = format!("[fd00:2:{number}::2]:80");
                await_that(|| space.connect(&*address).is_some());
            }
        }
    }
}

/// Links a namespace to the load balancer's, which becomes its router. Both ends know each other's
/// hardware address, so that no packet waits for one: [`Queue`] counts on it.
fn link(balancer: &Space, space: &Space, name: &str, v4: &str, v6: &str) {
    const ROUTER: &str = "02:00:00:00:00:01";
    const END: &str = "02:00:00:00:00:02";
    let pid = space.0.pid();
    balancer.sh(&format!(
        "ip link add {name} address {ROUTER} type veth peer name eth0 address {END} netns {pid}
         ip addr add {v4}.1/24 dev {name}; ip addr add {v6}:1/64 dev {name} nodad
         ip link set {name} up
         ip neigh add {v4}.2 lladdr {END} dev {name} nud permanent
         ip neigh add {v6}:2 lladdr {END} dev {name} nud permanent"
    ));
    space.sh(&format!(
        "ip addr add {v4}.2/24 dev eth0; ip addr add {v6}:2/64 dev eth0 nodad
         ip link set eth0 up
         ip neigh add {v4}.1 lladdr {ROUTER} dev eth0 nud permanent
         ip neigh add {v6}:1 lladdr {ROUTER} dev eth0 nud permanent
         ip route add default via {v4}.1; ip -6 route add default via {v6}:1"
    ));
}

impl Target {
    fn start(space: Space, number: usize) -> Self {
        let service = Service::start(&space, &format!("t{number}"));
        Self { space, service }
    }

    /// Stops serving; open connections go on.
    pub(crate) fn stop(&self) {
        self.service.stop();
    }
}

impl Service {
    pub(crate) fn start(space: &Space, name: &str) -> Self {
        let listener = space.run(|| TcpListener::bind("[::]:80")).unwrap();
        let socket = space.run(|| UdpSocket::bind("[::]:80")).unwrap();
        let accepts = listener.try_clone().unwrap();
        let datagrams = Mutex::new(Some(socket.try_clone().unwrap()));
        let (called, name) = (name.to_owned(), name.to_owned());
        thread::spawn(move || serve(&accepts, &called));
        thread::spawn(move || answer(&socket, &name));
        Self { listener, datagrams }
    }

    fn stop(&self) {
        if let Some(socket) = self.datagrams.lock().unwrap().take() {
            // An empty datagram says so: what came before is answered.
            socket.send_to(&[], "[::1]:80").unwrap();
        }
        let _ = SockRef::from(&self.listener).shutdown(Shutdown::Both);
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Greets each client with the target's name and the client's address, and sends back lines.
fn serve(listener: &TcpListener, name: &str) {
    while let Ok((mut stream, peer)) = listener.accept() {
        let greeting = format!("{name} {}\n", canonical(peer));
        thread::spawn(move || {
            stream.write_all(greeting.as_bytes())?;
            let mut reader = stream.try_clone()?;
            std::io::copy(&mut reader, &mut stream)
        });
    }
}

fn answer(socket: &UdpSocket, name: &str) {
    let mut buffer = [0; 100];
    loop {
        match socket.recv_from(&mut buffer) {
            Ok((0, _)) => return,
            Ok((_, peer)) => {
                let answer = format!("{name} {}", canonical(peer));
                let _ = socket.send_to(answer.as_bytes(), peer);
            }
            // A client that is gone.
            Err(_) => {}
        }
    }
}

fn canonical(peer: SocketAddr) -> IpAddr {
    peer.ip().to_canonical()
}

/// A connection to a target, which has greeted.
#[derive(Debug)]
pub(crate) struct Connection {
    stream: TcpStream,
    reader: BufReader<TcpStream>,
    greeting: String,
}

impl Connection {
    /// Connects from the namespace of this thread. Returns `None` if the connection is refused, or
    /// its first packet was dropped.
    pub(crate) fn open(address: SocketAddr) -> Option<Self> {
        let queue = Queue::of_this_processor();
        let socket = Socket::new(Domain::for_address(address), Type::STREAM, None).unwrap();
        socket.set_nonblocking(true).unwrap();
        // It says that it is under way.
        let _ = socket.connect(&address.into());
        // The kernel answers for targets: no program has to run until the connection is there.
        if !queue.comes_before_its_end(|| socket.peer_addr().is_ok()) {
            return None;
        }
        socket.set_nonblocking(false).unwrap();
        Self::greeted(TcpStream::from(socket))
    }

    /// Connects from the namespace of this thread as clients do: a first packet that was dropped is
    /// sent again.
    pub(crate) fn open_retransmitting(address: SocketAddr) -> Option<Self> {
        Self::greeted(TcpStream::connect(address).ok()?)
    }

    fn greeted(stream: TcpStream) -> Option<Self> {
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let reader = BufReader::new(stream.try_clone().unwrap());
        let mut connection = Self { stream, reader, greeting: String::new() };
        connection.greeting = connection.read_line()?;
        Some(connection)
    }

    pub(crate) fn target(&self) -> &str {
        self.greeting.split(' ').next().unwrap()
    }

    /// The client's address, as the target sees it.
    pub(crate) fn client(&self) -> &str {
        self.greeting.split(' ').nth(1).unwrap()
    }

    /// Whether a line comes back.
    pub(crate) fn is_open(&mut self) -> bool {
        self.stream.write_all(b"hello\n").is_ok() && self.read_line().as_deref() == Some("hello")
    }

    /// A line, without its end.
    pub(crate) fn read_line(&mut self) -> Option<String> {
        let mut line = String::new();
        self.reader.read_line(&mut line).ok()?;
        line.strip_suffix('\n').map(str::to_owned)
    }
}
