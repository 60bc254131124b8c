//! Redirects: a client follows one with another call, and the flow ends as that call does.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use uturn_model::route::{Leg, Place, Step, StepKind};
use uturn_model::{Evidence, Outcome, Protocol};
use uturn_netfilter::Packet;

use crate::engine::walk::Walk;
use crate::error::WalkError;
use crate::packet::{Exchange, PacketState, Peer, Redirected, Request};

/// The number of redirects that clients follow. More are a loop.
const MAX_REDIRECTS: u8 = 20;

impl<'a> Walk<'_, 'a> {
    /// Answers a request with a redirect. The client follows it once it has the answer, whatever
    /// forwarded its call.
    pub(crate) fn answer_with_redirect(
        &self,
        (party, client, asked): (Peer<'a>, Peer<'a>, Leg),
        request: &Request,
        redirected: Redirected,
        by: Evidence,
        mut state: PacketState,
    ) -> Result<Vec<Exchange>, WalkError> {
        let url = redirected.redirect.location(&redirected.host, &redirected.path);
        let code = redirected.redirect.code;
        let is_loop = request.redirect_urls.contains(&url);
        let is_followed = request.redirects < MAX_REDIRECTS && !is_loop;
        let why = match (is_loop, is_followed) {
            (true, _) => {
                format!(
                    "answers {code}: ask {url}, as before: a redirect loop, and clients give up"
                )
            }
            (false, true) => format!("answers {code}: ask {url}"),
            (false, false) => format!("answers {code}: ask {url}; clients follow no further"),
        };
        state.note(self.engine.place(party), Step::new(StepKind::Answer, why, by));
        let outcome = Outcome::Status { code, after: Duration::ZERO };
        let home = self.return_reply(party, client, asked, state.answer(), outcome, None)?;
        let redirected = is_followed.then(|| Arc::new(redirected));
        let home = home.into_iter().map(|exchange| exchange.relayed(outcome, redirected.clone()));
        Ok(home.collect())
    }

    /// Follows the redirects among a client's answers.
    pub(super) fn follow(
        &self,
        client: Peer<'a>,
        asked: Leg,
        request: &Request,
        exchanges: Vec<Exchange>,
    ) -> Result<Vec<Exchange>, WalkError> {
        if exchanges.iter().all(|exchange| exchange.redirected.is_none()) {
            return Ok(exchanges);
        }
        let mut ends = Vec::new();
        for mut exchange in exchanges {
            match (exchange.redirected.take(), exchange.outcome) {
                (Some(redirected), Outcome::Status { after, .. }) => {
                    for next in
                        self.follow_redirect(client, asked, request, &redirected, &exchange)?
                    {
                        let outcome = next.outcome.later(after);
                        ends.push(Exchange { outcome, ..next });
                    }
                }
                _ => ends.push(exchange),
            }
        }
        Ok(self.merged(ends))
    }

    /// Returns the results of the call by which a client follows a redirect.
    fn follow_redirect(
        &self,
        client: Peer<'a>,
        asked: Leg,
        request: &Request,
        redirection: &Redirected,
        first_call: &Exchange,
    ) -> Result<Vec<Exchange>, WalkError> {
        let (host, path) = redirection.redirect.aim(&redirection.host, &redirection.path);
        let url = redirection.redirect.location(&redirection.host, &redirection.path);
        let next = Request {
            http: Some((host.to_owned(), path.to_owned())),
            tls: Some(redirection.redirect.tls),
            redirects: request.redirects + 1,
            redirect_urls: [request.redirect_urls.as_slice(), &[url]].concat(),
            controllers: request.controllers,
            ..Request::default()
        };
        let port = redirection.redirect.port;
        let is_same = redirection.redirect.host.is_none();
        let target = self.engine.aim_at_host(client, host, port, next);
        let addresses = if is_same {
            // The host is the same, and so is the address that the client uses.
            vec![SocketAddr::new(asked.dst.ip(), port.number())]
        } else {
            target.addresses
        };
        let failed = |outcome, mechanism| Exchange {
            outcome,
            mechanisms: Some(mechanism).into_iter().collect(),
            ..first_call.clone()
        };
        if addresses.is_empty() {
            return Ok(vec![failed(Outcome::NameNotFound, uturn_model::Mechanism::NameUnresolved)]);
        }
        let mut exchanges = Vec::new();
        let share = first_call.share.split(addresses.len());
        for address in &addresses {
            let Some(source) = self.engine.source(client, *address, Protocol::Tcp)? else {
                let lost = failed(Outcome::Unreachable, uturn_model::Mechanism::NoRoute);
                exchanges.push(Exchange { share, ..lost });
                continue;
            };
            let packet = Packet::new(Protocol::Tcp, source, *address);
            let mut state = PacketState::new(packet)
                .briefly(self.options.is_brief())
                .paced(self.engine.pace(client));
            state.share = share;
            state.chance = first_call.chance;
            state.supposed.clone_from(&first_call.supposed);
            state.failures.clone_from(&first_call.failures);
            state.hops.clone_from(&first_call.hops);
            if let Some(resolution) = target.resolved.as_ref().filter(|_| !is_same) {
                for step in &resolution.steps {
                    state.note(Place::Dns, step.clone());
                }
            }
            for mut exchange in self.call(client, &target.request, state)? {
                for mechanism in &first_call.mechanisms {
                    if !exchange.mechanisms.contains(mechanism) {
                        exchange.mechanisms.push(*mechanism);
                    }
                }
                exchange.mechanisms.sort_unstable();
                exchanges.push(exchange);
            }
        }
        Ok(exchanges)
    }
}
