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

use super::{CloudEntry, ProgramArgument, StatusShape, Words, argument};

/// The argument for the default targets of Services and Ingresses: `instance`, `ip`.
const DEFAULT_TARGET_TYPE: &str = "default-target-type";

/// The images of AWS's own controller.
const CONTROLLERS: &[&str] = &["aws-load-balancer-controller", "aws-alb-ingress-controller"];

/// Returns whether an argument of AWS's own controller makes pods the default targets.
fn are_pods_default(cluster: &Cluster) -> bool {
    argument(cluster, ENTRY.cloud, DEFAULT_TARGET_TYPE) == Some("ip")
}

/// The description of AWS.
pub static ENTRY: CloudEntry = CloudEntry {
    annotations: &[annotations::READ, alb::READ],
    writes: StatusShape::Names,
    words: Words::with_firewall("security group"),
    arguments: &[ProgramArgument { images: CONTROLLERS, name: DEFAULT_TARGET_TYPE }],
    products: &[&nlb::Nlb, &classic::Classic],
    ingress_products: &[&alb::Alb],
    remedies: remedies::remedies,
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
