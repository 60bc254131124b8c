//! Connections to targets that serve exchanges of many kinds, one after the other.

use std::thread;

use crate::support::{Balancer, Host};

/// The answers of a target, in turns: in one piece, in pieces, of unknown length, large, and with a
/// word in between.
fn answers() -> Vec<(Vec<String>, String)> {
    let large = "l".repeat(100_000);
    let head = |length: usize| format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n");
    let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n";
    let hints = "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n";
    vec![
        (vec![head(5) + "whole"], "whole".into()),
        (vec![head(6), "pieces".into()], "pieces".into()),
        (vec![chunked.into()], "abc".into()),
        (vec![head(large.len()) + &large], large),
        (vec![hints.to_owned() + &head(4) + "late"], "late".into()),
        (vec![head(0)], String::new()),
    ]
}

#[test]
fn a_kept_connection_serves_exchanges_of_all_kinds_in_turn() {
    let host = Host::start(move |mut wire| {
        for (parts, _) in answers().iter().cycle() {
            let Ok(Some(_)) = wire.request() else { return };
            for part in parts {
                if wire.send(part).is_err() {
                    return;
                }
                thread::yield_now();
            }
        }
    });
    let balancer = Balancer::with(&[host.address], |config| config.process.workers = Some(1));
    let mut client = balancer.client();
    let requests = [
        "GET / HTTP/1.1\r\nHost: a\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc",
        "PUT / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
        "GET /?q HTTP/1.1\r\nHost: a\r\n\r\n",
        "DELETE / HTTP/1.1\r\nHost: a\r\n\r\n",
    ];
    // As many as it takes until each request has met each answer.
    let turns = requests.len() * answers().len();
    for ((_, text), request) in answers().iter().cycle().zip(requests.iter().cycle()).take(turns) {
        let mut answer = client.ask(request).unwrap();
        while answer.status() == 103 {
            answer = client.answer().unwrap();
        }
        assert_eq!(answer.status(), 200);
        assert!(answer.text() == text, "{request}: {} bytes", answer.body.len());
    }
    assert_eq!(host.accepted(), 1, "the connection was not kept");
}
