//! How kinds of load balancer behave. A cloud is a value, not a code path.

use std::net::IpAddr;
use std::time::Duration;

use ipnet::IpNet;
use uturn_model::Family;
use uturn_model::lb::{HealthCheck, Layer, PassiveCheck, ProbeSource, Profile, Scheduler, Source};

/// An address of the range that health checks come from when they do not come from the
/// VIP: 100.64.0.0/10. For IPv6 no range is documented; one that nobody else has stands
/// for it.
pub fn prober(family: Family) -> IpAddr {
    match family {
        Family::V4 => IpAddr::from([100, 64, 0, 1]),
        Family::V6 => IpAddr::from([0x100, 0, 0, 0, 0, 0, 0, 0x64]),
    }
}

/// The range that a CLB on layer 7 sends from when it replaces the source.
pub const SNAT_RANGE: &str = "100.127.0.0/16";

/// TKE's CLB: what its documentation says when nothing is configured.
pub fn tke_clb(layer: Layer) -> Profile {
    let health_check = HealthCheck {
        source: ProbeSource::Reserved,
        interval: Duration::from_secs(5),
        timeout: Duration::from_secs(2),
        rise: 3,
        fall: 3,
    };
    Profile {
        name: match layer {
            Layer::L4 => "tke-clb-l4".into(),
            Layer::L7 => "tke-clb-l7".into(),
        },
        source: Source::Kept,
        avoids_client: true,
        connect_timeout: Duration::from_secs(4),
        next_target: layer == Layer::L7,
        scheduler: Scheduler::WeightedRoundRobin,
        all_dead_all_alive: true,
        health_check: Some(health_check),
        passive_check: (layer == Layer::L7)
            .then_some(PassiveCheck { failures: 3, rest: Duration::from_secs(10) }),
    }
}

/// The source of a CLB whose listener replaces it (keepalive or SNAT switched on).
pub fn tke_snat() -> Source {
    Source::Replaced(SNAT_RANGE.parse::<IpNet>().expect("a constant range"))
}
