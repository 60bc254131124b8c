//! Names whose addresses are not known: the verdicts of a flow if the name resolves as usual, and
//! if it does not resolve.

use std::net::IpAddr;

use uturn_model::{Evidence, Flow, Place, Text, Verdict};

use super::cases;
use super::table::either;
use crate::engine::Engine;
use crate::error::WalkError;
use crate::names::{self, UnresolvedReason};
use crate::{resolve, unjudged};

/// An address outside the cluster, from a range for documentation.
const ELSEWHERE: [u8; 4] = [203, 0, 113, 80];

/// A name whose addresses are not known.
pub(super) struct UnresolvedName {
    host: Text,
    why: UnresolvedReason,
}

/// Returns the name that a flow calls, if its addresses are not known.
pub(super) fn unresolved_name(
    engine: &Engine<'_>,
    flow: &Flow,
) -> Result<Option<UnresolvedName>, WalkError> {
    let Some(host) = flow.to.host() else { return Ok(None) };
    for client in resolve::clients(engine.cluster, &flow.from)? {
        // More is known of a Service that may exist elsewhere.
        if unjudged::lost_name(engine.cluster, client, &flow.to, true).is_some() {
            continue;
        }
        let resolved = resolve::aim_of(engine, client, flow)?.resolved;
        if let Some(why) = resolved.and_then(|resolution| resolution.doubt) {
            return Ok(Some(UnresolvedName { host: host.clone(), why }));
        }
    }
    Ok(None)
}

/// Returns the verdicts if the name does resolve, beside those if it does not.
pub(super) fn by_name(
    engine: &Engine<'_>,
    flow: &Flow,
    doubt: &UnresolvedName,
    nowhere: Vec<Verdict>,
) -> Result<Vec<Verdict>, WalkError> {
    let mut cluster = engine.cluster().clone();
    match &doubt.why {
        // A Service may be an alias of the outside name that is asked for.
        UnresolvedReason::Outside(name) => {
            cluster.dns.outside.push((name.as_str().into(), IpAddr::from(ELSEWHERE)));
        }
        UnresolvedReason::Unread | UnresolvedReason::Unmodelled(_) => {
            cluster.dns.corefile = Some(names::usual(&cluster));
            cluster.dns.node_local = None;
        }
    }
    let other = Engine::new(&cluster).map_err(|mut faults| faults.remove(0))?;
    let other = other.with_options(engine.options());
    // If the name is still unresolved, the case adds nothing.
    if unresolved_name(&other, flow)?.is_some_and(|still| still.why == doubt.why) {
        return Ok(nowhere);
    }
    let mut somewhere = cases(&other, flow)?;
    if let UnresolvedReason::Outside(name) = &doubt.why {
        let routes = somewhere.iter_mut().flat_map(|verdict| &mut verdict.routes);
        let hops = routes.flat_map(|route| &mut route.hops);
        let names = hops.filter(|hop| hop.place == Place::Dns);
        for step in names.flat_map(|hop| &mut hop.steps) {
            if matches!(step.by, Evidence::StatedName { .. }) {
                step.why = format!("{name} → some address outside").into();
                step.by = Evidence::Supposed { what: "one case of several".into() };
            }
        }
    }
    Ok(either(&somewhere, &nowhere, |verdict, leads| {
        verdict.conditions.insert(0, doubt.condition(leads));
    }))
}

impl UnresolvedName {
    fn condition(&self, leads: bool) -> Text {
        let host = &self.host;
        match (&self.why, leads) {
            (UnresolvedReason::Outside(name), true) => {
                format!("{name} has an address outside the cluster")
            }
            (UnresolvedReason::Outside(name), false) => format!("{name} has no address"),
            (UnresolvedReason::Unmodelled(_), false) => format!("{host} has no address"),
            (UnresolvedReason::Unread, true) => {
                "CoreDNS answers as usual, without the Corefile that cannot be read".to_owned()
            }
            (UnresolvedReason::Unread, false) => {
                "CoreDNS does not start with the Corefile that cannot be read".to_owned()
            }
            (UnresolvedReason::Unmodelled(why), true) => {
                format!("CoreDNS answers {host} as usual, whatever it makes of this: {why}")
            }
        }
        .into()
    }
}
