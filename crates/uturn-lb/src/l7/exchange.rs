//! One client's connection: a request in, a target picked, an answer out.

use std::io::{self, BufReader, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rustls::ServerConfig;
use socket2::{Domain, Socket, Type};
use uturn_model::lb::{Layer, Listener, ListenerProtocol, Profile, Rule};

use super::connect::{NoTarget, connect};
use super::event::Event;
use super::tls;
use crate::decide::Choice;
use crate::health::PassiveHealth;
use crate::http::{BadHead, Body, Head};
use crate::rules;

/// How long a side may say nothing in the middle of an exchange.
const SILENCE: Duration = Duration::from_secs(60);

/// How long what a client still sends is read after it was turned away, so that it gets to
/// read the answer before its connection is cut.
const FAREWELL: Duration = Duration::from_millis(500);

/// A listener with the turn each of its rules is at, and its targets' health.
#[derive(Debug)]
pub(crate) struct Service {
    pub(crate) address: SocketAddr,
    protocol: ListenerProtocol,
    profile: Profile,
    rules: Vec<Rule>,
    turns: Vec<AtomicU64>,
    /// For each rule, whether each of its targets is alive.
    alive: Vec<Arc<[AtomicBool]>>,
    /// For each rule, how each of its targets bears up.
    stamina: Vec<Vec<Mutex<PassiveHealth>>>,
    /// Where it ends TLS.
    tls: Option<Arc<ServerConfig>>,
}

impl Service {
    pub(crate) fn new(
        address: SocketAddr,
        listener: &Listener,
        alive: Vec<Arc<[AtomicBool]>>,
        tls: Option<Arc<ServerConfig>>,
    ) -> Self {
        let Listener { protocol, profile, rules, .. } = listener.clone();
        let turns = rules.iter().map(|_| AtomicU64::new(0)).collect();
        let fresh = |rule: &Rule| rule.targets.iter().map(|_| Mutex::default()).collect();
        let stamina = rules.iter().map(fresh).collect();
        Self { address, protocol, profile, rules, turns, alive, stamina, tls }
    }

    /// Which targets of a rule may be picked now.
    fn fit(&self, rule: usize) -> Vec<bool> {
        let now = Instant::now();
        let pairs = self.alive[rule].iter().zip(&self.stamina[rule]);
        let fit = |(alive, stamina): (&AtomicBool, &Mutex<PassiveHealth>)| {
            alive.load(Ordering::Relaxed) && !locked(stamina).rests(now)
        };
        pairs.map(fit).collect()
    }
}

/// A panic elsewhere leaves counts behind that are as good as any.
fn locked(stamina: &Mutex<PassiveHealth>) -> MutexGuard<'_, PassiveHealth> {
    stamina.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A connection from a client.
pub(crate) struct Exchange<'a> {
    pub(crate) service: &'a Service,
    pub(crate) connection: u64,
    pub(crate) client: SocketAddr,
    pub(crate) report: &'a (dyn Fn(&Event) + Sync),
}

/// An answer of the load balancer's own.
struct OwnAnswer {
    status: u16,
    why: String,
    /// Where the client is to ask instead.
    location: Option<String>,
}

impl OwnAnswer {
    fn new(status: u16, why: impl Into<String>) -> Self {
        Self { status, why: why.into(), location: None }
    }

    fn elsewhere(status: u16, location: String) -> Self {
        Self { status, why: String::new(), location: Some(location) }
    }
}

impl Exchange<'_> {
    pub(crate) fn run(&self, client: TcpStream) {
        if let Err(error) = self.serve_by_protocol(client) {
            self.failed(None, error.to_string());
        }
    }

    fn serve_by_protocol(&self, client: TcpStream) -> io::Result<()> {
        client.set_nodelay(true)?;
        client.set_read_timeout(Some(SILENCE))?;
        let Some(tls) = &self.service.tls else { return self.answer(&client.into()) };
        let speaks_tls = tls::is_spoken(&client)?;
        let client = Socket::from(client);
        match (self.service.protocol.layer(), speaks_tls) {
            (Layer::L7, true) => self.answer_under(tls, &client),
            (Layer::L4, true) => self.pass_on(tls, &client),
            (Layer::L7, false) => {
                let is_sent = send_answer(&OwnAnswer::new(400, ""), &client).is_ok();
                self.failed(is_sent.then_some(400), "the client does not speak TLS".into());
                Ok(())
            }
            // Its bytes are not read, so the connection is cut.
            (Layer::L4, false) => Err(io::Error::other("the client does not speak TLS")),
        }
    }

    /// Layer 7 under TLS: what comes out of it is served as if it had come in the clear.
    fn answer_under(&self, tls: &Arc<ServerConfig>, client: &Socket) -> io::Result<()> {
        let (ours, theirs) = Socket::pair(Domain::UNIX, Type::STREAM, None)?;
        thread::scope(|scope| {
            let served = thread::Builder::new().spawn_scoped(scope, move || self.answer(&ours))?;
            let passed = tls::pass(tls, client, &theirs);
            // The client sends nothing more: this ends the other thread's reads.
            let _ = theirs.shutdown(Shutdown::Both);
            let served = served.join().unwrap_or(Ok(()));
            passed.and(served)
        })
    }

    /// Layer 4 under TLS: a target is picked for the connection, and no other is tried after it.
    fn pass_on(&self, tls: &Arc<ServerConfig>, client: &Socket) -> io::Result<()> {
        let reached = match self.service.rules.is_empty() {
            true => Err(OwnAnswer::new(503, "no rule")),
            false => self.reach(0),
        };
        match reached {
            Ok((target, upstream)) => {
                tls::pass(tls, client, &upstream)?;
                let connection = self.connection;
                (self.report)(&Event::Passed { connection, target });
                Ok(())
            }
            // There is no way to say why on layer 4.
            Err(own) => {
                self.failed(None, own.why);
                Ok(())
            }
        }
    }

    fn answer(&self, stream: &Socket) -> io::Result<()> {
        stream.set_read_timeout(Some(SILENCE))?;
        stream.set_write_timeout(Some(SILENCE))?;
        let mut from_client = BufReader::new(stream);
        let answer = match Head::read(&mut from_client) {
            Ok(head) => self.serve(head, &mut from_client, stream),
            Err(BadHead::Nothing) => return Ok(()),
            Err(BadHead::Io(error)) => return Err(error),
            Err(BadHead::Malformed(why)) => Err(OwnAnswer::new(400, why)),
            Err(BadHead::TooLong) => Err(OwnAnswer::new(431, "a head longer than 64 KiB")),
        };
        match answer {
            Ok(()) => Ok(()),
            Err(own) => {
                let is_sent = send_answer(&own, stream).is_ok();
                match own.location {
                    Some(location) if is_sent => (self.report)(&Event::Redirected {
                        connection: self.connection,
                        status: own.status,
                        location,
                    }),
                    _ => self.failed(is_sent.then_some(own.status), own.why),
                }
                Ok(())
            }
        }
    }

    fn serve(
        &self,
        mut head: Head,
        from_client: &mut BufReader<&Socket>,
        client: &Socket,
    ) -> Result<(), OwnAnswer> {
        let malformed = |why: &str| OwnAnswer::new(400, why);
        let body = head.body(Body::NONE).map_err(malformed)?;
        let request = head.request().map_err(malformed)?;
        let is_head = request.method == "HEAD";
        let rule = rules::position(&self.service.rules, request.host, request.path)
            .ok_or_else(|| OwnAnswer::new(404, "no rule for this host and path"))?;
        if let Some(redirect) = &self.service.rules[rule].redirect {
            let location = redirect.location(request.host, request.path);
            return Err(OwnAnswer::elsewhere(redirect.code, location));
        }
        let (target, upstream) = self.reach(rule)?;
        head.closing();
        head.append("X-Forwarded-For", &self.client.ip().to_string());
        let status = relay(&head, body, is_head, from_client, client, &upstream)
            .map_err(|error| OwnAnswer::new(502, format!("{target} broke off: {error}")))?;
        (self.report)(&Event::Answered { connection: self.connection, target, status });
        Ok(())
    }

    /// Connects to the target whose turn it is, or to the next that answers.
    fn reach(&self, rule: usize) -> Result<(SocketAddr, Socket), OwnAnswer> {
        let Service { profile, rules, turns, address: listener, .. } = self.service;
        let targets = &rules[rule].targets;
        let alive = self.service.fit(rule);
        let choice = Choice::new(profile, targets, &alive, self.client.ip());
        let turn = turns[rule].fetch_add(1, Ordering::Relaxed);
        let first =
            choice.pick(turn).ok_or_else(|| OwnAnswer::new(503, "no target may be picked"))?;
        (self.report)(&Event::Pick {
            connection: self.connection,
            client: self.client,
            listener: *listener,
            target: targets[first].address,
            turn,
        });
        let mut tried = vec![first];
        let mut at = first;
        loop {
            let tried_now = self.try_target(targets[at].address, profile);
            self.learn(rule, at, tried_now.is_ok());
            let failure = match tried_now {
                Ok(upstream) => return Ok((targets[at].address, upstream)),
                Err(failure) => failure,
            };
            at = choice.next(&tried).ok_or(failure)?;
            tried.push(at);
        }
    }

    /// Passive checking: a target that fails too often is left alone.
    fn learn(&self, rule: usize, target: usize, good: bool) {
        let Some(check) = &self.service.profile.passive_check else { return };
        let stamina = &self.service.stamina[rule][target];
        if locked(stamina).record(good, check, Instant::now()) {
            let target = self.service.rules[rule].targets[target].address;
            (self.report)(&Event::Resting { listener: self.service.address, target });
        }
    }

    fn try_target(&self, target: SocketAddr, profile: &Profile) -> Result<Socket, OwnAnswer> {
        let connection = self.connection;
        let patience = match self.service.protocol.layer() {
            Layer::L7 => profile.connect_timeout,
            Layer::L4 => SILENCE,
        };
        connect(target, &profile.source, self.client.ip(), patience).map_err(
            |failure| match failure {
                NoTarget::Timeout => {
                    (self.report)(&Event::Timeout { connection, target });
                    OwnAnswer::new(504, format!("{target} does not answer"))
                }
                NoTarget::Refused(error) => {
                    let why = error.to_string();
                    let failure = OwnAnswer::new(502, format!("{target}: {why}"));
                    (self.report)(&Event::Refused { connection, target, why });
                    failure
                }
            },
        )
    }

    fn failed(&self, status: Option<u16>, why: String) {
        (self.report)(&Event::Failed {
            connection: self.connection,
            client: self.client,
            listener: self.service.address,
            status,
            why,
        });
    }
}

/// Passes the request on and the answer back; an error only while the client has not been
/// answered yet.
fn relay(
    head: &Head,
    body: Body,
    is_head: bool,
    from_client: &mut BufReader<&Socket>,
    client: &Socket,
    upstream: &Socket,
) -> io::Result<u16> {
    upstream.set_read_timeout(Some(SILENCE))?;
    upstream.set_write_timeout(Some(SILENCE))?;
    head.write(&mut &*upstream)?;
    thread::scope(|scope| {
        if body != Body::NONE {
            // A target may answer before it has read everything.
            scope.spawn(|| body.copy(from_client, &mut &*upstream));
        }
        let answered = answer(is_head, client, upstream);
        // Wakes the copying of the body, if that is still going on.
        let _ = upstream.shutdown(Shutdown::Both);
        if answered.is_ok() {
            let _ = client.shutdown(Shutdown::Both);
        } else if body != Body::NONE {
            let _ = client.shutdown(Shutdown::Read);
        }
        answered
    })
}

fn answer(is_head: bool, mut client: &Socket, upstream: &Socket) -> io::Result<u16> {
    let mut from_target = BufReader::new(upstream);
    loop {
        let mut head = Head::read(&mut from_target).map_err(|bad| match bad {
            BadHead::Io(error) => error,
            BadHead::Nothing => io::ErrorKind::UnexpectedEof.into(),
            BadHead::Malformed(why) => io::Error::new(io::ErrorKind::InvalidData, why),
            BadHead::TooLong => io::Error::new(io::ErrorKind::InvalidData, "head too long"),
        })?;
        let invalid = |why: &str| io::Error::new(io::ErrorKind::InvalidData, why);
        let status = head.status().ok_or_else(|| invalid("bad status line"))?;
        if (100..200).contains(&status) {
            // Upgrades were not passed on, so this is no switch of protocols.
            head.write(&mut client)?;
            continue;
        }
        let body = match status {
            204 | 304 => Body::NONE,
            _ if is_head => Body::NONE,
            _ => head.body(Body::UntilClose).map_err(invalid)?,
        };
        head.closing();
        // From here on the client has an answer, be it a broken one.
        let _ = head
            .write(&mut client)
            .and_then(|()| body.copy(&mut from_target, &mut client))
            .and_then(|()| client.flush());
        return Ok(status);
    }
}

/// Answers in the load balancer's own name.
fn send_answer(own: &OwnAnswer, mut client: &Socket) -> io::Result<()> {
    let status = own.status;
    let reason = match status {
        301 => "Moved Permanently",
        302 => "Found",
        307 => "Temporary Redirect",
        308 => "Permanent Redirect",
        400 => "Bad Request",
        404 => "Not Found",
        431 => "Request Header Fields Too Large",
        502 => "Bad Gateway",
        503 => "Service Unavailable",
        _ => "Gateway Timeout",
    };
    let text = format!("{status} {reason}\n");
    let length = text.len();
    let location = own.location.as_ref();
    let location = location.map_or_else(String::new, |url| format!("Location: {url}\r\n"));
    write!(
        client,
        "HTTP/1.1 {status} {reason}\r\n{location}Content-Type: text/plain\r\n\
         Content-Length: {length}\r\nConnection: close\r\n\r\n{text}"
    )?;
    client.shutdown(Shutdown::Write)?;
    client.set_read_timeout(Some(FAREWELL))?;
    let _ = io::copy(&mut client.take(1 << 20), &mut io::sink());
    Ok(())
}
