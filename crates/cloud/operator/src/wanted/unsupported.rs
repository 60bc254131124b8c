//! What annotations ask for and these controllers do not do. What would be served otherwise than
//! it is asked for is not served at all; of the rest users are told.

use uturn_clouds::cloud::Owner;
use uturn_clouds::cloud::tke::{annotations as keys, pod_weights};

use super::{Maker, balancer};
use crate::event::Event;

/// An annotation of this project: what asks for something that is not done is left as it is.
pub const REFUSED: &str = "E9001";
/// Something is not done, and the rest is.
pub const NOT_DONE: &str = "W9001";

/// What the endings of annotations of Services and Ingresses ask for that changes where requests
/// go.
const REFUSING: [(&str, &str); 5] = [
    ("cross-region-id", "a load balancer in another region"),
    ("cross-vpc-id", "a load balancer in another network"),
    ("hybrid-type", "targets outside of the cloud"),
    ("target-groups", "target groups"),
    ("certificate", "certificates without Secrets"),
];
/// What they ask for beside that.
const WARNING: [(&str, &str); 5] = [
    ("modification-protection", "no call of the API protects listeners from changes by hand"),
    ("deletion-protection", "the load balancer can be deleted by hand"),
    ("enable-grace-deletion", "pods do not wait with their end until their weight is 0"),
    ("loadbalance-retain", "the load balancer is deleted with its object"),
    ("mix-target-prefer", "targets have addresses of one family"),
];

impl Maker<'_> {
    /// Whether all can be done that an object's annotations ask for.
    pub(super) fn check_supported(&mut self, owner: Owner<'_>) -> bool {
        let prefix = match owner {
            Owner::Service(_) => "service.cloud.tencent.com",
            Owner::Ingress(_) => "ingress.cloud.tencent.com",
        };
        let written = |ending: &str| {
            let key = format!("{prefix}/{ending}");
            let value = owner.annotations().get(&key)?;
            (!value.is_empty() && value != "false").then_some(key)
        };
        let object = owner.object();
        let refused = REFUSING.iter().filter_map(|(ending, what)| Some((written(ending)?, what)));
        let refused: Vec<Event> = refused
            .map(|(key, what)| {
                let message =
                    format!("{key} asks for {what}, which is not done: nothing is changed");
                Event::new(&object, REFUSED, message)
            })
            .collect();
        let warned = WARNING.iter().filter_map(|(ending, what)| Some((written(ending)?, what)));
        let warned = warned
            .map(|(key, what)| Event::new(&object, NOT_DONE, format!("{key} is not done: {what}")));
        self.events.extend(warned);
        let is_refused = !refused.is_empty();
        self.events.extend(refused);
        self.check_weights(owner);
        if !balancer::has_readable_snat(owner) {
            let message = "the annotation snat-pro-info cannot be read: no address is created";
            self.events.push(Event::new(&object, NOT_DONE, message));
        }
        !is_refused
    }

    /// Weights that cannot be read count as nothing.
    fn check_weights(&mut self, owner: Owner<'_>) {
        let text = self.model.pod_weights(owner);
        if text.is_some_and(|text| !pod_weights::is_readable(text)) {
            let key = match owner {
                Owner::Service(_) => keys::POD_WEIGHTS,
                Owner::Ingress(_) => keys::INGRESS_POD_WEIGHTS,
            };
            let message =
                format!("the annotation {key} cannot be read: all targets weigh the same");
            self.events.push(Event::new(&owner.object(), NOT_DONE, message));
        }
    }
}
