//! A client that is sent elsewhere goes there: what becomes of it is what becomes of the
//! call that it makes then.

use std::net::SocketAddr;

use uturn_model::lb::Redirect;
use uturn_model::route::{Leg, Place, Step, StepKind};
use uturn_model::{Evidence, Outcome, Protocol};
use uturn_netfilter::Packet;

use crate::engine::walk::Walk;
use crate::error::WalkError;
use crate::packet::{Exchange, PacketState, Peer, Request};

/// Clients do not follow more than these: they take it for a loop.
const MOST: u8 = 20;

/// What a load balancer or a controller says to a request that it sends elsewhere.
pub(crate) struct RedirectAnswer<'s> {
    pub(crate) redirect: &'s Redirect,
    /// What was asked for.
    pub(crate) host: &'s str,
    pub(crate) path: &'s str,
    pub(crate) by: Evidence,
}

impl<'a> Walk<'_, 'a> {
    /// Takes the redirect to the client, which follows it.
    pub(crate) fn sent_elsewhere(
        &self,
        party: Peer<'a>,
        client: Peer<'a>,
        asked: Leg,
        request: &Request,
        redirection: &RedirectAnswer<'_>,
        mut state: PacketState,
    ) -> Result<Vec<Exchange>, WalkError> {
        let url = redirection.redirect.location(redirection.host, redirection.path);
        let code = redirection.redirect.code;
        let why = match request.followed < MOST {
            true => format!("answers {code}: ask {url}"),
            false => format!("answers {code}: ask {url}; clients follow no further"),
        };
        state.note(
            self.engine.place(party),
            Step::new(StepKind::Answer, why, redirection.by.clone()),
        );
        let late = state.tries.delay();
        let answer = state.answer();
        let outcome = Outcome::Status { code, after: std::time::Duration::ZERO };
        let home = self.bring_home(party, client, asked, answer, outcome, None)?;
        if request.followed >= MOST {
            return Ok(home);
        }
        let mut ways = Vec::new();
        for way in home {
            if !matches!(way.outcome, Outcome::Status { .. }) {
                ways.push(way);
                continue;
            }
            for next in self.goes_on(client, asked, request, redirection, &way)? {
                let outcome = next.outcome.later(late);
                ways.push(Exchange { outcome, ..next });
            }
        }
        Ok(self.merged(ways))
    }

    /// The call that a client makes when it follows a redirect.
    fn goes_on(
        &self,
        client: Peer<'a>,
        asked: Leg,
        request: &Request,
        redirection: &RedirectAnswer<'_>,
        first_call: &Exchange,
    ) -> Result<Vec<Exchange>, WalkError> {
        let (host, path) = redirection.redirect.aim(redirection.host, redirection.path);
        let next = Request {
            http: Some((host.to_owned(), path.to_owned())),
            tls: Some(redirection.redirect.tls),
            followed: request.followed + 1,
            passed: request.passed,
            ..Request::default()
        };
        let port = redirection.redirect.port;
        let is_same = redirection.redirect.host.is_none();
        let target = self.engine.aim_at_host(client, host, port, next);
        let addresses = match is_same {
            // It goes on with the address that it has.
            true => vec![SocketAddr::new(asked.dst.ip(), port.number())],
            false => target.addresses,
        };
        let failed = |outcome, mechanism| Exchange {
            outcome,
            mechanisms: Some(mechanism).into_iter().collect(),
            ..first_call.clone()
        };
        if addresses.is_empty() {
            return Ok(vec![failed(Outcome::NameNotFound, uturn_model::Mechanism::NameUnresolved)]);
        }
        let mut ways = Vec::new();
        for address in &addresses {
            let Some(source) = self.engine.source(client, *address, Protocol::Tcp)? else {
                ways.push(failed(Outcome::Unreachable, uturn_model::Mechanism::NoRoute));
                continue;
            };
            let packet = Packet::new(Protocol::Tcp, source, *address);
            let mut state = PacketState::new(packet)
                .briefly(self.options.is_brief())
                .paced(self.engine.pace(client));
            state.share = first_call.share.split(addresses.len());
            state.chance = first_call.chance;
            state.supposed.clone_from(&first_call.supposed);
            state.hops.clone_from(&first_call.hops);
            if let Some(resolution) = target.resolved.as_ref().filter(|_| !is_same) {
                for step in &resolution.steps {
                    state.note(Place::Dns, step.clone());
                }
            }
            for mut way in self.call(client, &target.request, state)? {
                for mechanism in &first_call.mechanisms {
                    if !way.mechanisms.contains(mechanism) {
                        way.mechanisms.push(*mechanism);
                    }
                }
                way.mechanisms.sort_unstable();
                ways.push(way);
            }
        }
        Ok(ways)
    }
}
