//! Annotations that change the behaviour of load balancers.

use uturn_model::Service;

use super::annotations::{BACKEND_TYPE, KEEPS_SOURCE, PROXY_PROTOCOL, backend_type, key};
use super::markers::is_network;
use crate::cloud::{Remedy, Want};

/// Returns the remedies for a [`Want`]. Only Network Load Balancers can replace the client's
/// address on layer 4, and only Classic Load Balancers have an address in the status.
pub(super) fn remedies(service: &Service, want: Want, name: &str) -> Vec<Remedy> {
    let is_network = is_network(service);
    match want {
        Want::ReplacedSource if is_network => vec![Remedy::annotation(key(KEEPS_SOURCE), "off")],
        Want::SourceInHeader if is_network => {
            let mut remedy = Remedy::annotation(key(KEEPS_SOURCE), "off");
            remedy.annotations.push((key(PROXY_PROTOCOL), "on".to_owned()));
            vec![remedy]
        }
        Want::PodTargets if backend_type(service) != Some("eni") => vec![
            Remedy::annotation(BACKEND_TYPE, "eni")
                .needs(
                    "pods have network interfaces of their own",
                    None,
                    "the pod network has to be Terway",
                )
                .costs("the server groups are replaced: open connections break"),
        ],
        Want::CallsFromInside if !is_network => vec![Remedy::own_name(key(HOST_NAME), name)],
        _ => Vec::new(),
    }
}

/// The annotation with a name for the status in place of the address.
const HOST_NAME: &str = "hostname";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cloud::product::tests::service;

    #[test]
    fn classic_ones_cannot_replace_the_source() {
        let classic = service(&[], &[80]);
        assert!(remedies(&classic, Want::ReplacedSource, "").is_empty());
        assert_eq!(remedies(&classic, Want::CallsFromInside, "a.example").len(), 1);
        let mut network = service(&[], &[80]);
        network.load_balancer_class = Some("alibabacloud.com/nlb".into());
        let [source] = &*remedies(&network, Want::ReplacedSource, "") else { panic!("one") };
        assert_eq!(source.annotations, [(key(KEEPS_SOURCE), "off".to_owned())]);
        assert!(remedies(&network, Want::CallsFromInside, "a.example").is_empty());
    }
}
