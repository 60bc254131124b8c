//! Clients that give up while they wait for an answer.

use std::net::{Shutdown, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use uturn_model::lb::ListenerProtocol;

use crate::common::tls;
use crate::frames::{END_HEADERS, END_STREAM, HEADERS, Http2, RST_STREAM, frame, get};
use crate::support::{Balancer, Host, PATIENCE, Wire, listener, settings};

const GET: &str = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";

/// A target that takes requests, and answers once it is let.
struct SlowHost {
    host: Host,
    /// Takes a message when a request has come.
    asked: Receiver<()>,
    /// Takes a message when a connection was closed before the answer.
    given_up: Receiver<()>,
    /// Answers a request.
    answer: Sender<()>,
}

impl SlowHost {
    /// A target that sends this part of its answer at once.
    fn start(begin: &'static str) -> Self {
        let (asked_sender, asked) = channel();
        let (given_up_sender, given_up) = channel();
        let (answer, may_answer) = channel();
        let shared = Arc::new(Mutex::new((asked_sender, given_up_sender)));
        let may_answer = Mutex::new(may_answer);
        let host = Host::start(move |mut wire| {
            let (asked, given_up) = shared.lock().unwrap().clone();
            wire.request().unwrap();
            wire.send(begin).unwrap();
            let _ = asked.send(());
            wire.stream().set_nonblocking(true).unwrap();
            while wire.is_open() {
                if may_answer.lock().unwrap().recv_timeout(Duration::from_millis(1)).is_ok() {
                    let rest = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
                    let _ = wire.send(&rest[begin.len()..]);
                    return;
                }
            }
            let _ = given_up.send(());
        });
        Self { host, asked, given_up, answer }
    }

    fn expect_request(&self) {
        self.asked.recv_timeout(PATIENCE).expect("no request");
    }

    fn expect_end(&self) {
        self.given_up.recv_timeout(PATIENCE).expect("the request goes on");
    }

    fn balancer(&self, aborts_on_close: bool) -> Balancer {
        Balancer::with(&[self.host.address], |config| {
            config.process.workers = Some(1);
            settings(config).abort_on_close = aborts_on_close;
        })
    }
}

/// A client that has asked, and whose request the target has.
fn waiting(target: &SlowHost, balancer: &Balancer) -> Wire<TcpStream> {
    let mut client = balancer.client();
    client.send(GET).unwrap();
    target.expect_request();
    client
}

#[test]
fn a_reset_ends_the_request_and_a_half_close_does_not() {
    for begin in ["", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\no"] {
        let target = SlowHost::start(begin);
        let balancer = target.balancer(false);
        let mut patient = waiting(&target, &balancer);
        patient.stream().shutdown(Shutdown::Write).unwrap();
        // What this client sent behind its request is not what tells that it is gone.
        let mut gone = waiting(&target, &balancer);
        gone.send("GET /next HTTP/1.1\r\n").unwrap();
        gone.reset();
        target.expect_end();
        // The other has been looked for by now: it has asked before.
        target.answer.send(()).unwrap();
        assert_eq!(patient.answer().unwrap().text(), "ok");
        assert!(target.given_up.try_recv().is_err());
    }
}

#[test]
fn a_close_ends_the_request_where_that_is_configured() {
    let target = SlowHost::start("");
    let balancer = target.balancer(true);
    drop(waiting(&target, &balancer));
    target.expect_end();
    let half_closed = waiting(&target, &balancer);
    half_closed.stream().shutdown(Shutdown::Write).unwrap();
    target.expect_end();
}

#[test]
fn a_reset_under_tls_ends_the_request() {
    let target = SlowHost::start("");
    let balancer = Balancer::with(&[target.host.address], |config| {
        listener(config).protocol = ListenerProtocol::Https;
    });
    let stream = TcpStream::connect(balancer.address).unwrap();
    let socket = stream.try_clone().unwrap();
    let mut client = Wire::over(tls::connect(stream));
    client.send(GET).unwrap();
    target.expect_request();
    socket2::SockRef::from(&socket).set_linger(Some(Duration::ZERO)).unwrap();
    drop((client, socket));
    target.expect_end();
}

#[test]
fn a_stream_or_connection_of_http_2_that_ends_ends_its_request() {
    let target = SlowHost::start("");
    let balancer = target.balancer(false);
    let mut client = Http2::begin(balancer.client(), None);
    for stream in [1, 3] {
        client.send(frame(HEADERS, END_HEADERS | END_STREAM, stream, &get())).unwrap();
        target.expect_request();
    }
    client.send(frame(RST_STREAM, 0, 1, &[0, 0, 0, 8])).unwrap();
    target.expect_end();
    assert!(target.given_up.try_recv().is_err(), "the other stream goes on");
    drop(client);
    target.expect_end();
}
