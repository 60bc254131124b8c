//! Paths that a target may read as others: which rule serves them, and what the target gets.

use std::sync::Mutex;
use std::sync::mpsc::{Receiver, channel};

use uturn_lb::config::Forward;
use uturn_model::ingress::PathKind;
use uturn_model::lb::PathNormalization;

use crate::common;
use crate::frames::{DATA, END_HEADERS, END_STREAM, HEADERS, Http2, frame};
use crate::support::{Balancer, Host, listener, settings};

/// A load balancer with a rule for `/admin`, whose target is the first, and one for all else.
struct Stage {
    balancer: Balancer,
    _hosts: [Host; 2],
    /// The target of the rule, and the path that it was asked for.
    asked: Receiver<(&'static str, String)>,
}

impl Stage {
    fn new(how: PathNormalization, forward: Forward) -> Self {
        let (sender, asked) = channel();
        let sender = Mutex::new(sender);
        let host = |name: &'static str| {
            let sender = Mutex::new(sender.lock().unwrap().clone());
            Host::start(move |mut wire| {
                while let Ok(Some(request)) = wire.request() {
                    let path = request.head.split(' ').nth(1).unwrap().to_owned();
                    sender.lock().unwrap().send((name, path)).unwrap();
                    wire.send("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").unwrap();
                }
            })
        };
        let hosts = [host("admin"), host("other")];
        let balancer = Balancer::with(&[], |config| {
            let rule = |path, host: &Host| common::rule(None, path, &[host.address]);
            let listener = listener(config);
            listener.profile.path_normalization = how;
            listener.rules = vec![rule("/admin", &hosts[0]), rule("/", &hosts[1])];
            let mut script = rule("~ \\.php$", &hosts[0]);
            script.path.as_mut().unwrap().1 = PathKind::ImplementationSpecific;
            listener.rules.push(script);
            let usual = settings(config).rules[0].clone();
            settings(config).rules = vec![usual; 3];
            settings(config).rules[0].forward = forward;
        });
        Self { balancer, _hosts: hosts, asked }
    }

    /// Sends a request with HTTP/1.1. Returns the target and what it was asked for, or the status.
    fn ask(&self, target: &str) -> String {
        let request = format!("GET {target} HTTP/1.1\r\nHost: a\r\n\r\n");
        let status = self.balancer.client().ask(request).unwrap().status();
        self.told(status)
    }

    /// The same with HTTP/2.
    fn ask_http2(&self, path: &str) -> String {
        // `:method`, `:scheme`, `:path` and `:authority`, with names of HPACK's static table.
        let mut headers = vec![0x82, 0x86, 0x04, u8::try_from(path.len()).unwrap()];
        headers.extend(path.bytes());
        headers.extend([0x01, 1, b'a']);
        let mut client = Http2::begin(self.balancer.client(), None);
        client.send(frame(HEADERS, END_HEADERS | END_STREAM, 1, &headers)).unwrap();
        let answer = client.receive_kind(HEADERS).unwrap();
        // 200 and 400 stand in HPACK's static table.
        let status = if answer.payload[0] == 0x88 { 200 } else { 400 };
        if status == 400 {
            assert_eq!(answer.payload[0], 0x8c);
            client.receive_kind(DATA).unwrap();
        }
        self.told(status)
    }

    fn told(&self, status: u16) -> String {
        match status {
            200 => {
                let (name, path) = self.asked.recv().unwrap();
                format!("{name} {path}")
            }
            status => {
                assert!(self.asked.try_recv().is_err());
                status.to_string()
            }
        }
    }
}

#[test]
fn a_path_meets_its_rule_however_it_is_written() {
    let stage = Stage::new(PathNormalization::Merge, Forward::Http1);
    for (sent, expected) in [
        ("/admin", "admin /admin"),
        ("/admin?x=/../y", "admin /admin?x=/../y"),
        ("//admin", "admin /admin"),
        ("/./admin", "admin /admin"),
        ("/%61dmin", "admin /admin"),
        ("/%61dmin?q=%61//", "admin /admin?q=%61//"),
        ("/x/%2e%2e/admin", "admin /admin"),
        ("/x/../admin/", "admin /admin/"),
        ("/../admin", "admin /admin"),
        ("/admin/../x", "other /x"),
        ("/adm%69n/x", "admin /admin/x"),
        ("///%2e//admin", "admin /admin"),
        ("/a/b/../../admin", "admin /admin"),
        ("/x/%2E./admin", "admin /admin"),
        ("/%2e%2e%2fadmin", "400"),
        ("/admin/..;/x", "400"),
        ("/;/admin", "400"),
        ("/%u0061dmin", "400"),
        ("/admin%09", "400"),
        ("/%c0%ae%c0%ae/admin", "400"),
        ("/\\admin", "400"),
        ("/x/..\\admin", "400"),
        ("/%5cadmin", "400"),
        ("/%2fadmin", "400"),
        ("/x%2f..%2fadmin", "400"),
        ("/%2561dmin", "400"),
        ("/admin;x", "400"),
        ("/x/..;/admin", "400"),
        ("/admin%00", "400"),
        ("/%c0%afadmin", "400"),
        ("/x.php;a", "400"),
        ("/x%2ephp", "admin /x.php"),
        ("/a%2fb", "other /a%2Fb"),
        ("/caf%c3%a9;v=1?x", "other /caf%C3%A9;v=1?x"),
    ] {
        assert_eq!(stage.ask(sent), expected, "{sent}");
        assert_eq!(stage.ask(&format!("http://a{sent}")), expected, "http://a{sent}");
        assert_eq!(stage.ask_http2(sent), expected, "HTTP/2: {sent}");
    }
    assert_eq!(stage.ask("http://a"), "other /");
    assert_eq!(stage.ask("http://a?x=1"), "other /?x=1");
}

#[test]
fn a_path_is_refused_that_is_not_in_its_normal_form_where_that_is_asked_for() {
    let stage = Stage::new(PathNormalization::Reject, Forward::Http1);
    for (sent, expected) in [
        ("/admin", "admin /admin"),
        ("/caf%c3%a9", "other /caf%C3%A9"),
        ("//admin", "400"),
        ("/./admin", "400"),
        ("/%61dmin", "400"),
        ("/x/..", "400"),
        ("/a%2fb", "400"),
        ("/a\\b", "400"),
        ("/admin;x", "400"),
        ("/page;x", "other /page;x"),
    ] {
        assert_eq!(stage.ask(sent), expected, "{sent}");
        assert_eq!(stage.ask_http2(sent), expected, "HTTP/2: {sent}");
    }
}

#[test]
fn paths_are_as_they_were_sent_where_that_is_asked_for() {
    let stage = Stage::new(PathNormalization::Off, Forward::Http1);
    for (sent, expected) in [
        ("/admin", "admin /admin"),
        ("//admin", "other //admin"),
        ("/x/../admin", "other /x/../admin"),
        ("/%2fadmin", "other /%2fadmin"),
        ("/%zz", "other /%zz"),
    ] {
        assert_eq!(stage.ask(sent), expected, "{sent}");
        assert_eq!(stage.ask_http2(sent), expected, "HTTP/2: {sent}");
    }
}

#[test]
fn a_redirect_keeps_the_path_by_which_its_rule_was_found() {
    let balancer = Balancer::with(&[], |config| {
        let listener = listener(config);
        listener.profile.path_normalization = PathNormalization::Merge;
        listener.rules[0].redirect = Some(uturn_model::lb::Redirect {
            code: 302,
            tls: true,
            host: None,
            port: uturn_model::Port::new(443).unwrap(),
            path: None,
        });
    });
    let answer = balancer.client().ask("GET //x/%2e./y?a=// HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
    assert_eq!(answer.header("location"), Some("https://a/y?a=//"));
}

#[test]
fn a_target_behind_http2_gets_the_path_by_which_its_rule_was_found() {
    let last = Stage::new(PathNormalization::Off, Forward::Http1);
    let first = Balancer::with(&[last.balancer.address], |config| {
        listener(config).profile.path_normalization = PathNormalization::Merge;
        settings(config).rules[0].forward = Forward::H2c;
    });
    let request = "GET /x//../%61dmin?q HTTP/1.1\r\nHost: a\r\n\r\n";
    assert_eq!(first.client().ask(request).unwrap().status(), 200);
    assert_eq!(last.asked.recv().unwrap(), ("admin", "/admin?q".to_owned()));
}
