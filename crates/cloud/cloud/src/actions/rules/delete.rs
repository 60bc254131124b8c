//! `DeleteRule`.

use uturn_cloud_api::clb::{DeleteRuleRequest, DeleteRuleResponse};
use uturn_cloud_api::wire::error::{ApiError, ErrorCode};

use super::create::check_listener;
use super::{domain, redirections};
use crate::actions::check::{given, parameter_error};
use crate::actions::find;
use crate::state::{Listener, Transaction};

/// The code for unknown ids.
const MISSING: ErrorCode = ErrorCode::InvalidParameter;

/// `DeleteRule`: deletes rules by their ids, those of a domain, or the one of a domain and a URL.
/// The domain that the request names as default becomes the default; if it names none and the
/// default domain is deleted, the oldest remaining domain does.
pub(in crate::actions) fn delete(
    transaction: &mut Transaction<'_>,
    request: &DeleteRuleRequest,
) -> Result<DeleteRuleResponse, ApiError> {
    let load_balancer = transaction.load_balancer_mut(&request.load_balancer_id, MISSING)?;
    let listener = find::listener_mut(load_balancer, &request.listener_id, MISSING)?;
    check_listener(listener)?;
    let ids = meant(listener, request)?;
    listener.rules.retain(|rule| !ids.contains(&rule.id));
    if let Some(successor) = given(request.new_default_server_domain.as_ref()) {
        let successor = domain::group(listener, successor)?;
        domain::make_default(listener, &successor);
    }
    domain::ensure_default(listener);
    redirections::forget_broken(load_balancer);
    Ok(DeleteRuleResponse {})
}

/// Returns the ids of the rules to delete.
fn meant(listener: &Listener, request: &DeleteRuleRequest) -> Result<Vec<String>, ApiError> {
    let ids = request.location_ids.as_ref().filter(|ids| !ids.is_empty());
    let (domain, url) = (given(request.domain.as_ref()), given(request.url.as_ref()));
    match (ids, domain, url) {
        (Some(ids), None, None) => {
            for id in ids {
                find::rule(listener, id, MISSING)?;
            }
            Ok(ids.clone())
        }
        (None, Some(domain), url) => {
            let group = domain::group(listener, domain)?;
            let rules = listener.rules.iter().filter(|rule| domain::is_same(&rule.domains, &group));
            let rules = rules.filter(|rule| url.is_none_or(|url| rule.url == url));
            let ids: Vec<String> = rules.map(|rule| rule.id.clone()).collect();
            match url {
                Some(url) if ids.is_empty() => {
                    let id = &listener.id;
                    Err(parameter_error(format!("the rule {domain}{url} does not exist on {id}")))
                }
                _ => Ok(ids),
            }
        }
        _ => Err(parameter_error("either `LocationIds`, or `Domain` and perhaps `Url` are needed")),
    }
}
