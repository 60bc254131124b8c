//! Amazon Web Services and its load balancers.
//!
//! | file | what it says |
//! | --- | --- |
//! | `alb` | Application Load Balancers of Ingresses |
//! | `annotations` | the keys that the two controllers read, and lists within their values |
//! | `traces` | by what the cloud is recognised, and which product a Service gets |
//! | `nlb` | Network Load Balancers, of either controller |
//! | `classic` | Classic Load Balancers |
//! | `remedies` | what annotations make them do otherwise |

mod alb;
mod annotations;
mod classic;
mod nlb;
mod remedies;
mod traces;

use super::{CloudEntry, StatusShape, Words};

/// All that is known of it.
pub static ENTRY: CloudEntry = CloudEntry {
    annotations: &[annotations::READ, alb::READ],
    writes: StatusShape::Names,
    words: Words::with_firewall("security group"),
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
    ..CloudEntry::recognised("aws", "AWS", traces::TRACES)
};
