//! The wanted parts of load balancers that exist but are not served: the cloud's data plane may
//! refuse a listener, or may be unreachable.

use std::collections::BTreeMap;

use uturn_cloud_api::unserved::Unserved;
use uturn_model::ObjectRef;

use super::Plan;
use crate::clb::ListenerKey;
use crate::event::Event;
use crate::observed;
use crate::wanted::Wish;

/// The code for a failure of the load balancers' API, for both kinds of objects.
const CODE: &str = "E5003";

/// Adds the objects with listeners on a load balancer that are not served to a plan, with events.
/// Frozen objects are left out, because they have their own events.
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
