//! Targets that fail in every way while clients send requests.

use std::collections::{HashMap, HashSet};
use std::io;
use std::net::{SocketAddr, TcpStream};
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use crate::support::{Balancer, Host, Message, PATIENCE, Wire, factor, settings};

const CLIENTS: usize = 8;
const REQUESTS: usize = 10_000;

/// The number of a client that calls a load balancer with a short time limit: targets hang with its
/// requests alone, since a busy machine may take longer than that for any request.
const HASTY: usize = CLIENTS;

/// So many requests that a target hangs with are to be answered by others.
const SAVED: usize = 4;

/// What a target does with a request.
#[derive(Clone, Copy, Debug)]
enum Fault {
    /// Nothing wrong: it answers.
    None,
    /// It closes the connection while the request is on its way.
    CloseOnArrival,
    /// It closes the connection after it has read the request.
    CloseWithoutAnswer,
    /// It resets the connection after it has read the request.
    Reset,
    /// It sends a part of an answer's head.
    HalfHead,
    /// It answers what is no HTTP.
    Nonsense,
    /// It reads on and never answers a hasty client; it answers others.
    Hang,
    /// It answers byte by byte.
    Slow,
    /// It answers, and closes the connection without having said so.
    CloseAfterAnswer,
}

/// What each target does in turn.
const FAULTS: [Fault; 12] = [
    Fault::Hang,
    Fault::CloseAfterAnswer,
    Fault::None,
    Fault::CloseOnArrival,
    Fault::Slow,
    Fault::CloseWithoutAnswer,
    Fault::None,
    Fault::Reset,
    Fault::HalfHead,
    Fault::None,
    Fault::Nonsense,
    Fault::CloseAfterAnswer,
];

/// How often each request came in, by its identifier, and with which ones a target hung.
#[derive(Debug, Default)]
struct Deliveries {
    counts: Mutex<HashMap<String, usize>>,
    hung: Mutex<HashSet<String>>,
}

impl Deliveries {
    fn record(&self, request: &Message) {
        let id = request.header("x-id").unwrap().to_owned();
        *self.counts.lock().unwrap().entry(id).or_default() += 1;
    }

    /// Notes that a target hangs with a request, if it is a hasty client's.
    fn hang(&self, request: &Message) -> bool {
        let id = request.header("x-id").unwrap();
        let is_hasty = id.starts_with(&format!("{HASTY}-"));
        is_hasty && self.hung.lock().unwrap().insert(id.to_owned())
    }
}

fn good(deliveries: &Arc<Deliveries>) -> Host {
    let deliveries = Arc::clone(deliveries);
    Host::start(move |mut wire| {
        while let Ok(Some(request)) = wire.request() {
            deliveries.record(&request);
            if wire.send(answer(&request)).is_err() {
                return;
            }
        }
    })
}

/// A target that fails in turn. One that is killed now and then does not answer slowly: what a kill
/// breaks off, no retry can save.
fn faulty(deliveries: &Arc<Deliveries>, is_killed: bool) -> Host {
    let (deliveries, turn) = (Arc::clone(deliveries), AtomicUsize::new(0));
    Host::start(move |mut wire| {
        while wire.peek().is_some() {
            let turn = turn.fetch_add(1, Ordering::SeqCst);
            let fault = match FAULTS[turn % FAULTS.len()] {
                Fault::Slow if is_killed => Fault::None,
                fault => fault,
            };
            if fail(&mut wire, fault, &deliveries).unwrap_or(true) {
                return;
            }
        }
    })
}

/// Deals with a request. Returns whether the connection is over.
fn fail(wire: &mut Wire<TcpStream>, fault: Fault, deliveries: &Deliveries) -> io::Result<bool> {
    if let Fault::CloseOnArrival = fault {
        return Ok(true);
    }
    let Some(request) = wire.request()? else { return Ok(true) };
    deliveries.record(&request);
    let answer = answer(&request);
    match fault {
        Fault::Hang if deliveries.hang(&request) => {
            wire.rest();
            Ok(true)
        }
        Fault::None | Fault::Hang => wire.send(answer).map(|()| false),
        Fault::CloseAfterAnswer => wire.send(answer).map(|()| true),
        Fault::Slow => {
            for byte in answer.as_bytes() {
                wire.send([*byte])?;
                thread::yield_now();
            }
            Ok(false)
        }
        Fault::CloseOnArrival | Fault::CloseWithoutAnswer => Ok(true),
        Fault::Reset => {
            let socket = socket2::SockRef::from(wire.stream());
            socket.set_linger(Some(Duration::ZERO)).map(|()| true)
        }
        Fault::HalfHead => wire.send("HTTP/1.1 200 OK\r\nContent-Le").map(|()| true),
        Fault::Nonsense => wire.send("220 mail ready\r\n\r\n").map(|()| true),
    }
}

/// An answer that names the request, and shows how much of its body came.
fn answer(request: &Message) -> String {
    let body = format!("{} {}", request.header("x-id").unwrap(), request.body.len());
    format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len())
}

/// A request, and what its answer's body is.
struct Request {
    id: String,
    is_idempotent: bool,
    bytes: Vec<u8>,
    answer: String,
}

/// Requests of several methods, with bodies of several sizes and framings.
fn request(client: usize, number: usize) -> Request {
    let id = format!("{client}-{number}");
    let (method, length, is_chunked) = match number % 8 {
        0 | 3 | 6 => ("GET", 0, false),
        1 => ("PUT", 100, false),
        2 => ("PUT", 5000, true),
        4 => ("POST", 10, false),
        5 => ("POST", 100_000, false),
        _ => ("DELETE", 0, false),
    };
    let framing = match (length, is_chunked) {
        (0, _) => String::new(),
        (_, true) => "Transfer-Encoding: chunked\r\n".to_owned(),
        (_, false) => format!("Content-Length: {length}\r\n"),
    };
    let head = format!("{method} / HTTP/1.1\r\nHost: a\r\nX-Id: {id}\r\n{framing}\r\n");
    let mut bytes = head.into_bytes();
    let body = vec![b'x'; length];
    if is_chunked {
        for chunk in body.chunks(1000) {
            bytes.extend(format!("{:x}\r\n", chunk.len()).bytes());
            bytes.extend(chunk);
            bytes.extend(b"\r\n");
        }
        bytes.extend(b"0\r\n\r\n");
    } else {
        bytes.extend(body);
    }
    Request { is_idempotent: method != "POST", bytes, answer: format!("{id} {length}"), id }
}

/// What a client saw.
#[derive(Debug, Default)]
struct Seen {
    good: usize,
    bad: usize,
    /// Requests that a safe retry could have saved, and what became of them.
    lost: Vec<String>,
    /// Requests that must not be delivered twice.
    posts: Vec<String>,
}

fn run_client(address: SocketAddr, client: usize, numbers: Range<usize>, step: &dyn Fn()) -> Seen {
    let mut seen = Seen::default();
    let mut wire: Option<Wire<TcpStream>> = None;
    for number in numbers {
        step();
        let request = request(client, number);
        if !request.is_idempotent {
            seen.posts.push(request.id.clone());
        }
        let mut connection = match wire.take() {
            Some(connection) => connection,
            None => Wire::connect(address).unwrap(),
        };
        // Where the answer comes before the whole body was sent, the load balancer closes.
        let sent = connection.send(&request.bytes);
        match connection.answer() {
            Ok(answer) if answer.status() == 200 => {
                assert_eq!(answer.text(), request.answer, "the answer is another request's");
                seen.good += 1;
                if number % 10 != 0 && !answer.closes() && sent.is_ok() {
                    wire = Some(connection);
                }
            }
            Ok(answer) => {
                seen.bad += 1;
                if request.is_idempotent {
                    seen.lost.push(format!(
                        "{}: {} {}",
                        request.id,
                        answer.status(),
                        answer.text()
                    ));
                }
            }
            Err(error) => seen.lost.push(format!("{}: {error}", request.id)),
        }
    }
    seen
}

/// Sends requests until enough of those with which a target hung were answered by others. Returns
/// those that must not be delivered twice.
fn run_hasty_client(address: SocketAddr, deliveries: &Deliveries) -> Vec<String> {
    let (mut posts, mut saved) = (Vec::new(), 0);
    for number in 0.. {
        let seen = run_client(address, HASTY, number..number + 1, &|| ());
        let is_hung = deliveries.hung.lock().unwrap().contains(&request(HASTY, number).id);
        saved += usize::from(is_hung && seen.good == 1);
        posts.extend(seen.posts);
        if saved == SAVED {
            break;
        }
    }
    posts
}

#[test]
fn no_request_is_lost_that_may_be_repeated_and_no_other_is_repeated() {
    let deliveries = Arc::new(Deliveries::default());
    let hosts = [
        good(&deliveries),
        faulty(&deliveries, true),
        faulty(&deliveries, false),
        good(&deliveries),
    ];
    let [balancer, hasty] = [PATIENCE, Duration::from_millis(200)].map(|limit| {
        Balancer::with(&hosts.each_ref().map(|host| host.address), |config| {
            settings(config).timeouts.read = limit;
        })
    });
    let per_client = REQUESTS * factor() / CLIENTS;
    let [_, flaky, _, killed] = &hosts;
    let (steps, kills) = (AtomicUsize::new(0), Mutex::new(false));
    // Every so many requests, one target is killed or started again.
    let step = || {
        if steps.fetch_add(1, Ordering::SeqCst) % 500 == 499 {
            let mut is_down = kills.lock().unwrap();
            for host in [flaky, killed] {
                if *is_down { host.restart() } else { host.kill() }
            }
            *is_down = !*is_down;
        }
    };
    let (seen, hasty_posts) = thread::scope(|scope| {
        let hasty = scope.spawn(|| run_hasty_client(hasty.address, &deliveries));
        let clients: Vec<_> = (0..CLIENTS)
            .map(|client| {
                let (step, address) = (&step, balancer.address);
                scope.spawn(move || run_client(address, client, 0..per_client, step))
            })
            .collect();
        let seen: Vec<Seen> = clients.into_iter().map(|client| client.join().unwrap()).collect();
        (seen, hasty.join().unwrap())
    });
    let lost: Vec<&String> = seen.iter().flat_map(|seen| &seen.lost).collect();
    assert!(lost.is_empty(), "{lost:?}");
    let delivered = deliveries.counts.lock().unwrap();
    let posts = seen.iter().flat_map(|seen| &seen.posts);
    let twice: Vec<_> = posts
        .chain(&hasty_posts)
        .filter(|id| delivered.get(*id).is_some_and(|count| *count > 1))
        .collect();
    assert!(twice.is_empty(), "delivered more than once: {twice:?}");
    let good: usize = seen.iter().map(|seen| seen.good).sum();
    let bad: usize = seen.iter().map(|seen| seen.bad).sum();
    assert_eq!(good, balancer.events.answered.load(Ordering::SeqCst));
    assert_eq!(bad, balancer.events.failed.load(Ordering::SeqCst));
    assert_eq!(good + bad, per_client * CLIENTS);
    assert!(bad > 0, "faults met no request that may not be repeated");
    let of_hasty = format!("{HASTY}-");
    let others = delivered.iter().filter(|(id, _)| !id.starts_with(&of_hasty));
    let repeated = others.filter(|(_, count)| **count > 1).count();
    assert!(repeated > 0, "faults met no request that may be repeated");
    if factor() > 1 {
        let posts: usize = seen.iter().map(|seen| seen.posts.len()).sum();
        eprintln!("{good} answered, {bad} of {posts} POST failed, {repeated} repeated");
    }
}

#[test]
fn a_target_that_hangs_costs_a_request_one_time_out_whatever_connections_are_kept() {
    let kept = 20;
    let is_hung = Arc::new(std::sync::atomic::AtomicBool::new(false));
    let (hung, waiting) = (Arc::clone(&is_hung), Arc::new(std::sync::Barrier::new(kept)));
    let requests = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&requests);
    let host = Host::start(move |mut wire| {
        while let Ok(Some(_)) = wire.request() {
            if hung.load(Ordering::SeqCst) {
                counted.fetch_add(1, Ordering::SeqCst);
                wire.rest();
                return;
            }
            // All requests are under way at a time, so that each has a connection.
            waiting.wait();
            if wire.send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok").is_err() {
                return;
            }
        }
    });
    let mut balancer = Balancer::with(&[host.address], |config| {
        config.process.workers = Some(1);
    });
    let get = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
    let mut clients: Vec<_> = (0..kept).map(|_| balancer.client()).collect();
    for client in &mut clients {
        client.send(get).unwrap();
    }
    for client in &mut clients {
        assert_eq!(client.answer().unwrap().status(), 200);
    }
    // Until here a busy target had its time.
    balancer.reload(|config| settings(config).timeouts.read = Duration::from_millis(300));
    is_hung.store(true, Ordering::SeqCst);
    assert_eq!(clients[0].ask(get).unwrap().status(), 504);
    // It has read all that it was asked by then.
    drop(host);
    assert_eq!(requests.load(Ordering::SeqCst), 1, "it was asked again on other connections");
}

#[test]
fn an_answer_that_breaks_off_reaches_the_client_as_one_that_broke_off() {
    for (framing, part) in [
        ("Content-Length: 100", "half of it"),
        ("Transfer-Encoding: chunked", "64\r\nhalf of it"),
        ("Transfer-Encoding: chunked", "5\r\nwhole\r\n"),
    ] {
        let host = Host::start(move |mut wire| {
            wire.request().unwrap();
            wire.send(format!("HTTP/1.1 200 OK\r\n{framing}\r\n\r\n{part}")).unwrap();
        });
        let balancer = Balancer::start(&[host.address]);
        let mut client = balancer.client();
        let answer = client.ask("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
        assert!(answer.is_err(), "{framing}: {answer:?}");
    }
}

#[test]
fn a_repeated_request_has_its_whole_body_and_trailers() {
    let deliveries = Arc::new(Deliveries::default());
    let broken = Host::start(|mut wire| {
        let _ = wire.request();
    });
    let (sender, received) = std::sync::mpsc::channel();
    let sender = Mutex::new(sender);
    let whole = Host::start(move |mut wire| {
        while let Ok(Some(request)) = wire.request() {
            deliveries.record(&request);
            wire.send(answer(&request)).unwrap();
            sender.lock().unwrap().send(request).unwrap();
        }
    });
    let balancer = Balancer::start(&[broken.address, whole.address]);
    let put = "PUT / HTTP/1.1\r\nHost: a\r\nX-Id: 1\r\nTE: trailers\r\nTrailer: X-Sum\r\n\
        Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n6\r\n world\r\n0\r\nX-Sum: 7\r\n\r\n";
    for _ in 0..2 {
        assert_eq!(balancer.client().ask(put).unwrap().text(), "1 11");
        let request = received.recv().unwrap();
        assert_eq!(request.text(), "hello world");
        assert_eq!(request.trailers.to_lowercase(), "x-sum: 7\r\n");
    }
}
