//! What a flow calls, as objects and the steps of its walk tell it.

mod destination;

use std::net::SocketAddr;

use uturn_model::route::{Direction, StepKind};
use uturn_model::{
    Cluster, Evidence, NamespacedName, ObjectKind, ObjectRef, Place, Port, Verdict,
};

pub(crate) use self::destination::{Aim, aim};

/// The ingress controller that received calls, as walks show it.
#[derive(Clone, Debug, Default)]
pub(crate) struct MetController {
    /// The pod of the controller, and the port at which it received the calls.
    pub(crate) at: Option<(NamespacedName, Port)>,
    /// The object whose rule the controller applied: an Ingress or a route.
    pub(crate) rule_of: Option<ObjectRef>,
}

impl MetController {
    /// Finds the controller in the failing routes of a flow.
    pub(crate) fn of(cluster: &Cluster, verdicts: &[Verdict]) -> Self {
        let routes = verdicts.iter().flat_map(|verdict| &verdict.routes);
        let hops = routes.filter(|route| !route.outcome.is_fine()).flat_map(|route| &route.hops);
        let mut met = Self::default();
        for hop in hops.filter(|hop| hop.direction == Direction::Out) {
            let Place::Pod(name) = &hop.place else { continue };
            let pod = cluster.pods.get(name);
            if pod.and_then(|pod| cluster.controller_of(pod)).is_none() {
                continue;
            }
            for step in &hop.steps {
                let to = step.after.and_then(|leg| Port::new(leg.dst.port()));
                met.at = met.at.take().or_else(|| Some((name.clone(), to?)));
                if let Evidence::Object { object, .. } = &step.by
                    && (object.kind == ObjectKind::Ingress || object.kind.is_route())
                {
                    met.rule_of.get_or_insert_with(|| ObjectRef::clone(object));
                }
            }
        }
        met
    }
}

/// Returns the first destination of the client's packets: the address to which the name resolves.
pub(crate) fn sent_to(verdicts: &[Verdict]) -> Option<SocketAddr> {
    let routes = verdicts.iter().flat_map(|verdict| &verdict.routes);
    let mut steps = routes.flat_map(|route| &route.hops).flat_map(|hop| &hop.steps);
    steps.find(|step| step.kind == StepKind::Send)?.after.map(|leg| leg.dst)
}
