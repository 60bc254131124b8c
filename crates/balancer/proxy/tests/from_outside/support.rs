//! A load balancer, targets and clients for tests.

use std::collections::HashMap;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use uturn_lb::config::{Config, ListenerSettings, RuleSettings};
use uturn_lb::event::Event;
use uturn_model::lb::{Listener, ListenerProtocol, Rule};
use uturn_proxy::{Detail, Observer, Server};
use uturn_testing::variables;

use crate::common::{self, load_balancer};

pub(crate) use crate::wait::PATIENCE;

/// How much longer than usual a run is.
pub(crate) fn factor() -> usize {
    variables::number(variables::CHAOS).unwrap_or(1)
}

/// A running load balancer.
pub(crate) struct Balancer {
    pub(crate) address: SocketAddr,
    pub(crate) config: Config,
    pub(crate) events: Arc<Events>,
    server: Option<Server>,
}

/// Counts what the load balancer reports.
#[derive(Debug, Default)]
pub(crate) struct Events {
    pub(crate) answered: AtomicUsize,
    pub(crate) failed: AtomicUsize,
    /// How often health checks found a target dead.
    pub(crate) dead: AtomicUsize,
}

impl Events {
    fn count(&self, event: &Event) {
        match event {
            Event::Answered { .. } => {
                self.answered.fetch_add(1, Ordering::SeqCst);
            }
            Event::Failed { status: Some(_), .. } => {
                self.failed.fetch_add(1, Ordering::SeqCst);
            }
            Event::Health { alive: false, .. } => {
                self.dead.fetch_add(1, Ordering::SeqCst);
            }
            _ => {}
        }
    }
}

impl Balancer {
    pub(crate) fn start(targets: &[SocketAddr]) -> Self {
        Self::with(targets, |_| ())
    }

    /// One of which a part of the configuration is another.
    pub(crate) fn with(targets: &[SocketAddr], adjust: impl FnOnce(&mut Config)) -> Self {
        let load_balancer = load_balancer(ListenerProtocol::Http, vec![rule(targets)]);
        let address = common::address(&load_balancer);
        let mut config = Config::plain(vec![load_balancer]);
        config.process.workers = Some(2);
        settings(&mut config).rules = vec![RuleSettings::default()];
        adjust(&mut config);
        let events = Arc::new(Events::default());
        let counted = Arc::clone(&events);
        let observer: Observer = Arc::new(move |event: &Event| counted.count(event));
        let server = Server::start(&config, observer, Detail::Connections).unwrap();
        Self { address, config, events, server: Some(server) }
    }

    /// One with short limits of time, and with another listener on which time does not matter: on a
    /// busy machine, honest clients are slow too.
    pub(crate) fn hasty(targets: &[SocketAddr], adjust: impl FnOnce(&mut Config)) -> Self {
        Self::with(targets, |config| {
            let (mut patient, of_patient) = (listener(config).clone(), settings(config).clone());
            patient.port = uturn_model::Port::new(common::unused_address().port()).unwrap();
            let balancer = &mut config.load_balancers[0];
            balancer.load_balancer.listeners.push(patient);
            balancer.listeners.push(of_patient);
            adjust(config);
        })
    }

    /// A client of the listener on which time does not matter; of the only one if there is no other.
    pub(crate) fn patient_client(&self) -> Wire<TcpStream> {
        let load_balancer = &self.config.load_balancers[0].load_balancer;
        let port = load_balancer.listeners.last().unwrap().port.number();
        Wire::connect(SocketAddr::new(load_balancer.vip, port)).unwrap()
    }

    /// Changes the configuration.
    pub(crate) fn reload(&mut self, adjust: impl FnOnce(&mut Config)) {
        adjust(&mut self.config);
        self.server.as_mut().unwrap().reload(&self.config).unwrap();
    }

    pub(crate) fn try_reload(&mut self, config: &Config) -> Result<(), uturn_proxy::StartError> {
        self.server.as_mut().unwrap().reload(config)
    }

    pub(crate) fn client(&self) -> Wire<TcpStream> {
        Wire::connect(self.address).unwrap()
    }

    /// A new client's connection after its first request. One that was ended before it had sent
    /// anything, on a busy machine, makes room for another.
    pub(crate) fn first_ask(&self, bytes: impl AsRef<[u8]>) -> (Wire<TcpStream>, Message) {
        loop {
            let mut client = self.client();
            if let Ok(answer) = client.ask(&bytes) {
                return (client, answer);
            }
        }
    }

    /// Sends bytes and no more; returns all that comes back.
    pub(crate) fn exchange(&self, bytes: &[u8]) -> String {
        let mut client = self.client();
        // A load balancer that refuses a request may have closed before it has all of it.
        let _ = client.send(bytes);
        let _ = client.stream().shutdown(Shutdown::Write);
        client.rest()
    }

    pub(crate) fn stop(mut self, drain: Duration) {
        self.server.take().unwrap().stop(drain);
    }
}

impl Drop for Balancer {
    fn drop(&mut self) {
        if let Some(server) = self.server.take() {
            server.stop(Duration::ZERO);
        }
    }
}

/// The settings of the first listener.
pub(crate) fn settings(config: &mut Config) -> &mut ListenerSettings {
    &mut config.load_balancers[0].listeners[0]
}

/// The first listener.
pub(crate) fn listener(config: &mut Config) -> &mut Listener {
    &mut config.load_balancers[0].load_balancer.listeners[0]
}

/// A rule for every host and path.
pub(crate) fn rule(targets: &[SocketAddr]) -> Rule {
    common::rule(None, "/", targets)
}

/// A server with a thread for each connection. It can be killed and started again.
pub(crate) struct Host {
    pub(crate) address: SocketAddr,
    serve: Arc<dyn Fn(Wire<TcpStream>) + Send + Sync>,
    open: Arc<Mutex<HashMap<usize, TcpStream>>>,
    accepted: Arc<AtomicUsize>,
    running: Mutex<Option<(Arc<AtomicBool>, JoinHandle<()>)>>,
}

impl Host {
    pub(crate) fn start(serve: impl Fn(Wire<TcpStream>) + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let host = Self {
            address: listener.local_addr().unwrap(),
            serve: Arc::new(serve),
            open: Arc::default(),
            accepted: Arc::default(),
            running: Mutex::new(None),
        };
        host.listen(listener);
        host
    }

    /// A server that gives the same answer to every request.
    pub(crate) fn answering(answer: impl Into<String>) -> Self {
        let answer = answer.into();
        Self::start(move |mut wire| {
            while let Ok(Some(_)) = wire.request() {
                if wire.send(answer.as_bytes()).is_err() {
                    return;
                }
            }
        })
    }

    /// A server that gives a body of two bytes to every request.
    pub(crate) fn plain() -> Self {
        Self::answering("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
    }

    fn listen(&self, listener: TcpListener) {
        let is_over = Arc::new(AtomicBool::new(false));
        let (over, serve, open, accepted) = (
            Arc::clone(&is_over),
            Arc::clone(&self.serve),
            Arc::clone(&self.open),
            Arc::clone(&self.accepted),
        );
        let thread = thread::spawn(move || {
            let mut threads: Vec<JoinHandle<()>> = Vec::new();
            for stream in listener.incoming().map_while(Result::ok) {
                if over.load(Ordering::SeqCst) {
                    break;
                }
                threads.retain(|thread| !thread.is_finished());
                let number = accepted.fetch_add(1, Ordering::SeqCst);
                open.lock().unwrap().insert(number, stream.try_clone().unwrap());
                let others = Arc::clone(&open);
                let serve = Arc::clone(&serve);
                threads.push(thread::spawn(move || {
                    let end = stream.try_clone().unwrap();
                    serve(Wire::new(stream));
                    // The copy for a kill keeps the connection open otherwise.
                    let _ = end.shutdown(Shutdown::Both);
                    others.lock().unwrap().remove(&number);
                }));
            }
            drop(listener);
            for (_, stream) in open.lock().unwrap().drain() {
                let _ = stream.shutdown(Shutdown::Both);
            }
            for thread in threads {
                let _ = thread.join();
            }
        });
        *self.running.lock().unwrap() = Some((is_over, thread));
    }

    /// Closes everything at once.
    pub(crate) fn kill(&self) {
        let Some((is_over, thread)) = self.running.lock().unwrap().take() else { return };
        is_over.store(true, Ordering::SeqCst);
        drop(TcpStream::connect(self.address));
        thread.join().unwrap();
    }

    /// Starts again at the same address.
    pub(crate) fn restart(&self) {
        self.listen(TcpListener::bind(self.address).unwrap());
    }

    /// The number of connections that were accepted.
    pub(crate) fn accepted(&self) -> usize {
        self.accepted.load(Ordering::SeqCst)
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        self.kill();
    }
}

/// A message as it came, with its body without framing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Message {
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
    pub(crate) trailers: String,
}

impl Message {
    pub(crate) fn status(&self) -> u16 {
        self.head.split(' ').nth(1).unwrap().parse().unwrap()
    }

    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().skip(1).find_map(|line| {
            let (found, value) = line.split_once(':')?;
            found.eq_ignore_ascii_case(name).then(|| value.trim())
        })
    }

    /// Whether no further message follows on the connection.
    pub(crate) fn closes(&self) -> bool {
        self.header("connection").is_some_and(|value| value.eq_ignore_ascii_case("close"))
    }
}

/// One end of a connection that speaks HTTP/1.
pub(crate) struct Wire<S: Read> {
    reader: BufReader<S>,
}

impl Wire<TcpStream> {
    pub(crate) fn connect(address: SocketAddr) -> io::Result<Self> {
        Ok(Self::new(TcpStream::connect(address)?))
    }

    pub(crate) fn new(stream: TcpStream) -> Self {
        stream.set_nodelay(true).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        Self::over(stream)
    }

    pub(crate) fn stream(&self) -> &TcpStream {
        self.reader.get_ref()
    }

    /// Whether the other end has closed nothing. For streams that do not block.
    pub(crate) fn is_open(&self) -> bool {
        match self.stream().peek(&mut [0]) {
            Err(error) => error.kind() == io::ErrorKind::WouldBlock,
            Ok(read) => read > 0,
        }
    }

    /// Ends the connection with a reset.
    pub(crate) fn reset(self) {
        let socket = socket2::SockRef::from(self.stream());
        socket.set_linger(Some(Duration::ZERO)).unwrap();
    }
}

impl<S: Read + Write> Wire<S> {
    pub(crate) fn over(stream: S) -> Self {
        Self { reader: BufReader::new(stream) }
    }

    pub(crate) fn send(&mut self, bytes: impl AsRef<[u8]>) -> io::Result<()> {
        self.reader.get_mut().write_all(bytes.as_ref())?;
        self.reader.get_mut().flush()
    }

    /// Sends a request and reads its answer.
    pub(crate) fn ask(&mut self, bytes: impl AsRef<[u8]>) -> io::Result<Message> {
        self.send(bytes)?;
        self.answer()
    }

    /// The next request. `None` when the other end has closed.
    pub(crate) fn request(&mut self) -> io::Result<Option<Message>> {
        self.message(false)
    }

    /// The next answer, which has a body if its head allows for one.
    pub(crate) fn answer(&mut self) -> io::Result<Message> {
        self.message(true)?.ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
    }

    /// The next head alone.
    pub(crate) fn head(&mut self) -> io::Result<Option<String>> {
        let mut head = Vec::new();
        loop {
            let begin = head.len();
            self.reader.read_until(b'\n', &mut head)?;
            match &head[begin..] {
                [] if head.is_empty() => return Ok(None),
                [] => return Err(io::ErrorKind::UnexpectedEof.into()),
                b"\r\n" => return Ok(Some(head.iter().map(|byte| char::from(*byte)).collect())),
                _ => {}
            }
        }
    }

    fn message(&mut self, is_answer: bool) -> io::Result<Option<Message>> {
        let Some(head) = self.head()? else { return Ok(None) };
        let mut message = Message { head, ..Message::default() };
        let has_no_body = is_answer && matches!(message.status(), 100..=199 | 204 | 304);
        if has_no_body {
            return Ok(Some(message));
        }
        let is_chunked = message.header("transfer-encoding") == Some("chunked");
        let length = message.header("content-length").map(|text| text.parse().unwrap());
        if is_chunked {
            self.chunks(&mut message)?;
        } else if let Some(length) = length {
            message.body = self.bytes(length)?;
        } else if is_answer {
            self.reader.read_to_end(&mut message.body)?;
        }
        Ok(Some(message))
    }

    fn chunks(&mut self, message: &mut Message) -> io::Result<()> {
        loop {
            let mut line = String::new();
            self.reader.read_line(&mut line)?;
            let size = line.trim_end().split(';').next().unwrap_or_default();
            let size = usize::from_str_radix(size, 16).map_err(io::Error::other)?;
            if size == 0 {
                break;
            }
            message.body.extend(self.bytes(size)?);
            self.bytes(2)?;
        }
        loop {
            let mut line = String::new();
            if self.reader.read_line(&mut line)? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            if line == "\r\n" {
                return Ok(());
            }
            message.trailers.push_str(&line);
        }
    }

    pub(crate) fn bytes(&mut self, count: usize) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; count];
        self.reader.read_exact(&mut bytes)?;
        Ok(bytes)
    }

    /// Everything until the other end closes or resets.
    pub(crate) fn rest(&mut self) -> String {
        let mut bytes = Vec::new();
        match self.reader.read_to_end(&mut bytes) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => panic!("nothing ended it"),
            _ => bytes.iter().map(|byte| char::from(*byte)).collect(),
        }
    }

    /// The next byte, which stays to be read. `None` when the other end has closed.
    pub(crate) fn peek(&mut self) -> Option<u8> {
        self.reader.fill_buf().ok().and_then(|bytes| bytes.first().copied())
    }
}
