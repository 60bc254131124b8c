//! Changes of the configuration under load, and the end.

use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use uturn_lb::config::CertificateFiles;
use uturn_model::lb::{ListenerProtocol, PassiveCheck};

use crate::common::{health, tls, unused_address};
use crate::support::{Balancer, Host, Wire, factor, listener, rule, settings};

const GET: &str = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
const RELOADS: usize = 100;

/// A folder that goes away with the test.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let number = NEXT.fetch_add(1, Ordering::SeqCst);
        let name = format!("uturn-from-outside-{}-{number}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&folder).unwrap();
        Self(folder)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn certificate(folder: &Path, name: &str) -> CertificateFiles {
    let made = rcgen::generate_simple_self_signed([name.to_owned()]).unwrap();
    let [certificate, key] = ["crt", "key"].map(|end| folder.join(format!("{name}.{end}")));
    std::fs::write(&certificate, made.cert.pem()).unwrap();
    std::fs::write(&key, made.signing_key.serialize_pem()).unwrap();
    CertificateFiles { certificate, key }
}

/// Asks again and again, on kept and on new connections, until told to stop. Returns the number of
/// answers.
fn ask_until(address: SocketAddr, is_over: &AtomicBool, requests: &AtomicUsize) -> usize {
    let mut answers = 0;
    while !is_over.load(Ordering::SeqCst) {
        let mut client = Wire::connect(address).unwrap();
        for _ in 0..5 {
            let answer = client.ask(GET).unwrap();
            assert_eq!((answer.status(), answer.text()), (200, "ok"));
            answers += 1;
            requests.fetch_add(1, Ordering::SeqCst);
        }
    }
    answers
}

#[test]
fn reloads_under_load_are_seen_by_no_client() {
    let hosts: Vec<Host> = (0..4).map(|_| Host::plain()).collect();
    let targets: Vec<_> = hosts.iter().map(|host| host.address).collect();
    let check = health::check(Duration::from_millis(20), 1);
    let mut balancer = Balancer::start(&targets);
    let (is_over, requests) = (AtomicBool::new(false), AtomicUsize::new(0));
    let address = balancer.address;
    let extra = unused_address().port();
    thread::scope(|scope| {
        let clients: Vec<_> =
            (0..4).map(|_| scope.spawn(|| ask_until(address, &is_over, &requests))).collect();
        for reload in 0..RELOADS * factor() {
            // Some requests are answered between two reloads.
            let before = requests.load(Ordering::SeqCst);
            balancer.reload(|config| {
                let first = reload % targets.len();
                let config_of_listener = listener(config);
                let some = [targets[first], targets[(first + 1) % targets.len()]];
                config_of_listener.rules = match reload % 3 {
                    0 => vec![rule(&targets)],
                    1 => vec![rule(&some)],
                    _ => {
                        let mut other = rule(&some);
                        other.host = Some("other.example.com".into());
                        vec![other, rule(&some[..1])]
                    }
                };
                config_of_listener.profile.health_check = (reload % 2 == 0).then(|| check.clone());
                config_of_listener.profile.passive_check = (reload % 5 == 0)
                    .then(|| PassiveCheck { failures: 3, rest: Duration::from_secs(10) });
                // A listener comes and goes.
                let listeners = &mut config.load_balancers[0].load_balancer.listeners;
                if reload % 2 == 0 {
                    let mut another = listeners[0].clone();
                    another.port = uturn_model::Port::new(extra).unwrap();
                    listeners.push(another);
                } else {
                    listeners.truncate(1);
                }
            });
            while requests.load(Ordering::SeqCst) < before + 20
                && clients.iter().all(|client| !client.is_finished())
            {
                thread::yield_now();
            }
        }
        is_over.store(true, Ordering::SeqCst);
        let answers: usize = clients.into_iter().map(|client| client.join().unwrap()).sum();
        assert_eq!(balancer.events.answered.load(Ordering::SeqCst), answers);
        assert_eq!(balancer.events.failed.load(Ordering::SeqCst), 0);
    });
}

#[test]
fn certificates_change_under_load() {
    let folder = Folder::new();
    let certificates = ["a.example.com", "b.example.com"].map(|name| certificate(&folder.0, name));
    let host = Host::plain();
    let mut balancer = Balancer::with(&[host.address], |config| {
        listener(config).protocol = ListenerProtocol::Https;
        settings(config).certificates = certificates[..1].to_vec();
    });
    let is_over = AtomicBool::new(false);
    let address = balancer.address;
    thread::scope(|scope| {
        let clients: Vec<_> = (0..2)
            .map(|_| {
                scope.spawn(|| {
                    while !is_over.load(Ordering::SeqCst) {
                        let stream = TcpStream::connect(address).unwrap();
                        let mut client = Wire::over(tls::connect(stream));
                        for _ in 0..3 {
                            assert_eq!(client.ask(GET).unwrap().status(), 200);
                        }
                    }
                })
            })
            .collect();
        for reload in 0..RELOADS * factor() {
            balancer.reload(|config| {
                settings(config).certificates = vec![certificates[reload % 2].clone()];
            });
            // A client that comes after the reload has the new certificate at once.
            let stream = TcpStream::connect(address).unwrap();
            let mut client = Wire::over(tls::connect(stream));
            assert_eq!(client.ask(GET).unwrap().status(), 200);
        }
        is_over.store(true, Ordering::SeqCst);
        for client in clients {
            client.join().unwrap();
        }
    });
    assert_eq!(balancer.events.failed.load(Ordering::SeqCst), 0);
}

#[test]
fn a_target_that_was_dead_is_picked_when_its_health_is_not_checked_any_more() {
    let (dead, alive) = (Host::plain(), Host::plain());
    let check = health::check(Duration::from_millis(10), 1);
    dead.kill();
    let mut balancer = Balancer::with(&[dead.address, alive.address], |config| {
        listener(config).profile.health_check = Some(check);
    });
    while balancer.events.dead.load(Ordering::SeqCst) == 0 {
        thread::yield_now();
    }
    balancer.reload(|config| listener(config).profile.health_check = None);
    dead.restart();
    let before = dead.accepted();
    let mut client = balancer.client();
    for _ in 0..4 {
        assert_eq!(client.ask(GET).unwrap().status(), 200);
    }
    assert!(dead.accepted() > before, "it stays dead for good");
}

/// A target whose answers wait for a word of the test's.
fn gated() -> (Host, std::sync::mpsc::Receiver<()>, std::sync::mpsc::Sender<()>) {
    let (arrived, arrivals) = channel();
    let (go, goes) = channel();
    let (arrived, goes) = (std::sync::Mutex::new(arrived), std::sync::Mutex::new(goes));
    let host = Host::start(move |mut wire| {
        while let Ok(Some(_)) = wire.request() {
            let _ = arrived.lock().unwrap().send(());
            if goes.lock().unwrap().recv().is_err() {
                return;
            }
            let _ = wire.send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
        }
    });
    (host, arrivals, go)
}

#[test]
fn connections_of_a_removed_listener_go_on() {
    let (host, arrivals, go) = gated();
    let mut balancer = Balancer::start(&[host.address]);
    let mut kept = balancer.client();
    kept.send(GET).unwrap();
    arrivals.recv().unwrap();
    let port = unused_address().port();
    balancer.reload(|config| listener(config).port = uturn_model::Port::new(port).unwrap());
    // The workers take commands one after the other; the new listener is the latest.
    while let Ok(mut client) = Wire::connect(balancer.address) {
        // It was accepted before the socket was closed, so it is served; or it is cut.
        let _ = client.send("GET");
    }
    go.send(()).unwrap();
    assert_eq!(kept.answer().unwrap().text(), "ok");
    go.send(()).unwrap();
    assert_eq!(kept.ask(GET).unwrap().text(), "ok", "the connection is open still");
}

#[test]
fn a_stop_lets_answers_end_and_takes_no_more() {
    let (host, arrivals, go) = gated();
    let balancer = Balancer::with(&[host.address], |config| {
        let timeouts = &mut settings(config).timeouts;
        (timeouts.header, timeouts.idle) = (Duration::from_secs(3600), Duration::from_secs(3600));
    });
    let address = balancer.address;
    let (mut busy, mut idle, mut mute) = (balancer.client(), balancer.client(), balancer.client());
    busy.send(GET).unwrap();
    arrivals.recv().unwrap();
    go.send(()).unwrap();
    assert_eq!(busy.answer().unwrap().text(), "ok");
    go.send(()).unwrap();
    assert_eq!(idle.ask(GET).unwrap().text(), "ok");
    arrivals.recv().unwrap();
    busy.send(GET).unwrap();
    arrivals.recv().unwrap();
    let stopping = thread::spawn(move || balancer.stop(Duration::from_secs(3600)));
    assert_eq!(idle.rest(), "", "an idle connection is closed");
    assert_eq!(mute.rest(), "", "and so is one that has sent nothing");
    while Wire::connect(address).is_ok() {}
    go.send(()).unwrap();
    let answer = busy.answer().unwrap();
    assert_eq!(answer.text(), "ok");
    assert_eq!(busy.rest(), "");
    stopping.join().unwrap();
}

#[test]
fn a_stop_cuts_what_is_open_at_its_deadline() {
    let (host, arrivals, _go) = gated();
    let balancer = Balancer::start(&[host.address]);
    let mut client = balancer.client();
    client.send(GET).unwrap();
    arrivals.recv().unwrap();
    balancer.stop(Duration::from_millis(1));
    assert_eq!(client.rest(), "");
}

#[test]
fn a_reload_that_cannot_be_done_changes_nothing() {
    let host = Host::plain();
    let mut balancer = Balancer::start(&[host.address]);
    let nowhere = Folder::new().0.join("none.crt");
    let mut config = balancer.config.clone();
    listener(&mut config).protocol = ListenerProtocol::Https;
    settings(&mut config).certificates =
        vec![CertificateFiles { certificate: nowhere.clone(), key: nowhere }];
    assert!(balancer.try_reload(&config).is_err());
    assert_eq!(balancer.client().ask(GET).unwrap().text(), "ok");
    balancer.reload(|_| ());
    assert_eq!(balancer.client().ask(GET).unwrap().text(), "ok");
}
