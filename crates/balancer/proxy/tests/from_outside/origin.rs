//! Who a request is from, and what it says of that itself.

use std::net::{IpAddr, SocketAddr};
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, channel};

use uturn_lb::config::{Config, Forward, ForwardedFor, ProxyVersion};
use uturn_lb::proxy_header;
use uturn_model::Origin;
use uturn_model::lb::PathNormalization;
use uturn_model::network::{SecurityGroup, SecurityRule};

use crate::frames::{DATA, END_HEADERS, END_STREAM, HEADERS, Http2, frame, literal};
use crate::support::{Balancer, Host, Message, settings};

const GET: &str = "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";

/// A target, and the requests that it gets.
fn target() -> (Host, Receiver<Message>) {
    answering("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
}

/// A target that gives this answer, and the requests that it gets.
fn answering(answer: &'static str) -> (Host, Receiver<Message>) {
    let (sender, requests) = channel();
    let sender = Mutex::new(sender);
    let host = Host::start(move |mut wire| {
        while let Ok(Some(request)) = wire.request() {
            sender.lock().unwrap().send(request).unwrap();
            if wire.send(answer).is_err() {
                return;
            }
        }
    });
    (host, requests)
}

/// Lets clients with addresses in a range not in, and all others.
fn refuse(config: &mut Config, range: &str) {
    let rule = |accept, peer: Option<&str>| SecurityRule {
        accept,
        protocol: None,
        ports: None,
        peer: peer.map(|range| range.parse().unwrap()),
        origin: Origin::file("g"),
    };
    config.security_groups = vec![SecurityGroup {
        name: "g".into(),
        inbound: vec![rule(false, Some(range)), rule(true, None)],
        outbound: Vec::new(),
        origin: Origin::file("g"),
    }];
    config.load_balancers[0].load_balancer.security_groups = vec!["g".into()];
}

#[test]
fn an_ipv4_client_of_a_proxy_header_has_one_address() {
    let (host, requests) = target();
    let balancer = Balancer::with(&[host.address], |config| {
        settings(config).proxy_from = vec!["127.0.0.0/8".parse().unwrap()];
        refuse(config, "6.6.6.0/24");
    });
    let v1 = |client: &str| format!("PROXY TCP6 {client} ::ffff:10.0.0.1 1000 80\r\n").into_bytes();
    let v2 = |client: &str| {
        // Of two families, so that both are written as IPv6.
        let client = SocketAddr::new(client.parse().unwrap(), 1000);
        proxy_header::write(ProxyVersion::V2, client, "[fd00::1]:80".parse().unwrap())
    };
    let plain = |client: &str| format!("PROXY TCP4 {client} 10.0.0.1 1000 80\r\n").into_bytes();
    for header in [
        plain("6.6.6.6"),
        v1("::ffff:6.6.6.6"),
        v1("::ffff:606:606"),
        v1("0:0:0:0:0:ffff:6.6.6.9"),
        v1("::FFFF:6.6.6.6"),
        v2("6.6.6.6"),
        v2("::ffff:6.6.6.6"),
    ] {
        let shown = String::from_utf8_lossy(&header).into_owned();
        assert_eq!(balancer.exchange(&[&header[..], GET.as_bytes()].concat()), "", "{shown}");
        assert!(requests.try_recv().is_err(), "{shown}");
    }
    for (header, address) in [
        (v1("::ffff:192.0.2.1"), "192.0.2.1"),
        (v2("192.0.2.1"), "192.0.2.1"),
        (v1("fd00::7"), "fd00::7"),
        // Not an IPv4 client: whoever has this address came by IPv6.
        (v1("::6.6.6.6"), "::606:606"),
    ] {
        let answer = balancer.exchange(&[&header[..], GET.as_bytes()].concat());
        assert!(answer.starts_with("HTTP/1.1 200 "), "{address}: {answer}");
        let asked = requests.recv().unwrap();
        assert_eq!(asked.header("x-forwarded-for"), Some(address));
        assert_eq!(asked.header("x-real-ip"), Some(address));
    }
}

#[test]
fn an_ipv4_client_of_a_socket_for_both_families_has_one_address() {
    let wrapped = |address: SocketAddr| match address.ip() {
        IpAddr::V4(ip) => IpAddr::V6(ip.to_ipv6_mapped()),
        IpAddr::V6(ip) => IpAddr::V6(ip),
    };
    let (host, requests) = target();
    let mut vip = None;
    let balancer = Balancer::with(&[host.address], |config| {
        let served = &mut config.load_balancers[0].load_balancer;
        let port = served.listeners[0].port.number();
        served.vip = wrapped(SocketAddr::new(served.vip, port));
        vip = Some(served.vip);
    });
    assert!(vip.unwrap().is_ipv6());
    assert_eq!(balancer.client().ask(GET).unwrap().status(), 200);
    assert_eq!(requests.recv().unwrap().header("x-forwarded-for"), Some("127.0.0.1"));
    drop(balancer);
    let balancer = Balancer::with(&[host.address], |config| {
        let served = &mut config.load_balancers[0].load_balancer;
        served.vip = wrapped(SocketAddr::new(served.vip, 0));
        refuse(config, "127.0.0.0/8");
    });
    assert_eq!(balancer.exchange(GET.as_bytes()), "");
}

#[test]
fn trailers_that_would_decide_do_not_pass() {
    let (host, requests) = answering(
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nConnection: X-Named\r\n\
         Trailer: X-Sum, Set-Cookie, Location, X-Named\r\n\r\n2\r\nok\r\n0\r\n\
         X-Sum: 1\r\nSet-Cookie: a=b\r\nLocation: /evil\r\nX-Named: 1\r\n\r\n",
    );
    let second = Balancer::start(&[host.address]);
    // HTTP/2 between the two load balancers: nothing but these looks at trailers.
    let first = Balancer::with(&[second.address], |config| {
        settings(config).rules[0].forward = Forward::H2c;
    });
    let request = "POST / HTTP/1.1\r\nHost: a\r\nTE: trailers\r\nConnection: TE, X-Named\r\n\
        Trailer: X-Check, X-Forwarded-For, X_Forwarded_For, X-Real-IP, Forwarded, Host, \
        Authorization, Cookie, Content-Length, X-Original-URL, X-Named\r\n\
        Transfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\
        X-Forwarded-For: 6.6.6.6\r\nX_Forwarded_For: 6.6.6.6\r\nX-Real-IP: 6.6.6.6\r\n\
        Forwarded: for=6.6.6.6\r\nHost: evil\r\nAuthorization: Basic eDp5\r\nCookie: a=b\r\n\
        Content-Length: 7\r\nX-Original-URL: /admin\r\nX-Named: 1\r\nX-Check: 2\r\n\r\n";
    for balancer in [&second, &first] {
        let answer = balancer.client().ask(request).unwrap();
        assert_eq!(answer.text(), "ok");
        assert_eq!(answer.trailers.to_lowercase(), "x-sum: 1\r\n");
        let asked = requests.recv().unwrap();
        assert_eq!(asked.text(), "hi");
        assert_eq!(asked.trailers.to_lowercase(), "x-check: 2\r\n");
    }
}

/// The status of the answer to a request with HTTP/2 that has these headers and this body; `None` if
/// its stream was reset.
fn ask_http2(balancer: &Balancer, lines: &[(&str, &str)], body: Option<&str>) -> Option<u16> {
    // `:method`, `:scheme`, `:path` and `:authority`, with names of HPACK's static table.
    let mut headers = b"\x83\x86\x84\x01\x01a".to_vec();
    headers.extend(lines.iter().flat_map(|(name, value)| literal(name, value)));
    let end = if body.is_none() { END_STREAM } else { 0 };
    let mut client = Http2::begin(balancer.client(), None);
    client.send(frame(HEADERS, END_HEADERS | end, 1, &headers)).unwrap();
    if let Some(body) = body {
        client.send(frame(DATA, END_STREAM, 1, body.as_bytes())).unwrap();
    }
    loop {
        let received = client.receive().unwrap();
        match received.kind {
            HEADERS if received.payload[0] == 0x88 => return Some(200),
            HEADERS if received.payload[0] == 0x8c => return Some(400),
            crate::frames::RST_STREAM | crate::frames::GOAWAY => return None,
            _ => {}
        }
    }
}

#[test]
fn a_request_of_http2_has_one_length() {
    let (host, requests) = target();
    let balancer = Balancer::with(&[host.address], |config| config.process.workers = Some(1));
    let length = |value| ("content-length", value);
    assert_eq!(ask_http2(&balancer, &[length("3"), length("3")], Some("abc")), Some(200));
    let asked = requests.recv().unwrap();
    assert_eq!(asked.head.to_lowercase().matches("content-length").count(), 1, "{}", asked.head);
    assert_eq!(asked.text(), "abc");
    for (lines, body) in [
        (vec![length("3"), length("4")], Some("abc")),
        (vec![length("3"), length("03")], Some("abc")),
        (vec![length("3, 3")], Some("abc")),
        (vec![length("+3")], Some("abc")),
        (vec![length("4")], Some("abc")),
        (vec![length("3")], None),
        (vec![length("0"), length("3")], None),
        (vec![length("99999999999999999999")], Some("abc")),
    ] {
        assert_ne!(ask_http2(&balancer, &lines, body), Some(200), "{lines:?}");
        // What the target was sent before it broke off is no request of the next client.
        while let Ok(asked) = requests.try_recv() {
            assert_eq!(asked.text(), "", "{lines:?}");
        }
    }
    assert_eq!(balancer.client().ask(GET).unwrap().status(), 200);
}

#[test]
fn an_answer_that_is_coded_or_has_two_lengths_is_none() {
    for answer in [
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\nConnection: close\r\n\r\nabc",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n1\r\na\r\n0\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: identity\r\nContent-Length: 1\r\n\r\na",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n\
         1\r\na\r\n0\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked, chunked\r\n\r\n1\r\na\r\n0\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n\
         1\r\na\r\n0\r\n\r\n",
        "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\na",
    ] {
        let (host, _requests) = answering(answer);
        let balancer = Balancer::with(&[host.address], |config| config.process.workers = Some(1));
        let mut client = balancer.client();
        for _ in 0..2 {
            let asked = client.ask("GET / HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
            assert_eq!((asked.status(), asked.text()), (502, "502 Bad Gateway\n"), "{answer}");
        }
        assert_eq!(host.accepted(), 2, "{answer}");
    }
    let twice = "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\na";
    let (host, _requests) = answering(twice);
    let balancer = Balancer::start(&[host.address]);
    let answer = balancer.client().ask(GET).unwrap();
    assert_eq!((answer.status(), answer.text()), (200, "a"));
    assert_eq!(answer.head.to_lowercase().matches("content-length").count(), 1);
}

/// The headers of a request that say who asked, and how, as a target gets them.
fn told(asked: &Message) -> Vec<String> {
    let says = ["forwarded", "x-", "true-client-ip", "x_"];
    let lines = asked.head.lines().skip(1).map(str::to_lowercase);
    let mut lines: Vec<String> =
        lines.filter(|line| says.iter().any(|name| line.starts_with(name))).collect();
    lines.sort();
    lines
}

#[test]
fn what_a_request_says_of_proxies_is_completed_or_replaced() {
    let (host, requests) = target();
    let start = |how, normalization| {
        Balancer::with(&[host.address], |config| {
            settings(config).forwarded_for = how;
            crate::support::listener(config).profile.path_normalization = normalization;
        })
    };
    let append = start(ForwardedFor::Append, PathNormalization::Off);
    let replace = start(ForwardedFor::Replace, PathNormalization::Merge);
    let own = |balancer: &Balancer, address: &str| {
        vec![
            format!("x-forwarded-for: {address}"),
            format!("x-forwarded-port: {}", balancer.address.port()),
            "x-forwarded-proto: http".into(),
            "x-real-ip: 127.0.0.1".into(),
        ]
    };
    let ask = |balancer: &Balancer, lines: &str| {
        let request =
            format!("GET / HTTP/1.1\r\nHost: shop:80\r\nConnection: close\r\n{lines}\r\n");
        assert_eq!(balancer.client().ask(request).unwrap().status(), 200, "{lines}");
        told(&requests.recv().unwrap())
    };
    let element = "for=127.0.0.1;host=\"shop:80\";proto=http";
    let rows: &[(&str, &[String])] = &[
        ("", &[]),
        ("X_Forwarded_For: 6.6.6.6\r\nX-Forwarded_Host: evil\r\nX_Forwarded-Other: 1\r\n", &[]),
        (
            "Forwarded: for=6.6.6.6;host=evil\r\n",
            &[format!("forwarded: for=6.6.6.6;host=evil, {element}")],
        ),
        (
            "Forwarded: for=1.1.1.1\r\nForwarded: for=\"[fd00::1]\"\r\n",
            &[format!("forwarded: for=1.1.1.1, for=\"[fd00::1]\", {element}")],
        ),
        // What is added would stand inside the quotes.
        ("Forwarded: for=\"6.6.6.6\r\n", &[format!("forwarded: {element}")]),
        ("Forwarded: for=\"6.6.6.6\\\"\r\n", &[format!("forwarded: {element}")]),
        ("X-Forwarded-Host: evil\r\n", &["x-forwarded-host: shop:80".into()]),
        ("X-Forwarded-Prefix: /x\r\n", &["x-forwarded-prefix: /x".into()]),
        (
            "True-Client-IP: 6.6.6.6\r\nX-Client-IP: 6.6.6.6\r\n",
            &["true-client-ip: 6.6.6.6".into(), "x-client-ip: 6.6.6.6".into()],
        ),
    ];
    for (lines, added) in rows {
        let mut expected = [own(&append, "127.0.0.1"), added.to_vec()].concat();
        expected.sort();
        assert_eq!(ask(&append, lines), expected, "{lines}");
        assert_eq!(ask(&replace, lines), own(&replace, "127.0.0.1"), "{lines}");
    }
    let list = "X-Forwarded-For: 1.1.1.1\r\nX-Forwarded-For: 6.6.6.6\r\n";
    assert_eq!(ask(&append, list), own(&append, "1.1.1.1, 6.6.6.6, 127.0.0.1"));
    assert_eq!(ask(&replace, list), own(&replace, "127.0.0.1"));
    // Frameworks would take these for the path and the method, which no rule has seen.
    let other =
        "X-Original-URL: /admin\r\nX_Rewrite_URL: /admin\r\nX-HTTP-Method-Override: PUT\r\n";
    assert_eq!(ask(&append, other).len(), own(&append, "").len() + 3);
    assert_eq!(ask(&replace, other), own(&replace, "127.0.0.1"));
    // Credentials were there when the request was judged.
    let request = "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nAuthorization: Basic eDp5\r\n\
        Cookie: a=b\r\n\r\n";
    for balancer in [&append, &replace] {
        balancer.client().ask(request).unwrap();
        let asked = requests.recv().unwrap();
        assert_eq!(asked.header("authorization"), Some("Basic eDp5"));
        assert_eq!((asked.header("cookie"), asked.header("host")), (Some("a=b"), Some("a")));
    }
}
