//! `OPTIONS *`: requests about a server as a whole.

use std::sync::Mutex;
use std::sync::mpsc::{Receiver, channel};

use uturn_lb::config::Forward;
use uturn_model::ingress::PathKind;

use crate::frames::{END_HEADERS, END_STREAM, HEADERS, Http2, frame};
use crate::support::{Balancer, Host, listener, rule, settings};

const ASK: &str = "OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n";

/// A target, and the first line and the host of each request that it gets.
fn target() -> (Host, Receiver<(String, String)>) {
    let (sender, asked) = channel();
    let sender = Mutex::new(sender);
    let host = Host::start(move |mut wire| {
        while let Ok(Some(request)) = wire.request() {
            let line = request.head.lines().next().unwrap().to_owned();
            let host = request.header("host").unwrap().to_owned();
            sender.lock().unwrap().send((line, host)).unwrap();
            wire.send("HTTP/1.1 204 No Content\r\nAllow: GET\r\n\r\n").unwrap();
        }
    });
    (host, asked)
}

fn asked_of(host: &str) -> (String, String) {
    ("OPTIONS * HTTP/1.1".into(), host.into())
}

#[test]
fn the_star_reaches_the_target_over_either_version() {
    let (host, asked) = target();
    let second = Balancer::start(&[host.address]);
    // HTTP/2 between the two load balancers.
    let first = Balancer::with(&[second.address], |config| {
        settings(config).rules[0].forward = Forward::H2c;
    });
    for balancer in [&second, &first] {
        let answer = balancer.client().ask(ASK).unwrap();
        assert_eq!((answer.status(), answer.header("allow")), (204, Some("GET")));
        assert_eq!(asked.recv().unwrap(), asked_of("a"));
        // `:method`, `:scheme`, `:path` and `:authority`, with names of HPACK's static table.
        let mut headers = b"\x02\x07OPTIONS\x86\x04\x01*\x01\x01a".to_vec();
        let mut client = Http2::begin(balancer.client(), None);
        client.send(frame(HEADERS, END_HEADERS | END_STREAM, 1, &headers)).unwrap();
        client.receive_kind(HEADERS).unwrap();
        assert_eq!(asked.recv().unwrap(), asked_of("a"));
        // The same with GET, which has no star.
        headers.splice(..9, [0x82]);
        client.send(frame(HEADERS, END_HEADERS | END_STREAM, 3, &headers)).unwrap();
        client.receive_kind(HEADERS).unwrap();
        assert!(asked.try_recv().is_err());
    }
}

#[test]
fn the_rule_is_that_of_the_root_of_its_host_or_of_the_default_host() {
    let (shop, asked_shop) = target();
    let (api, asked_api) = target();
    let balancer = Balancer::with(&[], |config| {
        let rules = [("shop", "/", &shop), ("api", "/v1", &api), ("api", "/", &api)];
        listener(config).rules = rules
            .map(|(host, path, target)| {
                let mut rule = rule(&[target.address]);
                rule.host = Some(host.into());
                rule.path = Some((path.into(), PathKind::Prefix));
                rule
            })
            .into();
        settings(config).default_host = Some("shop".into());
    });
    for (host, asked) in [("api", &asked_api), ("shop", &asked_shop), ("other", &asked_shop)] {
        let ask = ASK.replace("Host: a", &format!("Host: {host}"));
        assert_eq!(balancer.client().ask(ask).unwrap().status(), 204);
        assert_eq!(asked.recv().unwrap(), asked_of(host));
    }
}
