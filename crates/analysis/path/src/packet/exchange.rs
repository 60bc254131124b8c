//! The possible ends of a request and its reply.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use uturn_model::lb::Redirect;
use uturn_model::route::Leg;
use uturn_model::{Assumption, FailurePoint, Hop, Mechanism, Outcome, Share};
use uturn_netfilter::Packet;

use super::pace::account_for_losses;
use super::{PacketState, Peer};
use crate::add_missing::add_missing;

/// One way an exchange can go.
#[derive(Clone, Debug)]
pub struct Exchange {
    /// The share of all requests that go this way.
    pub share: Share,
    /// The outcome.
    pub outcome: Outcome,
    /// The reasons for a bad outcome; empty if the exchange ends well.
    pub mechanisms: Vec<Mechanism>,
    /// Whether a random choice on the way leads to other ways too.
    pub chance: bool,
    /// Whether this way represents others that end alike.
    pub has_others: bool,
    /// The reasons why packets were lost before one arrived.
    pub lost: Vec<Mechanism>,
    /// The delay of the packet that arrived after the first one, if the outcome does not include
    /// it.
    pub late: Duration,
    /// The assumptions on which this way rests.
    pub supposed: Vec<Assumption>,
    /// Where packets were stopped on this way and on the others that it represents.
    pub failures: Vec<FailurePoint>,
    /// The redirect in the answer, which the client follows.
    pub redirected: Option<Arc<Redirected>>,
    /// The reset or ICMP error of a target that refused, as it reached the load balancer.
    pub refusal: Option<Packet>,
    /// The hops, if they are recorded.
    pub hops: Vec<Hop>,
}

impl Exchange {
    /// Adds the assumptions and failure points of another exchange that is a part of this one or
    /// ends like it.
    pub(crate) fn inherit(&mut self, other: &Self) {
        add_missing(&mut self.supposed, other.supposed.iter().cloned());
        add_missing(&mut self.failures, other.failures.iter().cloned());
    }

    /// Adds the share of an exchange that ends alike.
    pub(crate) fn join(&mut self, other: &Self) {
        self.share += other.share;
        self.chance |= other.chance;
        self.has_others = true;
        self.inherit(other);
    }

    /// Returns the exchange for the peer to which this answer is relayed. Drops the redirect if the
    /// HTTP status of the outcome has changed by then.
    pub(crate) fn relayed(self, outcome: Outcome, redirected: Option<Arc<Redirected>>) -> Self {
        let status = |outcome| match outcome {
            Outcome::Status { code, .. } => Some(code),
            _ => None,
        };
        let is_same = status(self.outcome) == status(outcome);
        Self { redirected: redirected.filter(|_| is_same), ..self }
    }
}

/// A redirect, with the host and path of the request that it answers.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct Redirected {
    pub(crate) redirect: Redirect,
    /// The host that was asked for.
    pub(crate) host: String,
    pub(crate) path: String,
}

/// The properties of a request that packets do not show.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Request {
    /// The host and path of an HTTP request.
    pub http: Option<(String, String)>,
    /// Whether the client uses TLS. `None` if it uses the protocol of the listener.
    pub tls: Option<bool>,
    /// The number of redirects that the client has followed.
    pub redirects: u8,
    /// The URLs of these redirects: another redirect to one of them is a loop.
    pub redirect_urls: Vec<String>,
    /// The number of ingress controllers that have forwarded the request.
    pub controllers: u8,
    /// Whether the connection begins with a PROXY header.
    pub has_proxy_header: bool,
    /// The host name that the client asked for, and the address that it got or that it calls.
    pub named: Option<(String, IpAddr)>,
    /// The address that the client called, if its node replaced it at connect time.
    pub replaced: Option<SocketAddr>,
}

impl Request {
    /// Returns the name that the client sends in TLS (SNI). Returns `None` for an address.
    pub fn asked_name(&self) -> Option<&str> {
        let asked = match (&self.http, &self.named) {
            (Some((host, _)), _) => host,
            (None, named) => &named.as_ref()?.0,
        };
        let bare = asked.trim_start_matches('[');
        let is_address = |text: &str| text.trim_end_matches(']').parse::<IpAddr>().is_ok();
        let before_port = bare.rsplit_once(':').map_or(bare, |(name, _)| name);
        (!is_address(bare) && !is_address(before_port)).then_some(asked)
    }
}

/// A request, and the peer that sent it and waits for the answer.
#[derive(Clone, Copy)]
pub(crate) struct Call<'c> {
    /// The peer that sent the request: a client, or what forwards a client's request.
    pub(crate) client: Peer<'c>,
    /// The addresses with which the client sent the request.
    pub(crate) asked: Leg,
    pub(crate) request: &'c Request,
}

impl<'c> Call<'c> {
    /// Makes the call that begins with this packet.
    pub(crate) fn begun_by(client: Peer<'c>, request: &'c Request, state: &PacketState) -> Self {
        Self { client, asked: state.packet.leg(), request }
    }

    /// Returns the addresses with which the client expects the answer.
    pub(crate) fn expected(&self) -> Leg {
        Leg { src: self.asked.dst, dst: self.asked.src }
    }

    /// Returns the address that the client called, even if its node replaced it.
    pub(crate) fn called(&self) -> SocketAddr {
        self.request.replaced.unwrap_or(self.asked.dst)
    }
}

/// Returns the exchange that ends here with this outcome.
pub(crate) fn ended(
    mut state: PacketState,
    outcome: Outcome,
    mechanism: Option<Mechanism>,
) -> Exchange {
    if let Some(why) = mechanism
        && !state.failures.iter().any(|known| known.mechanism == why)
    {
        state.note_failure(why);
    }
    let mut mechanisms = mechanism.into_iter().collect();
    account_for_losses(&mut state, &mut mechanisms);
    let has_time =
        matches!(outcome, Outcome::Answered { .. } | Outcome::Status { .. } | Outcome::Hangs);
    let late = if has_time { Duration::ZERO } else { state.tries.delay() };
    Exchange {
        share: state.share,
        outcome: outcome.later(state.tries.delay()),
        mechanisms,
        chance: state.chance,
        has_others: false,
        lost: state.tries.why,
        late,
        supposed: state.supposed,
        failures: state.failures,
        redirected: None,
        refusal: None,
        hops: state.hops,
    }
}

/// A request that no target has answered yet.
pub struct Waiting {
    /// The exchange so far.
    pub exchange: Exchange,
    /// The number of targets that timed out.
    pub timeouts: u32,
    /// Whether the last target timed out.
    pub timed_out: bool,
    /// The time that the targets which refused took.
    pub late: Duration,
}

impl Waiting {
    /// Makes the state before any target was asked.
    pub fn new(exchange: Exchange) -> Self {
        Self { exchange, timeouts: 0, timed_out: false, late: Duration::ZERO }
    }
}
