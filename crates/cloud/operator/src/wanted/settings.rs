//! Users' settings for listeners and rules, in the API's terms.

use uturn_cloud_api::clb::HealthCheck;
use uturn_clouds::cloud::Owner;
use uturn_clouds::cloud::tke::annotations::PREVENT_LOOPBACK;
use uturn_model::Family;
use uturn_model::lb::{
    Layer, ListenerOverride, ListenerProtocol, RuleOverride, Scheduler, StatedHealthCheck,
    StatedProbeSource,
};

use super::balancer;
use crate::clb::{ListenerSettings, RuleKey, RuleSettings};

/// The annotation that the controllers write on Services whose `spec.sessionAffinity` turned on
/// session persistence.
pub const AFFINITY_NOTE: &str = "uturn.dev/session-affinity";

/// The longest time, in seconds, that a client may stay with its target on layer 4.
const MAX_SESSION: u32 = 3600;
/// The shortest such time.
const MIN_SESSION: u32 = 30;

/// Returns the settings of a listener.
pub(super) fn of_listener(
    owner: Owner<'_>,
    protocol: ListenerProtocol,
    stated: Option<&ListenerOverride>,
) -> ListenerSettings {
    let snat = stated.and_then(|stated| stated.snat);
    if protocol.layer() == Layer::L7 {
        let keepalive = stated.and_then(|stated| stated.keepalive);
        return ListenerSettings { keepalive, snat, ..ListenerSettings::default() };
    }
    let scheduler = stated.and_then(|stated| stated.scheduler);
    let of_config = stated.and_then(|stated| stated.session_seconds);
    let has_reset = matches!(protocol, ListenerProtocol::Tcp | ListenerProtocol::Udp);
    ListenerSettings {
        session_seconds: of_config.or(affinity(owner)).filter(|_| has_reset).map(i64::from),
        // The API does not accept a hash scheduler when a listener on layer 4 is created.
        scheduler: scheduler
            .filter(|scheduler| *scheduler != Scheduler::SourceHash)
            .map(|scheduler| name(scheduler).to_owned()),
        health_check: listener_check(owner, protocol, stated),
        keepalive: None,
        snat,
        resets_on_unbind: stated
            .and_then(|stated| stated.resets_on_unbind)
            .filter(|_| protocol == ListenerProtocol::Tcp),
    }
}

/// Returns the settings of a rule.
pub(super) fn of_rule(stated: Option<&ListenerOverride>, key: &RuleKey) -> RuleSettings {
    let Some(rule) = stated.and_then(|stated| rule(stated, key)) else {
        return RuleSettings::default();
    };
    let check = rule.check.as_ref();
    let source = check.and_then(|check| check.source).map(source);
    RuleSettings {
        session_seconds: rule.session_seconds.map(i64::from),
        scheduler: rule.scheduler.map(|scheduler| name(scheduler).to_owned()),
        health_check: check.map(|check| health_check(check, source, true)),
        forward_type: rule.forward_type.as_deref().map(str::to_owned),
    }
}

/// Returns the settings for a rule, found by its domain and path. The domain `*` stands for all
/// domains without their own settings.
fn rule<'s>(stated: &'s ListenerOverride, key: &RuleKey) -> Option<&'s RuleOverride> {
    let named = |name: &str| stated.domains.iter().find(|domain| *domain.domain == *name);
    let domain = named(&key.domain).or_else(|| named("*"))?;
    let path = key.url.strip_prefix('=').unwrap_or(&key.url);
    domain.rules.iter().find(|rule| *rule.url == *path)
}

/// Returns the seconds that clients stay with their targets: those of `spec.sessionAffinity`,
/// within the API's limits. Without it, turns session persistence off only if
/// `spec.sessionAffinity` turned it on before.
fn affinity(owner: Owner<'_>) -> Option<u32> {
    let Owner::Service(service) = owner else { return None };
    let stated = service.affinity_seconds.map(|seconds| seconds.clamp(MIN_SESSION, MAX_SESSION));
    stated.or_else(|| service.annotations.get(AFFINITY_NOTE).map(|_| 0))
}

fn name(scheduler: Scheduler) -> &'static str {
    match scheduler {
        Scheduler::WeightedRoundRobin => "WRR",
        Scheduler::LeastConnections => "LEAST_CONN",
        Scheduler::SourceHash => "IP_HASH",
    }
}

fn source(source: StatedProbeSource) -> i64 {
    match source {
        StatedProbeSource::Vip => 0,
        StatedProbeSource::Reserved => 1,
    }
}

/// Returns the health check of a listener on layer 4. If nodes bind the load balancer's address,
/// probes must not come from that address.
fn listener_check(
    owner: Owner<'_>,
    protocol: ListenerProtocol,
    stated: Option<&ListenerOverride>,
) -> Option<HealthCheck> {
    let check = stated.and_then(|stated| stated.check.as_ref());
    let binds =
        owner.annotations().is(PREVENT_LOOPBACK, "true") && balancer::family(owner) == Family::V4;
    let of_config = check.and_then(|check| check.source).map(source);
    let source = of_config.or(binds.then_some(1));
    match check {
        Some(check) => Some(health_check(check, source, protocol.layer() == Layer::L7)),
        None if source.is_some() => {
            Some(HealthCheck { source_ip_type: source, ..HealthCheck::default() })
        }
        None => None,
    }
}

/// Returns the stated settings of a health check. Settings for HTTP requests are left out of other
/// probes, because the API does not return them for those.
fn health_check(
    check: &StatedHealthCheck,
    source: Option<i64>,
    is_usually_http: bool,
) -> HealthCheck {
    let is_http = match check.protocol.as_deref() {
        None => is_usually_http,
        Some(protocol) => matches!(protocol, "HTTP" | "HTTPS"),
    };
    let for_http =
        |text: &Option<uturn_model::Text>| text.as_deref().filter(|_| is_http).map(str::to_owned);
    HealthCheck {
        health_switch: check.enabled.map(i64::from),
        time_out: check.timeout.map(i64::from),
        interval_time: check.interval.map(i64::from),
        health_num: check.rise.map(i64::from),
        un_health_num: check.fall.map(i64::from),
        http_code: check.codes.filter(|_| is_http).map(i64::from),
        http_check_path: for_http(&check.path),
        http_check_domain: for_http(&check.host),
        http_check_method: for_http(&check.method).map(|method| method.to_uppercase()),
        check_port: check.port.map(|port| port.number().into()),
        check_type: check.protocol.as_deref().map(str::to_owned),
        source_ip_type: source,
        ..HealthCheck::default()
    }
}
