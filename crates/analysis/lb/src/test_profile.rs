//! The behaviour of a load balancer for tests.

use std::time::Duration;

use uturn_model::lb::{
    Delivery, HealthCheck, HealthQuestion, Layer, PassiveCheck, PathNormalization, ProbeSource,
    Profile, Scheduler, Source, Statuses,
};

/// Returns the profile of a load balancer that keeps the source, avoids the client and, on layer 7,
/// tries another target.
pub(crate) fn profile(layer: Layer) -> Profile {
    let health_check = HealthCheck {
        source: ProbeSource::Vip,
        interval: Duration::from_secs(5),
        timeout: Duration::from_secs(2),
        rise: 3,
        fall: 3,
        question: HealthQuestion::Target,
        keeps_address: false,
    };
    Profile {
        name: "test".into(),
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
