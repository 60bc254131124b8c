//! Clouds and programs that are recognised and not modelled yet. One that gets a model moves to
//! a folder of its own.

use super::{CloudEntry, Traces, Words};

/// Alibaba Cloud.
pub static ALIBABA: CloudEntry = CloudEntry {
    words: Words::with_firewall("security group"),
    ..CloudEntry::recognised(
        "alibaba",
        "Alibaba Cloud",
        Traces {
            provider_ids: &["alicloud://", "ack-hybrid://"],
            provider_id_part: alibaba_region,
            node_keys: &["alibabacloud.com/"],
            service_keys: &[
                "service.beta.kubernetes.io/alibaba-cloud-",
                "service.beta.kubernetes.io/alicloud-",
                "service.beta.kubernetes.io/backend-type",
            ],
            load_balancer_classes: &[("alibabacloud.com/nlb", "Alibaba Cloud NLB")],
            host_names: &[
                (".nlb.aliyuncs.com", "Alibaba Cloud NLB"),
                (".alb.aliyuncs.com", "Alibaba Cloud ALB"),
            ],
            ingress_controllers: &[("ingress.k8s.alibabacloud/alb", "Alibaba Cloud ALB")],
            ..Traces::NONE
        },
    )
};

/// The region of a providerID without a scheme: `cn-hangzhou.i-bp1…`.
fn alibaba_region(id: &str) -> Option<&str> {
    let (region, instance) = id.split_once('.')?;
    let is_region = region.contains('-')
        && region.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-');
    (is_region && instance.starts_with("i-")).then_some(region)
}

/// Huawei Cloud.
pub static HUAWEI: CloudEntry = CloudEntry {
    words: Words::with_firewall("security group"),
    ..CloudEntry::recognised(
        "huawei",
        "Huawei Cloud",
        Traces {
            provider_ids: &["huaweicloud://"],
            service_keys: &["kubernetes.io/elb."],
            ingress_classes: &[("cce", "Huawei Cloud")],
            ..Traces::NONE
        },
    )
};

/// OpenStack, also as other providers run it.
pub static OPENSTACK: CloudEntry = CloudEntry {
    words: Words::with_firewall("security group"),
    ..CloudEntry::recognised(
        "openstack",
        "OpenStack",
        Traces {
            provider_ids: &["openstack://"],
            service_keys: &["loadbalancer.openstack.org/", "service.beta.kubernetes.io/openstack-"],
            ..Traces::NONE
        },
    )
};

/// Exoscale.
pub static EXOSCALE: CloudEntry = CloudEntry::recognised(
    "exoscale",
    "Exoscale",
    Traces {
        provider_ids: &["exoscale://"],
        service_keys: &["service.beta.kubernetes.io/exoscale-"],
        ..Traces::NONE
    },
);

/// Oracle Cloud.
pub static ORACLE: CloudEntry = CloudEntry {
    words: Words::with_firewall("security list"),
    ..CloudEntry::recognised(
        "oracle",
        "Oracle Cloud",
        Traces {
            provider_ids: &["oci://", "ocid1."],
            node_keys: &["oci.oraclecloud.com/"],
            service_keys: &[
                "oci.oraclecloud.com/",
                "service.beta.kubernetes.io/oci-",
                "oci-network-load-balancer.oraclecloud.com/",
            ],
            ..Traces::NONE
        },
    )
};

/// IBM Cloud.
pub static IBM: CloudEntry = CloudEntry::recognised(
    "ibm",
    "IBM Cloud",
    Traces {
        provider_ids: &["ibm://"],
        node_keys: &["ibm-cloud.kubernetes.io/"],
        service_keys: &["service.kubernetes.io/ibm-"],
        host_names: &[(".appdomain.cloud", "IBM Cloud")],
        ..Traces::NONE
    },
);

/// The load balancer that k3s brings.
pub static K3S: CloudEntry = CloudEntry {
    serves_services_only: true,
    ..CloudEntry::recognised(
        "k3s",
        "K3s ServiceLB",
        Traces { service_keys: &["svccontroller.k3s.cattle.io/"], ..Traces::NONE },
    )
};

/// F5's controller for its own devices.
pub static F5: CloudEntry = CloudEntry {
    serves_services_only: true,
    ..CloudEntry::recognised(
        "f5",
        "F5",
        Traces { service_keys: &["cis.f5.com/", "virtual-server.f5.com/"], ..Traces::NONE },
    )
};
