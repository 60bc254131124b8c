//! Health checks of targets.

use std::time::Duration;

use uturn_model::lb::{HealthCheck, HealthQuestion, ProbeSource};

/// A health check of the target itself. `count` answers change what is known of it.
pub(crate) fn check(interval: Duration, count: u32) -> HealthCheck {
    HealthCheck {
        source: ProbeSource::Vip,
        interval,
        timeout: Duration::from_secs(5),
        rise: count,
        fall: count,
        keeps_address: false,
        question: HealthQuestion::Target,
    }
}
