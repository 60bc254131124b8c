//! How a request and its reply end.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use uturn_model::lb::Redirect;
use uturn_model::{Assumption, FailurePoint, Hop, Mechanism, Outcome, Share};
use uturn_netfilter::Packet;

use super::PacketState;
use super::pace::account_for_losses;
use crate::add_missing::add_missing;

/// One way an exchange can go.
#[derive(Clone, Debug)]
pub struct Exchange {
    /// How many of all requests go this way.
    pub share: Share,
    /// How it ends.
    pub outcome: Outcome,
    /// Why, unless it ends well.
    pub mechanisms: Vec<Mechanism>,
    /// Whether a random choice on the way decides other ways too.
    pub chance: bool,
    /// Whether it stands for others that end alike.
    pub has_others: bool,
    /// Why packets were lost before the one that arrived.
    pub lost: Vec<Mechanism>,
    /// How much later than the first packet that one was sent, if the outcome does not include it.
    pub late: Duration,
    /// The assumptions that it rests on.
    pub supposed: Vec<Assumption>,
    /// Where packets were stopped on this way and on the others that it stands for.
    pub failures: Vec<FailurePoint>,
    /// The redirect in the answer, which the client follows.
    pub redirected: Option<Arc<Redirected>>,
    /// The reset or ICMP error with which a target refused, as it reached the load balancer.
    pub refusal: Option<Packet>,
    /// Its hops, if they are recorded.
    pub hops: Vec<Hop>,
}

impl Exchange {
    /// Takes over what another exchange rests on that is a part of this one or ends like it: its
    /// assumptions, and where its packets were stopped.
    pub(crate) fn inherit(&mut self, other: &Self) {
        add_missing(&mut self.supposed, other.supposed.iter().cloned());
        add_missing(&mut self.failures, other.failures.iter().cloned());
    }

    /// Adds an exchange that ends alike.
    pub(crate) fn join(&mut self, other: &Self) {
        self.share += other.share;
        self.chance |= other.chance;
        self.has_others = true;
        self.inherit(other);
    }

    /// The exchange for the peer to which this answer is relayed. The redirect is dropped if the outcome
    /// is another one by then.
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
    /// The host and path that were asked for.
    pub(crate) host: String,
    pub(crate) path: String,
}

/// A request, as far as packets do not show it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Request {
    /// Host and path of an HTTP request.
    pub http: Option<(String, String)>,
    /// Whether the client uses TLS. `None` if it uses the protocol of the listener.
    pub tls: Option<bool>,
    /// How many redirects the client has followed.
    pub redirects: u8,
    /// The URLs of these redirects: another redirect to one of them is a loop.
    pub redirect_urls: Vec<String>,
    /// How many ingress controllers have forwarded it.
    pub controllers: u8,
    /// Whether the connection begins with a PROXY header.
    pub has_proxy_header: bool,
    /// The host name that the client asked for, and the address that it was told or that it calls.
    pub named: Option<(String, IpAddr)>,
    /// The address that the client called, where its node replaced it as it connected.
    pub replaced: Option<SocketAddr>,
}

impl Request {
    /// The name for which the client asks when it begins TLS: addresses are no names.
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

/// The end of one way.
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
    /// Its way so far.
    pub exchange: Exchange,
    /// How many targets timed out.
    pub timeouts: u32,
    /// Whether the last one did.
    pub timed_out: bool,
    /// How long those that refused took.
    pub late: Duration,
}

impl Waiting {
    /// Before any target was asked.
    pub fn new(exchange: Exchange) -> Self {
        Self { exchange, timeouts: 0, timed_out: false, late: Duration::ZERO }
    }
}
