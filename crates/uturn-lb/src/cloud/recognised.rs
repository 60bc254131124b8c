//! Clouds and programs that are recognised and not modelled yet. One that gets a model moves to
//! a folder of its own.

use super::{CloudEntry, Traces, Words};

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
