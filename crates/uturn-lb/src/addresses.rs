//! The addresses of load balancers.

use uturn_model::Cluster;
use uturn_model::lb::NamedAddress;

use crate::cloud::Owner;

/// The addresses of the load balancer of a Service or an Ingress: those of its status, and of an
/// entry that has only a name, those that the name has.
pub fn addresses(cluster: &Cluster, owner: Owner<'_>) -> Vec<NamedAddress> {
    let mut all: Vec<NamedAddress> = Vec::new();
    for entry in owner.status() {
        let found = match (entry.ip, &entry.hostname) {
            (Some(address), _) => vec![NamedAddress { address, zone: None }],
            (None, Some(host)) => cluster.dns.of_balancer(host).to_vec(),
            (None, None) => Vec::new(),
        };
        for new in found {
            if all.iter().all(|known| known.address != new.address) {
                all.push(new);
            }
        }
    }
    all
}
