//! Health checks: the kind, the times and the source of a data plane's probes.

use std::time::Duration;

use uturn_clouds::cloud::tke::PROBE_RANGES;
use uturn_lb::config::{HttpMethod, Probe};
use uturn_model::lb::{self, ProbeSource};

use crate::state::{CheckType, HealthCheck, ProbeSourceType};

/// Returns the times and the source of probes; `None` if targets are not probed.
pub(super) fn check(check: &HealthCheck) -> Option<lb::HealthCheck> {
    check.enabled.then(|| lb::HealthCheck {
        source: match check.source {
            ProbeSourceType::Vip => ProbeSource::Vip,
            ProbeSourceType::Reserved => ProbeSource::Reserved(PROBE_RANGES),
        },
        interval: Duration::from_secs(check.interval.into()),
        timeout: Duration::from_secs(check.timeout.into()),
        rise: check.rise.into(),
        fall: check.fall.into(),
        keeps_address: false,
        question: lb::HealthQuestion::Target,
    })
}

/// Returns the kind of probe; `None` for the default of the listener's transport.
pub(super) fn probe(check: &HealthCheck, notes: &mut Vec<String>) -> Option<Probe> {
    if let Some(port) = check.port {
        notes.push(format!("targets are probed at their own port, not at {port}"));
    }
    match check.check_type {
        CheckType::Tcp | CheckType::Ping => None,
        CheckType::Http => Some(http(check)),
        CheckType::Https | CheckType::Grpc => {
            notes.push(
                "targets are probed with a connection: this data plane has no probes over \
                        TLS or gRPC"
                    .to_owned(),
            );
            None
        }
        CheckType::Custom => {
            match (bytes(check, check.send.as_deref()), bytes(check, check.expect.as_deref())) {
                (Some(send), Some(expect)) => Some(Probe::Exchange { send, expect }),
                _ => {
                    notes.push(
                        "the texts of the custom health check are not hexadecimal".to_owned(),
                    );
                    None
                }
            }
        }
    }
}

fn http(check: &HealthCheck) -> Probe {
    Probe::Http {
        method: match check.http_method.as_deref() {
            Some("GET") => HttpMethod::Get,
            _ => HttpMethod::Head,
        },
        path: check.http_path.as_deref().unwrap_or("/").into(),
        host: check.http_domain.as_deref().map(Into::into),
        classes: (1..=5).filter(|class| check.http_codes & 1 << (class - 1) != 0).collect(),
    }
}

/// Returns the bytes of a custom check's text; `None` if it is marked as hexadecimal and is not.
fn bytes(check: &HealthCheck, text: Option<&str>) -> Option<Vec<u8>> {
    let text = text.unwrap_or_default();
    match check.context_type.as_deref() {
        Some("HEX") => uturn_cloud_api::wire::tc3::unhex(text),
        _ => Some(text.as_bytes().to_vec()),
    }
}
