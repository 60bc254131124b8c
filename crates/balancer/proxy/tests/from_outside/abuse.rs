//! Clients that take without end, and targets that give nothing.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use crate::frames::{
    CONTINUATION, DATA, END_HEADERS, END_STREAM, HEADERS, Http2, PING, RST_STREAM, SETTINGS, frame,
    get, literal,
};
use crate::support::{Balancer, Host, Wire, factor, listener, rule, settings};

const GET: &str = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";

/// What the process may gain in memory during a test; other tests run at the same time.
const GAIN: usize = 200 << 20;

/// The memory of this process, in bytes.
fn memory() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    let kilobytes: usize = line.split_whitespace().nth(1).unwrap().parse().unwrap();
    kilobytes << 10
}

/// The load balancer serves others.
fn serves(balancer: &Balancer) {
    let mut client = balancer.patient_client();
    for _ in 0..3 {
        assert_eq!(client.ask(GET).unwrap().text(), "ok");
    }
}

/// A load balancer with short time limits, in front of a target that answers.
fn short() -> (Host, Balancer) {
    let host = Host::plain();
    let balancer = Balancer::hasty(&[host.address], |config| {
        let limit = Duration::from_millis(300);
        let timeouts = &mut settings(config).timeouts;
        (timeouts.header, timeouts.read, timeouts.idle) = (limit, limit, limit);
    });
    (host, balancer)
}

#[test]
fn headers_that_come_byte_by_byte_are_cut() {
    let (_host, balancer) = short();
    let mut slow: Vec<_> = (0..50).map(|_| balancer.client()).collect();
    for client in &mut slow {
        client.send("GET / HTTP/1.1\r\nHost: a\r\n").unwrap();
    }
    // Each byte comes in time; the headers as a whole do not.
    while !slow.is_empty() {
        slow.retain_mut(|client| {
            let _ = client.stream().set_nonblocking(true);
            let is_open = client.send("X").is_ok() && !is_closed(client);
            let _ = client.stream().set_nonblocking(false);
            is_open
        });
        serves(&balancer);
    }
}

#[test]
fn bodies_that_come_byte_by_byte_are_cut() {
    let host = Host::plain();
    let balancer = Balancer::hasty(&[host.address], |config| {
        settings(config).timeouts.read = Duration::from_millis(300);
        // More than any client has.
        settings(config).limits.body_bytes_per_second = 1 << 40;
    });
    for framing in ["Content-Length: 1000000000", "Transfer-Encoding: chunked"] {
        let mut client = balancer.client();
        client.send(format!("POST / HTTP/1.1\r\nHost: a\r\n{framing}\r\n\r\n")).unwrap();
        client.stream().set_nonblocking(true).unwrap();
        // Each part comes in time; the body as a whole does not.
        while !is_closed(&mut client) && client.send("1\r\nx\r\n").is_ok() {
            serves(&balancer);
        }
        client.stream().set_nonblocking(false).unwrap();
        assert_eq!(client.answer().unwrap().status(), 408, "{framing}");
    }
    // HTTP/2 alike.
    let mut client = Http2::begin(balancer.client(), None);
    client.send(frame(HEADERS, END_HEADERS, 1, &get())).unwrap();
    let mut answer = Http2::accepted(client.clone_wire());
    let answered = thread::spawn(move || answer.receive_kind(HEADERS).unwrap().payload);
    while !answered.is_finished() {
        client.send(frame(DATA, 0, 1, b"x")).unwrap();
        serves(&balancer);
    }
    // `:status: 408`, which no table of HPACK has.
    let payload = answered.join().unwrap();
    assert!(payload.windows(3).any(|part| part == b"408" || part == HUFFMAN_408), "{payload:?}");
}

/// The digits 408 in the code of HPACK: 011010, 00000 and 011110, filled up with ones.
const HUFFMAN_408: [u8; 3] = [0b0110_1000, 0b0000_1111, 0b0111_1111];

/// Whether the other end has closed or answered.
fn is_closed(client: &mut Wire<TcpStream>) -> bool {
    let mut byte = [0];
    match client.stream().peek(&mut byte) {
        Ok(_) => true,
        Err(error) => error.kind() != std::io::ErrorKind::WouldBlock,
    }
}

#[test]
fn answers_that_are_not_read_are_cut() {
    let body = "x".repeat(50 << 20);
    let length = body.len();
    let answer = format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n{body}");
    let cut = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&cut);
    let host = Host::start(move |mut wire| {
        while let Ok(Some(_)) = wire.request() {
            if wire.send(&answer).is_err() {
                counted.fetch_add(1, Ordering::SeqCst);
                return;
            }
        }
    });
    let balancer = Balancer::hasty(&[host.address], |config| {
        settings(config).timeouts.read = Duration::from_millis(300);
    });
    let before = memory();
    let mut clients: Vec<_> = (0..10).map(|_| balancer.client()).collect();
    for client in &mut clients {
        client.send(GET).unwrap();
    }
    // A client that reads has the whole of it meanwhile.
    assert_eq!(balancer.patient_client().ask(GET).unwrap().body.len(), length);
    // The target notices that its answer is not wanted.
    while cut.load(Ordering::SeqCst) < clients.len() {
        thread::yield_now();
    }
    let gain = memory().saturating_sub(before);
    assert!(gain < GAIN, "{gain} bytes for answers that no client reads");
    for client in &mut clients {
        // Where the target was too slow for the load balancer, the client is told so.
        let is_whole = client.answer().is_ok_and(|answer| answer.body.len() == length);
        assert!(!is_whole, "the whole of it");
    }
}

#[test]
fn headers_without_end_take_no_memory() {
    let (_host, balancer) = short();
    let before = memory();
    for _ in 0..20 {
        let mut client = balancer.client();
        let mut sent = client.send("GET / HTTP/1.1\r\nHost: a\r\n");
        let line = format!("X: {}\r\n", "x".repeat(1000));
        for _ in 0..10_000 {
            if sent.is_err() {
                break;
            }
            sent = client.send(&line);
        }
        assert!(sent.is_err(), "10 MB of headers were taken");
    }
    assert!(memory().saturating_sub(before) < GAIN);
    serves(&balancer);
}

#[test]
fn half_requests_and_resets_leave_nothing_behind() {
    // On a busy machine the target may take a while to answer.
    let host = Host::plain();
    let balancer = Balancer::start(&[host.address]);
    for part in [
        "G",
        "GET / HTTP/1.1\r\nHost: a\r\nX",
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nabc",
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab",
        GET,
    ] {
        for _ in 0..100 * factor() {
            let mut client = balancer.client();
            client.send(part).unwrap();
            client.reset();
            let mut client = balancer.client();
            client.send(part).unwrap();
            client.stream().shutdown(Shutdown::Both).unwrap();
        }
        serves(&balancer);
    }
    drop(host);
    balancer.stop(Duration::from_secs(3600));
}

#[test]
fn a_target_that_never_answers_hurts_no_other() {
    let mute = Host::start(|mut wire| {
        wire.rest();
    });
    let good = Host::plain();
    let balancer = Balancer::with(&[good.address], |config| {
        config.process.workers = Some(1);
        let mut mute_rule = rule(&[mute.address]);
        mute_rule.path = Some(("/mute".into(), uturn_model::ingress::PathKind::Prefix));
        listener(config).rules.push(mute_rule);
    });
    let mut waiting: Vec<_> = (0..200).map(|_| balancer.client()).collect();
    for client in &mut waiting {
        client.send("GET /mute HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
    }
    while mute.accepted() < waiting.len() {
        serves(&balancer);
    }
    for _ in 0..100 {
        serves(&balancer);
    }
}

#[test]
fn idle_connections_cost_little() {
    let host = Host::plain();
    // One client has all of them, which may not be all that may be.
    let balancer =
        Balancer::with(&[host.address], |config| config.process.connections = Some(20_000));
    // Both ends of each connection are in this process.
    let limit = open_files();
    let count = 10_000.min((limit / 2).saturating_sub(1000));
    if count < 10_000 {
        eprintln!("{count} idle connections instead of 10,000: the limit of open files is {limit}");
    }
    let before = memory();
    let mut idle = Vec::with_capacity(count);
    for number in 0..count {
        let mut client = TcpStream::connect(balancer.address).unwrap();
        // Some have sent nothing yet, others have had an answer.
        if number % 2 == 0 {
            client.write_all(GET.as_bytes()).unwrap();
            let mut answer = [0; 1024];
            assert!(client.read(&mut answer).unwrap() > 0);
        }
        idle.push(client);
    }
    serves(&balancer);
    let gain = memory().saturating_sub(before);
    assert!(gain < GAIN, "{gain} bytes for {count} connections");
    drop(idle);
    serves(&balancer);
}

/// How many files this process may have open.
fn open_files() -> usize {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile);
    limit.current.map_or(usize::MAX, |most| usize::try_from(most).unwrap())
}

#[test]
fn streams_that_are_reset_at_once_are_refused_before_long() {
    let (_host, balancer) = short();
    let before = memory();
    let mut client = Http2::begin(balancer.client(), None);
    let mut stream = 1;
    // No more than this many are taken.
    let cut = (0..20_000).find(|_| {
        let mut bytes = frame(HEADERS, END_HEADERS | END_STREAM, stream, &get());
        bytes.extend(frame(RST_STREAM, 0, stream, &[0, 0, 0, 8]));
        stream += 2;
        client.send(bytes).is_err()
    });
    assert!(cut.is_some() || client.end().is_some(), "40,000 frames of no use");
    assert!(memory().saturating_sub(before) < GAIN);
    serves(&balancer);
}

#[test]
fn headers_that_continue_without_end_are_refused() {
    let (_host, balancer) = short();
    let before = memory();
    let mut client = Http2::begin(balancer.client(), None);
    client.send(frame(HEADERS, END_STREAM, 1, &get())).unwrap();
    let part = literal("x-flood", &"x".repeat(100)).repeat(100);
    let cut = (0..20_000).find(|_| client.send(frame(CONTINUATION, 0, 1, &part)).is_err());
    assert!(cut.is_some(), "200 MB of headers were taken");
    assert!(memory().saturating_sub(before) < GAIN);
    // The same with parts that hold nothing.
    let mut client = Http2::begin(balancer.client(), None);
    client.send(frame(HEADERS, END_STREAM, 1, &get())).unwrap();
    let cut = (0..1_000_000).find(|_| client.send(frame(CONTINUATION, 0, 1, &[])).is_err());
    assert!(cut.is_some(), "a million empty frames were taken");
    serves(&balancer);
}

#[test]
fn frames_that_want_answers_without_end_take_no_memory() {
    let (_host, balancer) = short();
    let before = memory();
    for bytes in [frame(PING, 0, 0, &[0; 8]), frame(SETTINGS, 0, 0, &[])] {
        let mut client = Http2::begin(balancer.client(), None);
        // Nothing is read, so that the answers have nowhere to go.
        let many = bytes.repeat(1000);
        let cut = (0..10_000).find(|_| client.send(&many).is_err());
        assert!(cut.is_some(), "ten million frames were answered");
    }
    assert!(memory().saturating_sub(before) < GAIN);
    serves(&balancer);
}

#[test]
fn answers_that_a_stream_has_no_room_for_are_cut() {
    let host = Host::plain();
    let balancer = Balancer::hasty(&[host.address], |config| {
        settings(config).timeouts.read = Duration::from_millis(300);
        listener(config).profile.connect_timeout = Duration::from_millis(300);
    });
    let mut client = Http2::begin(balancer.client(), Some(0));
    for stream in [1, 3, 5] {
        client.send(frame(HEADERS, END_HEADERS | END_STREAM, stream, &get())).unwrap();
    }
    let mut reset = 0;
    while reset < 3 {
        match client.receive() {
            Ok(received) if received.kind == RST_STREAM => reset += 1,
            Ok(received) => assert_ne!(received.kind, DATA),
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {
                panic!("the streams are held for ever")
            }
            Err(_) => break,
        }
    }
    serves(&balancer);
}

#[test]
fn an_http2_connection_without_requests_ends() {
    let (host, balancer) = short();
    let mut client = Http2::begin(balancer.client(), None);
    client.end();
    // The request may take its time; what follows it may not.
    let balancer = Balancer::with(&[host.address], |config| {
        settings(config).timeouts.idle = Duration::from_millis(300);
    });
    let mut client = Http2::begin(balancer.client(), None);
    client.send(frame(HEADERS, END_HEADERS | END_STREAM, 1, &get())).unwrap();
    let answer = client.receive_kind(HEADERS).unwrap();
    assert_eq!(
        (answer.stream, answer.flags & END_HEADERS, answer.payload[0]),
        (1, END_HEADERS, 0x88)
    );
    client.end();
}
