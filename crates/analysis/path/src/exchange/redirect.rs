//! Answers that redirect the client to another address.

use std::sync::Arc;
use std::time::Duration;

use uturn_model::route::{Step, StepKind};
use uturn_model::{Evidence, Outcome};

use super::return_reply;
use crate::engine::walk::Walk;
use crate::error::WalkError;
use crate::packet::{Call, Exchange, PacketState, Peer, Redirected};

/// The number of redirects that clients follow. More are a loop.
const MAX_REDIRECTS: u8 = 20;

/// Answers a request with a redirect. The client follows it once it has the answer, whatever
/// forwarded its call.
pub(super) fn answer(
    walk: &Walk<'_, '_>,
    party: Peer<'_>,
    call: &Call<'_>,
    redirected: Redirected,
    by: Evidence,
    mut state: PacketState,
) -> Result<Vec<Exchange>, WalkError> {
    let url = redirected.redirect.location(&redirected.host, &redirected.path);
    let code = redirected.redirect.code;
    let is_loop = call.request.redirect_urls.contains(&url);
    let is_followed = call.request.redirects < MAX_REDIRECTS && !is_loop;
    let why = match (is_loop, is_followed) {
        (true, _) => {
            format!("answers {code}: ask {url}, as before: a redirect loop, and clients give up")
        }
        (false, true) => format!("answers {code}: ask {url}"),
        (false, false) => format!("answers {code}: ask {url}; clients follow no further"),
    };
    state.note(party.place(), Step::new(StepKind::Answer, why, by));
    let outcome = Outcome::Status { code, after: Duration::ZERO };
    let home = return_reply(walk, party, call, state.answer(), outcome, None)?;
    let redirected = is_followed.then(|| Arc::new(redirected));
    let home = home.into_iter().map(|exchange| exchange.relayed(outcome, redirected.clone()));
    Ok(home.collect())
}
