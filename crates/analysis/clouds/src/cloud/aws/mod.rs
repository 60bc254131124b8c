//! Amazon Web Services and its load balancers.
//!
//! | file | what it says |
//! | --- | --- |
//! | `alb` | Application Load Balancers of Ingresses |
//! | `annotations` | the keys that the two controllers read, and lists within their values |
//! | `markers` | the markers by which the cloud is recognised, and the product of a Service |
//! | `nlb` | Network Load Balancers, of either controller |
//! | `classic` | Classic Load Balancers |
//! | `remedies` | the annotations that change their behaviour |

mod alb;
mod annotations;
mod check_remedies;
mod classic;
mod markers;
mod nlb;
mod remedies;

use uturn_model::Cluster;

use super::{
    ByDefault, ClosedBy, CloudEntry, OpenEnd, Opening, ProgramArgument, Remedy, StatusShape, Words,
    argument,
};

/// The argument for the default targets of Services and Ingresses: `instance`, `ip`.
const DEFAULT_TARGET_TYPE: &str = "default-target-type";

/// The images of AWS's own controller.
const CONTROLLERS: &[&str] = &["aws-load-balancer-controller", "aws-alb-ingress-controller"];

/// Returns whether an argument of AWS's own controller makes pods the default targets.
fn are_pods_default(cluster: &Cluster) -> bool {
    argument(cluster, ENTRY.cloud, DEFAULT_TARGET_TYPE) == Some("ip")
}

/// The argument with which the controller opens the groups of targets for load balancers with groups of
/// the user's own, unless an annotation says otherwise.
const MANAGES_GROUPS: &str = "enable-manage-backend-security-group-rules";

/// Returns the end of the way to the targets where an object names security groups of its own: the
/// controller then opens the groups of nodes and pods only if it is asked to. `key` is the annotation
/// that asks, `stated` its value.
fn open_groups(
    cluster: &Cluster,
    groups: &str,
    (key, stated): (&str, Option<&str>),
    answer: Option<(u16, u64)>,
) -> Option<OpenEnd> {
    let is_argued = || argument(cluster, ENTRY.cloud, MANAGES_GROUPS) == Some("true");
    let is_managed = stated.map_or_else(is_argued, |value| value == "true");
    // Rules that Facts state are judged by a walk.
    let are_stated = cluster.nodes.values().any(|node| node.security_groups.is_some());
    (!is_managed && !are_stated).then(|| OpenEnd {
        by: ClosedBy::Group,
        because: format!(
            "it has security groups of its own ({groups}), and {key} does not ask the controller to let \
             them in to the targets"
        ),
        condition: "no rule of the groups of nodes and pods lets the load balancer in",
        answer,
        opening: Opening::Annotation(
            Remedy::annotation(key, "true")
                .costs("the controller adds rules to the groups of nodes or pods"),
        ),
    })
}

/// Returns that a load balancer is internal because nothing asks for the other.
fn internal_by_default(name: &str, key: &str) -> ByDefault {
    ByDefault {
        because: format!(
            "{key} is not set, and an {name} is internal then: clients on the internet have no route to \
             its addresses"
        ),
        remedy: Remedy::annotation(key, "internet-facing")
            .needs(
                "the VPC has public subnets for it",
                None,
                "they have a route to an internet gateway and the tag kubernetes.io/role/elb",
            )
            .costs("the load balancer is made anew with another name, and the internet reaches it"),
    }
}

/// The description of AWS.
pub static ENTRY: CloudEntry = CloudEntry {
    translates_public_addresses: true,
    annotations: &[annotations::READ, alb::READ],
    writes: StatusShape::Names,
    words: Words::with_firewall("security group"),
    arguments: &[
        ProgramArgument { images: CONTROLLERS, name: DEFAULT_TARGET_TYPE },
        ProgramArgument { images: CONTROLLERS, name: MANAGES_GROUPS },
    ],
    products: &[&nlb::Nlb, &classic::Classic],
    ingress_products: &[&alb::Alb],
    remedies: remedies::remedies,
    policy_switch: Some(("amazon-vpc-cni", "enable-network-policy-controller")),
    samples: &[
        &[("service.beta.kubernetes.io/aws-load-balancer-type", "nlb")],
        &[
            ("service.beta.kubernetes.io/aws-load-balancer-type", "nlb"),
            (
                "service.beta.kubernetes.io/aws-load-balancer-cross-zone-load-balancing-enabled",
                "true",
            ),
        ],
        &[
            ("service.beta.kubernetes.io/aws-load-balancer-type", "nlb"),
            ("service.beta.kubernetes.io/aws-load-balancer-internal", "true"),
        ],
        &[
            ("service.beta.kubernetes.io/aws-load-balancer-type", "external"),
            ("service.beta.kubernetes.io/aws-load-balancer-nlb-target-type", "ip"),
            ("service.beta.kubernetes.io/aws-load-balancer-scheme", "internal"),
        ],
        &[
            ("service.beta.kubernetes.io/aws-load-balancer-type", "external"),
            ("service.beta.kubernetes.io/aws-load-balancer-nlb-target-type", "instance"),
            (
                "service.beta.kubernetes.io/aws-load-balancer-target-group-attributes",
                "preserve_client_ip.enabled=false",
            ),
        ],
        &[
            ("service.beta.kubernetes.io/aws-load-balancer-type", "external"),
            ("service.beta.kubernetes.io/aws-load-balancer-nlb-target-type", "ip"),
            (
                "service.beta.kubernetes.io/aws-load-balancer-target-group-attributes",
                "preserve_client_ip.enabled=true",
            ),
        ],
        &[
            ("service.beta.kubernetes.io/aws-load-balancer-type", "external"),
            ("service.beta.kubernetes.io/aws-load-balancer-nlb-target-type", "instance"),
            ("service.beta.kubernetes.io/aws-load-balancer-proxy-protocol", "*"),
        ],
        &[("service.beta.kubernetes.io/aws-load-balancer-proxy-protocol", "*")],
        &[("service.beta.kubernetes.io/aws-load-balancer-internal", "true")],
    ],
    class_parameters: Some(alb::CLASS_PARAMETERS),
    ..CloudEntry::recognised("aws", "AWS", markers::MARKERS)
};
