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

/// What a load balancer says to a request that it sends elsewhere.
pub(crate) struct RedirectAnswer<'s> {
    pub(crate) redirect: &'s Redirect,
    /// What was asked for.
    pub(crate) host: &'s str,
    pub(crate) path: &'s str,
    pub(crate) by: Evidence,
}

impl<'a> Walk<'_, 'a> {
    /// Brings the answer to the client, who follows it.
    pub(crate) fn sent_elsewhere(
        &self,
        balancer: usize,
        client: Peer<'a>,
        asked: Leg,
        request: &Request,
        said: &RedirectAnswer<'_>,
        mut trip: PacketState,
    ) -> Result<Vec<Exchange>, WalkError> {
        let party = Peer::Balancer(balancer);
        let url = said.redirect.location(said.host, said.path);
        let code = said.redirect.code;
        let why = match request.followed < MOST {
            true => format!("answers {code}: ask {url}"),
            false => format!("answers {code}: ask {url}; clients follow no further"),
        };
        trip.note(self.engine.place(party), Step::new(StepKind::Answer, why, said.by.clone()));
        let late = trip.tries.delay();
        let answer = trip.answer();
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
            for next in self.goes_on(client, asked, request, said, &way)? {
                let outcome = next.outcome.later(late);
                ways.push(Exchange { outcome, ..next });
            }
        }
        Ok(self.merged(ways))
    }

    /// The call that a client makes when it was told to.
    fn goes_on(
        &self,
        client: Peer<'a>,
        asked: Leg,
        request: &Request,
        said: &RedirectAnswer<'_>,
        told: &Exchange,
    ) -> Result<Vec<Exchange>, WalkError> {
        let (host, path) = said.redirect.aim(said.host, said.path);
        let next = Request {
            http: Some((host.to_owned(), path.to_owned())),
            tls: Some(said.redirect.tls),
            followed: request.followed + 1,
        };
        let port = said.redirect.port;
        let is_same = said.redirect.host.is_none();
        let target = self.engine.aim_at_host(client, host, port, next);
        let addresses = match is_same {
            // It goes on with the address that it has.
            true => vec![SocketAddr::new(asked.dst.ip(), port.number())],
            false => target.addresses,
        };
        let failed = |outcome, mechanism| Exchange {
            outcome,
            mechanisms: Some(mechanism).into_iter().collect(),
            ..told.clone()
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
            let mut trip = PacketState::new(packet)
                .briefly(self.options.is_brief())
                .paced(self.engine.pace(client));
            trip.share = told.share / addresses.len() as f64;
            trip.chance = told.chance;
            trip.supposed.clone_from(&told.supposed);
            trip.hops.clone_from(&told.hops);
            if let Some(resolution) = target.resolved.as_ref().filter(|_| !is_same) {
                for step in &resolution.steps {
                    trip.note(Place::Dns, step.clone());
                }
            }
            for mut way in self.call(client, &target.request, trip)? {
                for mechanism in &told.mechanisms {
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
