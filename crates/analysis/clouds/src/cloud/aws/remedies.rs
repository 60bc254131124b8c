//! Annotations that change the behaviour of Network Load Balancers.

use uturn_model::Service;

use super::annotations::{TARGET_GROUP_ATTRIBUTES, TARGET_TYPE, get, key};
use super::check_remedies::target_by_tcp;
use super::nlb::{Controller, is_nlb};
use crate::cloud::{Remedy, Want};

/// Returns the remedies for a [`Want`]. Classic Load Balancers have none, as they always replace
/// the source.
pub(super) fn remedies(service: &Service, want: Want, _: &str) -> Vec<Remedy> {
    if !is_nlb(service) {
        return Vec::new();
    }
    let own = Controller::of(service) != Controller::InTree;
    match want {
        Want::ReplacedSource => {
            vec![group_attributes(service, &[(KEEPS_SOURCE, "false")])]
        }
        Want::SourceInHeader => {
            vec![group_attributes(service, &[(KEEPS_SOURCE, "false"), (HEADER, "true")])]
        }
        Want::PodTargets => {
            let made_by = if own {
                "its class or type says so"
            } else {
                "the in-tree controller makes this one and knows nodes only; a new Service with \
                     loadBalancerClass service.k8s.aws/nlb gets a new load balancer with a new name"
            };
            vec![
                Remedy::annotation(key(TARGET_TYPE), "ip")
                    .needs(
                        "AWS Load Balancer Controller makes the load balancer",
                        Some(own),
                        made_by,
                    )
                    .costs("the target group is replaced: open connections break")
                    .costs("servers see an address of the load balancer instead of the client's"),
            ]
        }
        Want::NodePorts if get(service, TARGET_TYPE) == Some("ip") => {
            vec![
                Remedy::annotation(key(TARGET_TYPE), "instance")
                    .costs("the target group is replaced: open connections break")
                    .costs("a call may take a second hop, from a node to a pod on another node"),
            ]
        }
        Want::AnswerableChecks => {
            vec![target_by_tcp().costs("nodes without an endpoint are found by their closed node port instead of by kube-proxy's word")]
        }
        _ => Vec::new(),
    }
}

const KEEPS_SOURCE: &str = "preserve_client_ip.enabled";
const HEADER: &str = "proxy_protocol_v2.enabled";

/// Makes a remedy that sets some attributes of the target groups and keeps the others.
fn group_attributes(service: &Service, set: &[(&str, &str)]) -> Remedy {
    let written = get(service, TARGET_GROUP_ATTRIBUTES).unwrap_or_default();
    let kept = written.split(',').map(str::trim).filter(|pair| {
        let name = pair.split('=').next().unwrap_or_default().trim();
        !name.is_empty() && set.iter().all(|(new, _)| *new != name)
    });
    let all: Vec<String> = kept
        .map(str::to_owned)
        .chain(set.iter().map(|(name, value)| format!("{name}={value}")))
        .collect();
    let remedy = Remedy::annotation(key(TARGET_GROUP_ATTRIBUTES), all.join(","));
    match Controller::of(service) {
        Controller::Own | Controller::AutoMode => remedy,
        Controller::InTree => remedy.needs(
            "the cloud's controller reads this annotation",
            None,
            "the in-tree controller does since late 2025 (its lines 1.32 to 1.35); before, set the \
             attribute of the target groups with the AWS CLI or in the console",
        ),
    }
}

#[cfg(test)]
mod tests {
    use uturn_model::Origin;

    use super::*;

    fn service(notes: &[(&str, &str)]) -> Service {
        let mut service = Service::new("shop/web".parse().unwrap(), Origin::file("a.yaml"));
        service.annotations = notes.iter().map(|(name, value)| (key(name), *value)).collect();
        service
    }

    #[test]
    fn other_attributes_are_kept() {
        let notes = [
            ("type", "external"),
            ("target-group-attributes", "stickiness.enabled=true, preserve_client_ip.enabled=true"),
        ];
        let remedy = remedies(&service(&notes), Want::SourceInHeader, "").remove(0);
        let (_, value) = &remedy.annotations[0];
        assert_eq!(
            value,
            "stickiness.enabled=true,preserve_client_ip.enabled=false,proxy_protocol_v2.enabled=true"
        );
        assert!(remedy.needs.is_empty(), "{:?}", remedy.needs);
    }

    #[test]
    fn the_in_tree_controller_knows_nodes_only() {
        let in_tree = service(&[("type", "nlb")]);
        let pods = remedies(&in_tree, Want::PodTargets, "").remove(0);
        assert_eq!(pods.needs[0].holds, Some(false));
        let source = remedies(&in_tree, Want::ReplacedSource, "").remove(0);
        assert_eq!(source.needs[0].holds, None);
        assert!(remedies(&service(&[]), Want::ReplacedSource, "").is_empty(), "a Classic one");
    }

    #[test]
    fn pods_as_targets_become_nodes() {
        let pods = service(&[("type", "external"), ("nlb-target-type", "ip")]);
        let nodes = remedies(&pods, Want::NodePorts, "").remove(0);
        assert_eq!(nodes.annotations, [(key("nlb-target-type"), "instance".to_owned())]);
        let nodes = service(&[("type", "external"), ("nlb-target-type", "instance")]);
        assert!(remedies(&nodes, Want::NodePorts, "").is_empty());
    }
}
