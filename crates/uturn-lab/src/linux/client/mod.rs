//! Clients: connections and questions that are really made, and how each of them ends.

mod datagram;
mod http;
mod tls;

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;
use socket2::Socket;
use uturn_model::Outcome;

use super::namespace::Namespace;
use super::server::Answer;
use datagram::Question;
use http::Plain;
use tls::Tls;

/// What a client sends, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Aim {
    pub(crate) address: SocketAddr,
    /// Where its name has several: the connections take turns.
    pub(crate) others: Vec<IpAddr>,
    pub(crate) host: String,
    pub(crate) path: String,
    pub(crate) speech: Speech,
    /// Where it goes on if it is told so: the URL, and what that is in numbers.
    pub(crate) redirected: Option<(String, Box<Aim>)>,
}

/// How a client speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Speech {
    /// HTTP.
    Http,
    /// HTTP under TLS. Whose certificate it is does not matter.
    Https,
    /// Whatever is spoken there: HTTP, under TLS first where that is likely, and in the clear
    /// where it turns out not to be. That somebody answers is enough, even that they would
    /// rather speak TLS.
    Whatever {
        /// Whether TLS is likely.
        tls: bool,
    },
    /// A question in a datagram.
    Datagram,
}

/// How a connection ended, and what was answered.
pub(crate) type Ending = (Outcome, Option<Answer>);

/// One connection and what has come of it so far.
#[derive(Debug)]
pub(crate) struct Attempt {
    /// Which flow it belongs to.
    pub(crate) flow: usize,
    began: Instant,
    limit: Duration,
    talk: Talk,
    /// For another try in the clear, where TLS turns out not to be spoken.
    spare: Option<(Socket, Aim)>,
    /// For where it is sent.
    elsewhere: Option<(Socket, Aim)>,
    ending: Option<io::Result<Ending>>,
}

#[derive(Debug)]
enum Talk {
    Plain(Plain),
    Tls(Box<Tls>),
    Datagram(Question),
}

impl Attempt {
    /// Begins `count` connections from within a namespace, in order.
    pub(crate) fn begin(
        from: &Namespace,
        aim: &Aim,
        flow: usize,
        count: u64,
        limit: Duration,
    ) -> io::Result<Vec<Self>> {
        let addresses: Vec<IpAddr> =
            [aim.address.ip()].into_iter().chain(aim.others.iter().copied()).collect();
        let aims: Vec<Aim> = addresses
            .into_iter()
            .map(|ip| Aim { address: SocketAddr::new(ip, aim.address.port()), ..aim.clone() })
            .collect();
        let turns = aims.iter().cycle().zip(0..count);
        from.run(|| turns.map(|(aim, _)| Self::new(aim, flow, limit)).collect())
    }

    fn new(aim: &Aim, flow: usize, limit: Duration) -> io::Result<Self> {
        let began = Instant::now();
        let mut spare = None;
        let (talk, begun) = match aim.speech {
            Speech::Http | Speech::Whatever { tls: false } => {
                let (plain, begun) = Plain::new(aim)?;
                (Talk::Plain(plain), begun)
            }
            Speech::Https | Speech::Whatever { tls: true } => {
                if aim.speech != Speech::Https {
                    spare = Some((http::open(aim.address)?, aim.clone()));
                }
                let (tls, begun) = Tls::new(aim)?;
                (Talk::Tls(Box::new(tls)), begun)
            }
            Speech::Datagram => {
                let (question, begun) = Question::new(aim.address)?;
                (Talk::Datagram(question), begun)
            }
        };
        let elsewhere = match &aim.redirected {
            Some((_, next)) => Some((http::open(next.address)?, aim.clone())),
            None => None,
        };
        let ending = begun.err().map(failure);
        Ok(Self { flow, began, limit, talk, spare, elsewhere, ending })
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.ending.is_some()
    }

    /// What came of it, once it has ended.
    pub(crate) fn into_ending(self) -> Option<io::Result<Ending>> {
        self.ending
    }

    /// When it gives up.
    pub(crate) fn deadline(&self) -> Instant {
        self.began + self.limit
    }

    /// What it waits for.
    pub(crate) fn waits_for(&self) -> PollFd<'_> {
        match &self.talk {
            Talk::Plain(plain) => plain.waits_for(),
            Talk::Tls(tls) => tls.waits_for(),
            Talk::Datagram(question) => PollFd::new(question, PollFlags::IN),
        }
    }

    /// Goes on after what it waited for has come.
    pub(crate) fn go_on(&mut self) {
        if self.has_ended() {
            return;
        }
        let waited = whole_seconds(self.began.elapsed());
        let result = match &mut self.talk {
            Talk::Plain(plain) => plain.go_on(waited),
            Talk::Tls(tls) => tls.go_on(waited),
            Talk::Datagram(question) => question.go_on(waited),
        };
        self.ending = match result {
            Ok(None) => None,
            Ok(Some((Outcome::TlsError, _))) if self.spare.is_some() => self.speak_clearly(),
            Ok(Some((Outcome::Status { code: 300..400, .. }, _))) if self.is_sent_elsewhere() => {
                self.go_elsewhere()
            }
            Ok(Some(ending)) => Some(Ok(ending)),
            Err(error) => Some(failure(error)),
        };
    }

    /// Tries again in the clear; whether that cannot even be begun.
    fn speak_clearly(&mut self) -> Option<io::Result<Ending>> {
        let (socket, aim) = self.spare.take()?;
        let (plain, begun) = Plain::on(socket, &aim);
        self.talk = Talk::Plain(plain);
        begun.err().map(failure)
    }

    /// Whether it is told to go where it expects to be sent.
    fn is_sent_elsewhere(&self) -> bool {
        let told = match &self.talk {
            Talk::Plain(plain) => plain.location(),
            Talk::Tls(tls) => tls.location(),
            Talk::Datagram(_) => None,
        };
        let wanted = self.elsewhere.as_ref().and_then(|(_, aim)| aim.redirected.as_ref());
        wanted.is_some_and(|(url, _)| told.as_ref() == Some(url))
    }

    /// Goes on where it was sent; whether that cannot even be begun.
    fn go_elsewhere(&mut self) -> Option<io::Result<Ending>> {
        let (socket, aim) = self.elsewhere.take()?;
        let (_, next) = aim.redirected?;
        let begun = match next.speech {
            Speech::Https => match Tls::on(socket, &next) {
                Ok((tls, begun)) => {
                    self.talk = Talk::Tls(Box::new(tls));
                    begun
                }
                Err(error) => Err(error),
            },
            _ => {
                let (plain, begun) = Plain::on(socket, &next);
                self.talk = Talk::Plain(plain);
                begun
            }
        };
        begun.err().map(failure)
    }

    /// Gives up if it is time.
    pub(crate) fn look_at_clock(&mut self, now: Instant) {
        if now >= self.deadline() {
            self.ending.get_or_insert(Ok((Outcome::Hangs, None)));
        }
    }
}

/// Outcomes that the kernel tells as errors; all other errors are the lab's own.
fn failure(error: io::Error) -> io::Result<Ending> {
    let outcome = match error.kind() {
        io::ErrorKind::ConnectionRefused => Outcome::Refused,
        io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe => Outcome::Reset,
        io::ErrorKind::HostUnreachable | io::ErrorKind::NetworkUnreachable => Outcome::Unreachable,
        io::ErrorKind::TimedOut => Outcome::Hangs,
        // Somebody forbids it, or nobody there speaks the protocol.
        _ => match Errno::from_io_error(&error) {
            Some(Errno::ACCESS | Errno::NOPROTOOPT) => Outcome::Unreachable,
            _ => return Err(error),
        },
    };
    Ok((outcome, None))
}

/// Waiting is done in whole seconds (timeouts, retransmissions); the rest is the machine's.
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
