//! Assumptions that findings depend on.

use uturn_model::{Assumption, Text};

use crate::exchange::proxy_header::{supposed_of_servers, without_service};
use crate::exchange::uncertain_behaviour::{is_pick_by_hash, supposed_of_balancer};
use crate::journey::is_both_ways;

/// Returns whether an assumption is about a load balancer, a server or a rule that a flow passes:
/// findings about the flow then depend on it, or their shares mean something else.
pub fn is_condition(supposed: &Assumption) -> bool {
    supposed_of_balancer(supposed).is_some()
        || supposed_of_servers(supposed).is_some()
        || is_pick_by_hash(supposed)
        || is_both_ways(supposed)
}

/// Removes the Service or rule from such an assumption: several targets and nodes may share a
/// verdict.
pub fn without_names(supposed: &mut Assumption) {
    without_service(supposed);
    if is_both_ways(supposed) {
        supposed.because = Text::default();
    }
}
