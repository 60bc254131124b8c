//! The behaviour of a CLB, as its documentation describes it.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::time::Duration;

use uturn_model::lb::{
    Delivery, HealthCheck, HealthQuestion, Layer, PassiveCheck, PathNormalization, ProbeRanges,
    ProbeSource, Profile, Scheduler, Source, Statuses,
};
use uturn_model::{IpNet, Ipv4Net, Ipv6Net};

/// The range from which a layer 7 CLB sends if it replaces the source.
const SNAT_RANGE: &str = "100.127.0.0/16";

/// The ranges from which health checks come if they do not come from the VIP. For IPv6 no range is
/// documented; an otherwise unused address stands for it.
pub const PROBE_RANGES: ProbeRanges = ProbeRanges {
    v4: Ipv4Net::new_assert(Ipv4Addr::new(100, 64, 0, 0), 10),
    v6: Ipv6Net::new_assert(Ipv6Addr::new(0x100, 0, 0, 0, 0, 0, 0, 0x64), 128),
};

/// Returns the range from which a layer 7 CLB sends if it replaces the source.
pub fn snat_range() -> IpNet {
    SNAT_RANGE.parse().expect("a constant range")
}

/// Returns the profile of a CLB with the default configuration.
pub fn clb(layer: Layer) -> Profile {
    let health_check = HealthCheck {
        source: ProbeSource::Reserved(PROBE_RANGES),
        interval: Duration::from_secs(5),
        timeout: Duration::from_secs(2),
        rise: 3,
        fall: 3,
        question: HealthQuestion::Target,
        keeps_address: false,
    };
    Profile {
        name: match layer {
            Layer::L4 => "tke-clb-l4".into(),
            Layer::L7 => "tke-clb-l7".into(),
        },
        delivery: Delivery::ToTarget,
        source: Source::Kept,
        proxy_header: None,
        avoids_client: true,
        ends_connections: false,
        connect_timeout: Duration::from_secs(4),
        next_target: layer == Layer::L7,
        scheduler: Scheduler::WeightedRoundRobin,
        panic_threshold: Some(0),
        health_check: Some(health_check),
        passive_check: (layer == Layer::L7)
            .then_some(PassiveCheck { failures: 3, rest: Duration::from_secs(10) }),
        hairpin_source: None,
        source_of_other_family: None,
        target_tls: None,
        path_normalization: PathNormalization::Off,
        statuses: Statuses::USUAL,
        allowed_sources: None,
        assumption: None,
    }
}

/// Returns the source of a CLB whose listener replaces the client's address (keepalive or SNAT
/// switched on).
pub fn snat() -> Source {
    Source::Replaced(snat_range())
}
