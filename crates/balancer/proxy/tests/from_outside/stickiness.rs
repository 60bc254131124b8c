//! Clients that stay with their targets.

use std::time::Duration;

use uturn_lb::config::Stickiness;

use crate::support::{Balancer, Host, settings};

/// Three targets that answer with their number.
fn hosts() -> Vec<Host> {
    let answer = |number| format!("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n{number}");
    (0..3).map(|number| Host::answering(answer(number))).collect()
}

fn balancer(hosts: &[Host], stickiness: Option<Stickiness>) -> Balancer {
    let addresses: Vec<_> = hosts.iter().map(|host| host.address).collect();
    Balancer::with(&addresses, |config| {
        settings(config).rules.resize_with(1, Default::default);
        settings(config).rules[0].stickiness = stickiness;
    })
}

fn ask(balancer: &Balancer, cookie: &str) -> (String, Option<String>) {
    let request = format!("GET / HTTP/1.1\r\nHost: a\r\n{cookie}\r\n");
    let answer = balancer.client().ask(request).unwrap();
    (answer.text().to_owned(), answer.header("set-cookie").map(str::to_owned))
}

#[test]
fn without_it_targets_take_turns() {
    let hosts = hosts();
    let balancer = balancer(&hosts, None);
    let served: Vec<String> = (0..3).map(|_| ask(&balancer, "").0).collect();
    assert_eq!(served, ["0", "1", "2"]);
}

#[test]
fn a_client_stays_by_its_address_until_its_target_is_gone() {
    let hosts = hosts();
    let balancer = balancer(&hosts, Some(Stickiness::Source(Duration::from_secs(3600))));
    let (first, cookie) = ask(&balancer, "");
    assert_eq!(cookie, None);
    for _ in 0..5 {
        assert_eq!(ask(&balancer, "").0, first);
    }
    hosts[first.parse::<usize>().unwrap()].kill();
    let (second, _) = ask(&balancer, "");
    assert_ne!(second, first);
    for _ in 0..5 {
        assert_eq!(ask(&balancer, "").0, second, "it stays with the target that served it last");
    }
}

#[test]
fn a_client_stays_by_its_cookie() {
    let hosts = hosts();
    let name = "shop".into();
    let max_age = Some(Duration::from_secs(60));
    let balancer = balancer(&hosts, Some(Stickiness::Cookie { name, max_age }));
    let (first, set) = ask(&balancer, "");
    let set = set.expect("a cookie");
    assert!(set.starts_with("shop=") && set.ends_with("; Path=/; HttpOnly; Max-Age=60"), "{set}");
    let pair = set.split(';').next().unwrap();
    for _ in 0..4 {
        let (served, set) = ask(&balancer, &format!("Cookie: a=b; {pair}\r\n"));
        assert_eq!((served, set), (first.clone(), None), "it has its cookie");
    }
    let (_, set) = ask(&balancer, "Cookie: shop=forged\r\n");
    assert!(set.is_some_and(|set| set.starts_with("shop=")), "another value is replaced");
}
