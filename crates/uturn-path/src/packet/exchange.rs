//! How a request and its reply end.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use uturn_model::lb::Redirect;
use uturn_model::{Hop, Mechanism, Outcome, Share, Supposition};

use super::PacketState;
use super::pace::owe;

/// One way an exchange can go.
#[derive(Clone, Debug)]
pub struct Exchange {
    /// How many of all requests go this way.
    pub share: Share,
    /// How it ends.
    pub outcome: Outcome,
    /// Why, unless it ends well.
    pub mechanisms: Vec<Mechanism>,
    /// Whether dice were thrown on the way that other ways depend on too.
    pub chance: bool,
    /// Why packets were lost before the one that was heard.
    pub lost: Vec<Mechanism>,
    /// How much later than the first that one was sent, where the outcome does not say it.
    pub late: Duration,
    /// What had to be taken for true.
    pub supposed: Vec<Supposition>,
    /// Where the answer sends the client, which follows it when it has the answer.
    pub redirected: Option<Arc<Redirected>>,
    /// Hop by hop, where that is wanted.
    pub hops: Vec<Hop>,
}

impl Exchange {
    /// The exchange as it goes on for whoever passes the answer on: one that ends otherwise sends
    /// nobody elsewhere.
    pub(crate) fn passing_on(self, outcome: Outcome, redirected: Option<Arc<Redirected>>) -> Self {
        let status = |outcome| match outcome {
            Outcome::Status { code, .. } => Some(code),
            _ => None,
        };
        let is_same = status(self.outcome) == status(outcome);
        Self { redirected: redirected.filter(|_| is_same), ..self }
    }
}

/// What an answer sends a client to.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct Redirected {
    pub(crate) redirect: Redirect,
    /// The host and path that were asked for.
    pub(crate) host: String,
    pub(crate) path: String,
}

/// What is asked, beyond the packet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Request {
    /// Host and path of an HTTP request.
    pub http: Option<(String, String)>,
    /// Whether the client speaks TLS. `None` if it speaks what the listener speaks.
    pub tls: Option<bool>,
    /// How often the client was sent elsewhere before.
    pub followed: u8,
    /// Where redirects have sent the client: who is sent to one of these again goes round.
    pub sent_to: Vec<String>,
    /// How many controllers in the cluster it has passed.
    pub passed: u8,
    /// Whether the connection begins with a PROXY header.
    pub has_proxy_header: bool,
    /// The host name that the client asked for, and the address that it was told.
    pub named: Option<(String, IpAddr)>,
}

/// The end of one way.
pub(crate) fn ended(
    mut state: PacketState,
    outcome: Outcome,
    mechanism: Option<Mechanism>,
) -> Exchange {
    let mut mechanisms = mechanism.into_iter().collect();
    owe(&mut state, &mut mechanisms);
    let has_time =
        matches!(outcome, Outcome::Answered { .. } | Outcome::Status { .. } | Outcome::Hangs);
    let late = if has_time { Duration::ZERO } else { state.tries.delay() };
    Exchange {
        share: state.share,
        outcome: outcome.later(state.tries.delay()),
        mechanisms,
        chance: state.chance,
        lost: state.tries.why,
        late,
        supposed: state.supposed,
        redirected: None,
        hops: state.hops,
    }
}

/// A request that no target has answered yet.
pub struct Waiting {
    /// Its way so far.
    pub way: Exchange,
    /// How many targets timed out.
    pub timeouts: u32,
    /// Whether the last one did.
    pub timed_out: bool,
    /// How long those that refused took.
    pub late: Duration,
}

impl Waiting {
    /// Before any target was asked.
    pub fn new(way: Exchange) -> Self {
        Self { way, timeouts: 0, timed_out: false, late: Duration::ZERO }
    }
}
