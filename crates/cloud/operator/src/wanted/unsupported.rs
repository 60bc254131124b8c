//! Annotations that these controllers do not support. An object with one that changes where
//! requests go is left as it is; for all others, users get a warning and the object is served.

use uturn_clouds::cloud::Owner;
use uturn_clouds::cloud::tke::{annotations as keys, pod_weights};

use super::{Maker, balancer};
use crate::event::Event;

/// The code, of this project, for an object that is left as it is because an annotation is not
/// supported.
pub const REFUSED: &str = "E9001";
/// The code for a part that is not supported, while the rest is done.
pub const NOT_DONE: &str = "W9001";

/// The endings of unsupported annotations that change where requests go, with their meaning.
/// Objects with one of them are left as they are.
const REFUSING: [(&str, &str); 5] = [
    ("cross-region-id", "a load balancer in another region"),
    ("cross-vpc-id", "a load balancer in another network"),
    ("hybrid-type", "targets outside of the cloud"),
    ("target-groups", "target groups"),
    ("certificate", "certificates without Secrets"),
];
/// The endings of other unsupported annotations, with the consequence of ignoring them.
const WARNING: [(&str, &str); 5] = [
    ("modification-protection", "no call of the API protects listeners from changes by hand"),
    ("deletion-protection", "the load balancer can be deleted by hand"),
    ("enable-grace-deletion", "pods do not delay their end until their weight is 0"),
    ("loadbalance-retain", "the load balancer is deleted with its object"),
    ("mix-target-prefer", "targets have addresses of one family"),
];

impl Maker<'_> {
    /// Returns whether an object has no annotation because of which it is left as it is. Adds
    /// events for unsupported annotations.
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
                    format!("{key} asks for {what}, which is not supported: nothing is changed");
                Event::new(&object, REFUSED, message)
            })
            .collect();
        let warned = WARNING.iter().filter_map(|(ending, what)| Some((written(ending)?, what)));
        let warned = warned.map(|(key, what)| {
            Event::new(&object, NOT_DONE, format!("{key} is not supported: {what}"))
        });
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

    /// Warns of weights that cannot be read, which are ignored.
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
