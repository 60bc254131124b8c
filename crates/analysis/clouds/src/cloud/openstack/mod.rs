//! OpenStack, also as other providers run it, and the load balancers of Octavia.
//!
//! | file | what it says |
//! | --- | --- |
//! | `annotations` | the keys that the controller reads |
//! | `octavia` | load balancers of Octavia, by either of its drivers |
//! | `remedies` | the annotations that change their behaviour |
//! | `ovh` | a provider that runs OpenStack: its markers, and its own load balancers |

mod annotations;
mod octavia;
mod ovh;
mod remedies;

use uturn_model::Service;

pub use ovh::OVH;

use super::{CloudEntry, Markers, Words};
use annotations::{LB_METHOD, get};
use octavia::{AMPHORA, AMPHORA_NAME, OVN, OVN_NAME};

/// The description of OpenStack.
pub static ENTRY: CloudEntry = CloudEntry {
    translates_public_addresses: true,
    annotations: &[annotations::READ],
    words: Words::with_firewall("security group"),
    products: &[&AMPHORA, &OVN],
    remedies: remedies::remedies,
    ..CloudEntry::recognised(
        "openstack",
        "OpenStack",
        Markers {
            provider_ids: &["openstack://"],
            service_keys: &["loadbalancer.openstack.org/", "service.beta.kubernetes.io/openstack-"],
            service_product: |service| Some(product(service)),
            ..Markers::NONE
        },
    )
};

/// Returns the product of a Service: only one driver picks targets by a hash of address and port,
/// and no other annotation shows the driver.
fn product(service: &Service) -> &'static str {
    if get(service, LB_METHOD).is_some_and(|method| method.eq_ignore_ascii_case("SOURCE_IP_PORT")) {
        OVN_NAME
    } else {
        AMPHORA_NAME
    }
}
