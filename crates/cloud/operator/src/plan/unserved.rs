//! What the cloud has and does not serve. A listener that is there is not one that is served: the
//! cloud's data plane may refuse it, or may have gone.

use std::collections::BTreeMap;

use uturn_cloud::unserved::Unserved;
use uturn_model::ObjectRef;

use super::Plan;
use crate::clb::ListenerKey;
use crate::event::Event;
use crate::observed;
use crate::wanted::Wish;

/// The code for both kinds of objects: the load balancers' API failed.
const CODE: &str = "E5003";

/// Adds to a plan which objects are not served that have listeners on a load balancer, and what
/// their users are told. Objects that are frozen are told why they are.
pub(super) fn add(
    found: Option<&observed::Balancer>,
    wanted: &BTreeMap<ListenerKey, Wish>,
    is_frozen: impl Fn(&ObjectRef) -> bool,
    plan: &mut Plan,
) {
    let Some(found) = found else { return };
    for (key, wish) in wanted {
        let listener = found.listeners.get(key);
        let whole = found.unserved.map(|why| (why, of_balancer(found, why)));
        let why = whole.or_else(|| {
            let why = listener?.unserved?;
            Some((why, of_listener(found, *key, why)))
        });
        if let Some((why, message)) = why.filter(|_| !is_frozen(&wish.owner)) {
            plan.events.push(Event::new(&wish.owner, CODE, message));
            plan.unserved.entry(wish.owner.clone()).or_insert(why);
        }
    }
}

fn of_balancer(found: &observed::Balancer, why: Unserved) -> String {
    format!("the load balancer {} is not served as it stands: {}", found.id, why.words())
}

fn of_listener(found: &observed::Balancer, key: ListenerKey, why: Unserved) -> String {
    format!("the listener {key} of {} is not served: {}", found.id, why.words())
}
