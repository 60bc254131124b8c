//! Clients, which make real connections, send real datagrams, and observe how each ends.

mod datagram;
mod http;
mod tls;

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::ops::Range;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;
use socket2::Socket;
use uturn_model::Outcome;

use crate::linux::kernel::namespace::Namespace;
use crate::linux::serve::server::Answer;
use datagram::Question;
use http::Plain;
use tls::Tls;

/// A client's request and its destination.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RequestSpec {
    pub(crate) address: SocketAddr,
    /// The other addresses of the name, which connections use in turn.
    pub(crate) others: Vec<IpAddr>,
    pub(crate) host: String,
    pub(crate) path: String,
    pub(crate) protocol: ClientProtocol,
    /// The redirect that is expected, if any: its URL, and the request that follows it.
    pub(crate) redirected: Option<(String, Box<RequestSpec>)>,
}

/// The protocol of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ClientProtocol {
    /// HTTP.
    Http,
    /// HTTP over TLS. The certificate is not verified.
    Https,
    /// HTTP, first over TLS if that is likely, then without it if the server does not use TLS. Any
    /// answer counts, including one that asks for TLS.
    Any {
        /// Whether TLS is likely.
        tls: bool,
    },
    /// A UDP datagram.
    Datagram,
}

/// The outcome of a connection, and the answer.
pub(crate) type Ending = (Outcome, Option<Answer>);

/// A connection and its state.
#[derive(Debug)]
pub(crate) struct Attempt {
    /// The index of the flow that the connection belongs to.
    pub(crate) flow: usize,
    began: Instant,
    limit: Duration,
    session: Session,
    /// A socket for a retry without TLS.
    plain_retry: Option<(Socket, RequestSpec)>,
    /// A socket for following the redirect.
    redirect: Option<(Socket, RequestSpec)>,
    ending: Option<io::Result<Ending>>,
}

#[derive(Debug)]
enum Session {
    Plain(Plain),
    Tls(Box<Tls>),
    Datagram(Question),
}

impl Attempt {
    /// Begins the connections of a flow that have these numbers, from within a namespace, in order.
    pub(crate) fn begin(
        from: &Namespace,
        spec: &RequestSpec,
        flow: usize,
        numbers: Range<u64>,
        limit: Duration,
    ) -> io::Result<Vec<Self>> {
        let addresses: Vec<IpAddr> =
            [spec.address.ip()].into_iter().chain(spec.others.iter().copied()).collect();
        let specs: Vec<RequestSpec> = addresses
            .into_iter()
            .map(|ip| RequestSpec {
                address: SocketAddr::new(ip, spec.address.port()),
                ..spec.clone()
            })
            .collect();
        let spec_of = |number: u64| &specs[(number % specs.len() as u64) as usize];
        from.run(|| numbers.map(|number| Self::new(spec_of(number), flow, limit)).collect())
    }

    fn new(spec: &RequestSpec, flow: usize, limit: Duration) -> io::Result<Self> {
        let began = Instant::now();
        let mut plain_retry = None;
        let (session, begun) = match spec.protocol {
            ClientProtocol::Http | ClientProtocol::Any { tls: false } => {
                let (plain, begun) = Plain::new(spec)?;
                (Session::Plain(plain), begun)
            }
            ClientProtocol::Https | ClientProtocol::Any { tls: true } => {
                if spec.protocol != ClientProtocol::Https {
                    plain_retry = Some((http::open(spec.address)?, spec.clone()));
                }
                let (tls, begun) = Tls::new(spec)?;
                (Session::Tls(Box::new(tls)), begun)
            }
            ClientProtocol::Datagram => {
                let (question, begun) = Question::new(spec.address)?;
                (Session::Datagram(question), begun)
            }
        };
        let redirect = match &spec.redirected {
            Some((_, next)) => Some((http::open(next.address)?, spec.clone())),
            None => None,
        };
        let ending = begun.err().map(failure);
        Ok(Self { flow, began, limit, session, plain_retry, redirect, ending })
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.ending.is_some()
    }

    /// Returns the ending, or `None` if the connection has not ended.
    pub(crate) fn into_ending(self) -> Option<io::Result<Ending>> {
        self.ending
    }

    /// Returns the time when the attempt gives up.
    pub(crate) fn deadline(&self) -> Instant {
        self.began + self.limit
    }

    /// Returns the descriptor and the events that the attempt waits for.
    pub(crate) fn waits_for(&self) -> PollFd<'_> {
        match &self.session {
            Session::Plain(plain) => plain.waits_for(),
            Session::Tls(tls) => tls.waits_for(),
            Session::Datagram(question) => PollFd::new(question, PollFlags::IN),
        }
    }

    /// Makes progress after the descriptor has become ready.
    pub(crate) fn advance(&mut self) {
        if self.has_ended() {
            return;
        }
        let waited = whole_seconds(self.began.elapsed());
        let result = match &mut self.session {
            Session::Plain(plain) => plain.advance(waited),
            Session::Tls(tls) => tls.advance(waited),
            Session::Datagram(question) => question.advance(waited),
        };
        self.ending = match result {
            Ok(None) => None,
            Ok(Some((Outcome::TlsError, _))) if self.plain_retry.is_some() => self.retry_in_clear(),
            Ok(Some((Outcome::Status { code: 300..400, .. }, _))) if self.is_redirected() => {
                self.follow_redirect()
            }
            Ok(Some(ending)) => Some(Ok(ending)),
            Err(error) => Some(failure(error)),
        };
    }

    /// Retries without TLS. Returns the ending if the retry cannot begin.
    fn retry_in_clear(&mut self) -> Option<io::Result<Ending>> {
        let (socket, spec) = self.plain_retry.take()?;
        let (plain, begun) = Plain::on(socket, &spec);
        self.session = Session::Plain(plain);
        begun.err().map(failure)
    }

    /// Returns whether the answer is the expected redirect.
    fn is_redirected(&self) -> bool {
        let location = match &self.session {
            Session::Plain(plain) => plain.location(),
            Session::Tls(tls) => tls.location(),
            Session::Datagram(_) => None,
        };
        let wanted = self.redirect.as_ref().and_then(|(_, spec)| spec.redirected.as_ref());
        wanted.is_some_and(|(url, _)| location.as_ref() == Some(url))
    }

    /// Follows the redirect. Returns the ending if that cannot begin.
    fn follow_redirect(&mut self) -> Option<io::Result<Ending>> {
        let (socket, spec) = self.redirect.take()?;
        let (_, next) = spec.redirected?;
        let begun = match next.protocol {
            ClientProtocol::Https => match Tls::on(socket, &next) {
                Ok((tls, begun)) => {
                    self.session = Session::Tls(Box::new(tls));
                    begun
                }
                Err(error) => Err(error),
            },
            _ => {
                let (plain, begun) = Plain::on(socket, &next);
                self.session = Session::Plain(plain);
                begun
            }
        };
        begun.err().map(failure)
    }

    /// Ends the attempt if its deadline has passed.
    pub(crate) fn check_deadline(&mut self, now: Instant) {
        if now >= self.deadline() {
            self.ending.get_or_insert(Ok((Outcome::Hangs, None)));
        }
    }
}

/// Turns errors that are outcomes of a connection into outcomes. Other errors are errors of the
/// lab.
fn failure(error: io::Error) -> io::Result<Ending> {
    let outcome = match error.kind() {
        io::ErrorKind::ConnectionRefused => Outcome::Refused,
        io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe => Outcome::Reset,
        io::ErrorKind::HostUnreachable | io::ErrorKind::NetworkUnreachable => Outcome::Unreachable,
        io::ErrorKind::TimedOut => Outcome::Hangs,
        // These are ICMP "administratively prohibited" and "protocol unreachable".
        _ => match Errno::from_io_error(&error) {
            Some(Errno::ACCESS | Errno::NOPROTOOPT) => Outcome::Unreachable,
            _ => return Err(error),
        },
    };
    Ok((outcome, None))
}

/// Rounds a delay to whole seconds: timeouts and retransmissions take whole seconds, the rest is
/// processing time.
fn whole_seconds(waited: Duration) -> Duration {
    Duration::from_secs((waited + Duration::from_millis(100)).as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiting_is_counted_in_whole_seconds() {
        for (milliseconds, seconds) in [(0, 0), (899, 0), (900, 1), (4003, 4), (4600, 4)] {
            let waited = Duration::from_millis(milliseconds);
            assert_eq!(whole_seconds(waited), Duration::from_secs(seconds), "{milliseconds}");
        }
    }
}
