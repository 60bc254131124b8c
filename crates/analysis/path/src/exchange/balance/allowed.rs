//! The sources that a load balancer's own firewall lets in.

use uturn_model::lb::{Listener, Scope};
use uturn_model::route::{Step, StepKind};
use uturn_model::{Assumption, Cluster, Evidence, LoadBalancer};

use crate::add_missing::add_missing;
use crate::exchange::uncertain_behaviour::assumed_behaviour;
use crate::journey::stands_for_public_address;
use crate::origin;
use crate::packet::PacketState;

/// Returns why a listener does not let a packet in, if it does not. If the public address with
/// which the packet left is not given, the packet is assumed to be let in.
pub(super) fn denied(
    cluster: &Cluster,
    balancer: &LoadBalancer,
    listener: &Listener,
    state: &mut PacketState,
) -> Option<Step> {
    let allowed = listener.profile.allowed_sources.as_ref()?;
    let leg = state.packet.leg();
    let source = leg.src.ip();
    if allowed.iter().any(|range| range.contains(&source)) {
        return None;
    }
    let owner = &listener.rules.first()?.owner;
    let is_public = balancer.scope == Scope::Public;
    if is_public && stands_for_public_address(source) {
        let supposed = Assumption {
            subject: format!("loadBalancerSourceRanges of {}", owner.short()).into(),
            assumed: "they have the public address that this call comes from".into(),
            because: "which address that is, is not given".into(),
            settle: "curl a service that tells your address from a pod, or look at the NAT gateway"
                .into(),
        };
        add_missing(&mut state.supposed, vec![supposed]);
        return None;
    }
    if let Some(doubt) = &listener.profile.assumption {
        add_missing(&mut state.supposed, vec![assumed_behaviour(&listener.profile.name, doubt)]);
    }
    let why = format!("loadBalancerSourceRanges do not have {source}");
    let by = Evidence::object(owner.clone(), origin::of(cluster, owner));
    Some(Step::new(StepKind::Drop, why, by).seeing(leg))
}
