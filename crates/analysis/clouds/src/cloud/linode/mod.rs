//! Linode: NodeBalancers, proxies in front of node ports.

mod remedies;

use uturn_model::lb::BehaviourAssumption;
use uturn_model::service::ServicePort;
use uturn_model::{Family, Service};

use super::{Annotation, CloudEntry, Markers, PortPlan, Product, ValueKind, by_host_name};
use crate::cloud::product::proxying;
use crate::cloud::values::{protocol_of, version_of};

const CLOUD: &str = "Linode";
const NAME: &str = "Linode NodeBalancer";

/// The description of Linode.
pub static ENTRY: CloudEntry = CloudEntry {
    annotations: &[READ],
    products: &[&Balancer],
    remedies: remedies::remedies,
    samples: &[
        &[("service.beta.kubernetes.io/linode-loadbalancer-default-proxy-protocol", "v1")],
        &[("service.beta.kubernetes.io/linode-loadbalancer-default-proxy-protocol", "v2")],
        &[("service.beta.kubernetes.io/linode-loadbalancer-default-protocol", "http")],
    ],
    ..CloudEntry::recognised(
        "linode",
        CLOUD,
        Markers {
            provider_ids: &["linode://"],
            service_keys: &[ANNOTATIONS],
            host_names: &[(".ip.linodeusercontent.com", CLOUD)],
            service_product: |_| Some(NAME),
            ..Markers::NONE
        },
    )
};

/// A load balancer of Linode.
struct Balancer;

impl Product for Balancer {
    fn name(&self) -> &'static str {
        NAME
    }

    fn port(&self, service: &Service, port: &ServicePort, family: Family) -> Option<PortPlan> {
        let own = settings_of_port(service, port.port.number());
        let read = |key: &str, usual: &str| {
            let own = own.as_ref().and_then(|own| Some(own.get(key)?.as_str()?.to_owned()));
            own.or_else(|| service.annotations.get(usual).map(str::to_owned))
        };
        let protocol = protocol_of(read("protocol", DEFAULT_PROTOCOL).as_deref(), port);
        let mut plan = proxying(NAME, service, protocol, family);
        let header = read("proxy-protocol", DEFAULT_PROXY_PROTOCOL[0]);
        let header =
            header.as_deref().or_else(|| service.annotations.get(DEFAULT_PROXY_PROTOCOL[1]));
        plan.profile.proxy_header = header.and_then(version_of);
        plan.profile.assumption = (!is_sure(service)).then(|| BehaviourAssumption {
            assumed: "it is a NodeBalancer".into(),
            because: "the nodes' cloud has it; until August 2026 its controller could be told to \
                      have Cilium announce addresses instead"
                .into(),
            settle: "look at --load-balancer-type of ccm-linode".into(),
        });
        Some(plan)
    }
}

/// Returns whether a Service itself shows that its load balancer is a NodeBalancer: by an
/// annotation that only NodeBalancers use, or by the name in its status.
fn is_sure(service: &Service) -> bool {
    service.annotations.iter().any(|(key, _)| key.starts_with(ANNOTATIONS))
        || by_host_name(&service.load_balancer).is_some_and(|(_, product)| product == CLOUD)
}

/// Returns the settings of an annotation for a single port, as JSON.
fn settings_of_port(service: &Service, port: u16) -> Option<serde_json::Value> {
    let text = service.annotations.get(&format!("{PORT}{port}"))?;
    serde_json::from_str(text).ok()
}

/// The prefix of all annotations of Linode.
const ANNOTATIONS: &str = "service.beta.kubernetes.io/linode-";
const PORT: &str = "service.beta.kubernetes.io/linode-loadbalancer-port-";
const DEFAULT_PROTOCOL: &str = "service.beta.kubernetes.io/linode-loadbalancer-default-protocol";
/// The keys of the annotation for the PROXY header of all ports, the older one last.
const DEFAULT_PROXY_PROTOCOL: [&str; 2] = [
    "service.beta.kubernetes.io/linode-loadbalancer-default-proxy-protocol",
    "service.beta.kubernetes.io/linode-loadbalancer-proxy-protocol",
];

/// The words for the protocols of ports and for their PROXY headers.
const SPOKEN: &[&str] = &["http", "https", "tcp", "udp", "none", "v1", "v2"];

/// The annotations that are read, with the kinds of their values.
const READ: &[Annotation] = &[
    Annotation::below(
        PORT,
        "*",
        ValueKind::Document { fields: &["protocol", "proxy-protocol"], words: SPOKEN },
    ),
    Annotation::new(DEFAULT_PROTOCOL, ValueKind::Words(SPOKEN)),
    Annotation::new(DEFAULT_PROXY_PROTOCOL[0], ValueKind::Words(SPOKEN)),
    Annotation::new(DEFAULT_PROXY_PROTOCOL[1], ValueKind::Words(SPOKEN)),
    Annotation::new(remedies::ONLY_NAME, ValueKind::Switch),
];

#[cfg(test)]
mod tests {
    use uturn_model::lb::{ListenerProtocol, ProxyVersion};

    use super::*;
    use crate::cloud::product::tests::{plan_of, service};

    #[test]
    fn a_port_has_its_own_settings_before_the_usual_ones() {
        let own = r#"{"protocol": "https", "tls-secret-name": "web", "proxy-protocol": "none"}"#;
        let notes = [(DEFAULT_PROXY_PROTOCOL[0], "v2"), (&*format!("{PORT}443"), own)];
        let service = service(&notes, &[80, 443]);
        let [plain, tls] = [80, 443].map(|port| plan_of(&Balancer, &service, port));
        assert_eq!(
            (plain.protocol, tls.protocol),
            (ListenerProtocol::Tcp, ListenerProtocol::Https)
        );
        assert_eq!(plain.profile.proxy_header, Some(ProxyVersion::V2));
        assert_eq!(tls.profile.proxy_header, None);
        assert_eq!(plain.profile.assumption, None);
    }

    #[test]
    fn only_the_cloud_of_the_nodes_leaves_a_doubt() {
        assert!(plan_of(&Balancer, &service(&[], &[80]), 80).profile.assumption.is_some());
    }
}
