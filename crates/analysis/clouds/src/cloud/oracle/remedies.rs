//! Annotations that change the behaviour of load balancers.

use uturn_model::Service;

use super::nlb::{self, KEEPS_SOURCE, PROXY_PROTOCOL};
use crate::cloud::{NewStatus, Remedy, Want};

/// Returns the remedies for a [`Want`]. The Load Balancer always replaces the client's address.
pub(super) fn remedies(service: &Service, want: Want, _: &str) -> Vec<Remedy> {
    let is_network = super::product(service) == nlb::NAME;
    match want {
        Want::ReplacedSource if is_network => vec![Remedy::annotation(KEEPS_SOURCE, "false")],
        Want::SourceInHeader if is_network => {
            let mut remedy = Remedy::annotation(KEEPS_SOURCE, "false");
            remedy.annotations.push((PROXY_PROTOCOL.to_owned(), "true".to_owned()));
            vec![remedy]
        }
        Want::CallsFromInside => {
            vec![Remedy::annotation(IP_MODE, "proxy").with_status(NewStatus::ModeProxy)]
        }
        _ => Vec::new(),
    }
}

/// The annotation for the `ipMode` that the controller writes into the status: `vip` or `proxy`.
pub(super) const IP_MODE: &str = "oci.oraclecloud.com/ingress-ip-mode";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cloud::oracle::TYPE;
    use crate::cloud::product::tests::service;

    #[test]
    fn a_proxy_has_no_source_to_replace() {
        let proxy = service(&[], &[80]);
        assert!(remedies(&proxy, Want::ReplacedSource, "").is_empty());
        let network = service(&[(TYPE, "nlb")], &[80]);
        let [header] = &*remedies(&network, Want::SourceInHeader, "") else { panic!("one") };
        let keys: Vec<&str> = header.annotations.iter().map(|(key, _)| &**key).collect();
        assert_eq!(keys, [KEEPS_SOURCE, PROXY_PROTOCOL]);
        for service in [proxy, network] {
            let [inside] = &*remedies(&service, Want::CallsFromInside, "") else { panic!("one") };
            assert_eq!(inside.status, NewStatus::ModeProxy);
        }
    }
}
