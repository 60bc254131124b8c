//! Reads the profile of a listener, whose fields may also be on the listener itself.

use std::time::Duration;

use uturn_document::{Node, Value, truth};
use uturn_model::lb::{
    Delivery, HealthCheck, HealthQuestion, Layer, ListenerProtocol, PassiveCheck,
    PathNormalization, ProbeSource, Profile, Scheduler, Source, Statuses,
};

use crate::decode::FromNode;
use crate::decode::value::one_of;

use super::form::{Form, set};
use super::probe::Probes;
use super::values::probe_source;

/// The fields that a listener and its `profile` may have.
pub(super) const FIELDS: [&str; 11] = [
    "source",
    "avoidsClient",
    "endsConnections",
    "connectTimeout",
    "nextTarget",
    "scheduler",
    "allDeadAllAlive",
    "panicThreshold",
    "healthCheck",
    "passiveCheck",
    "pathNormalization",
];

const MINUTE: Duration = Duration::from_secs(60);

/// Reads the fields of a profile, and the probes of its health checks.
pub(super) fn read<'d>(
    form: &Form<'_, 'd>,
    listener: &'d Node<'d>,
    protocol: Option<ListenerProtocol>,
) -> (Profile, Probes) {
    let is_layer_7 = protocol.is_some_and(|protocol| protocol.layer() == Layer::L7);
    let mut profile = Profile {
        name: "custom".into(),
        delivery: Delivery::ToTarget,
        source: Source::Kept,
        proxy_header: None,
        avoids_client: true,
        ends_connections: false,
        connect_timeout: Duration::from_secs(4),
        next_target: is_layer_7,
        scheduler: Scheduler::WeightedRoundRobin,
        panic_threshold: Some(0),
        health_check: Some(health_check()),
        passive_check: is_layer_7.then(passive_check),
        hairpin_source: None,
        source_of_other_family: None,
        target_tls: None,
        // A listener that a program derived from a cluster behaves like the cloud's.
        path_normalization: if is_layer_7 && !form.is_derived() {
            PathNormalization::Merge
        } else {
            PathNormalization::Off
        },
        statuses: Statuses::USUAL,
        allowed_sources: None,
        assumption: None,
    };
    let mut probes = Probes::of(protocol);
    fields(form, listener, &mut profile, &mut probes);
    if let Some(inner) = form.map(listener, "profile") {
        form.only(inner, &[&["name"][..], &FIELDS].concat());
        set(&mut profile.name, form.read(inner, "name"));
        for key in FIELDS {
            if let (Some(node), Some(_)) = (inner.get(key), listener.get(key)) {
                form.fault(node, format!("{key} is set on the listener already"));
            }
        }
        fields(form, inner, &mut profile, &mut probes);
    }
    (profile, probes)
}

/// The health check of a listener that states none.
fn health_check() -> HealthCheck {
    HealthCheck {
        source: ProbeSource::Vip,
        interval: Duration::from_secs(5),
        timeout: Duration::from_secs(2),
        rise: 3,
        fall: 3,
        question: HealthQuestion::Target,
        keeps_address: false,
    }
}

/// The passive check of a listener that states none.
fn passive_check() -> PassiveCheck {
    PassiveCheck { failures: 3, rest: Duration::from_secs(10) }
}

fn fields<'d>(form: &Form<'_, 'd>, node: &'d Node<'d>, profile: &mut Profile, probes: &mut Probes) {
    set(&mut profile.source, form.read(node, "source"));
    set(&mut profile.avoids_client, form.read(node, "avoidsClient"));
    set(&mut profile.ends_connections, form.read(node, "endsConnections"));
    let expected = "a time from 1ms to 1m";
    let range = Duration::from_millis(1)..=MINUTE;
    form.set_within(&mut profile.connect_timeout, node, "connectTimeout", range, expected);
    set(&mut profile.next_target, form.read(node, "nextTarget"));
    set(&mut profile.scheduler, form.read(node, "scheduler"));
    threshold(form, node, profile);
    if is_none(node, "healthCheck") {
        profile.health_check = None;
    } else if let Some(map) = form.map(node, "healthCheck") {
        profile.health_check = Some(read_health_check(form, map, probes));
    }
    if is_none(node, "passiveCheck") {
        profile.passive_check = None;
    } else if let Some(map) = form.map(node, "passiveCheck") {
        profile.passive_check = Some(read_passive_check(form, map));
    }
    set(&mut profile.path_normalization, form.read(node, "pathNormalization"));
    probes.is_off = profile.health_check.is_none();
}

/// Returns whether a field has the value `none`.
fn is_none(node: &Node<'_>, key: &str) -> bool {
    node.get(key).and_then(Node::as_str) == Some("none")
}

fn threshold<'d>(form: &Form<'_, 'd>, node: &'d Node<'d>, profile: &mut Profile) {
    let all_alive = form.read::<bool>(node, "allDeadAllAlive");
    let percent = form.within::<u8>(node, "panicThreshold", 0..=99, "a percentage from 0 to 99");
    if let (Some(false), Some(_), Some(stated)) = (all_alive, percent, node.get("panicThreshold")) {
        form.wrong(stated, "allDeadAllAlive is false, so no share of dead targets makes all alive");
    }
    match (all_alive, percent) {
        (Some(false), _) => profile.panic_threshold = None,
        (Some(true), None) => profile.panic_threshold = Some(0),
        (_, Some(percent)) => profile.panic_threshold = Some(percent),
        (None, None) => {}
    }
}

fn read_health_check<'d>(
    form: &Form<'_, 'd>,
    node: &'d Node<'d>,
    probes: &mut Probes,
) -> HealthCheck {
    form.only(node, &["source", "interval", "timeout", "rise", "fall", "probe"]);
    let mut check = health_check();
    set(&mut check.source, node.get("source").and_then(|node| probe_source(form, node)));
    let interval = Duration::from_millis(100)..=5 * MINUTE;
    let expected = "a time from 100ms to 5m";
    form.set_within(&mut check.interval, node, "interval", interval, expected);
    let timeout = Duration::from_millis(10)..=MINUTE;
    let stated = form.within(node, "timeout", timeout, "a time from 10ms to 1m");
    // If only an interval is stated, a probe still does not begin before the previous one ends.
    check.timeout = stated.unwrap_or_else(|| check.timeout.min(check.interval / 2));
    if let (Some(timeout), Some(node)) = (stated, node.get("timeout"))
        && timeout >= check.interval
    {
        let interval = check.interval;
        form.wrong(node, format!("expected less than the interval, which is {interval:?}"));
    }
    let range = 1..=100;
    form.set_within(&mut check.rise, node, "rise", range.clone(), "a number from 1 to 100");
    form.set_within(&mut check.fall, node, "fall", range, "a number from 1 to 100");
    probes.read(form, node);
    check
}

fn read_passive_check<'d>(form: &Form<'_, 'd>, node: &'d Node<'d>) -> PassiveCheck {
    form.only(node, &["failures", "rest"]);
    let mut check = passive_check();
    form.set_within(&mut check.failures, node, "failures", 1..=1000, "a number from 1 to 1000");
    let rest = Duration::from_millis(100)..=60 * MINUTE;
    form.set_within(&mut check.rest, node, "rest", rest, "a time from 100ms to 1h");
    check
}

impl FromNode for PathNormalization {
    const EXPECTED: &'static str = "off, merge or reject";

    fn from_node(node: &Node<'_>) -> Result<Self, String> {
        match &node.value {
            // YAML reads `off` as a truth value.
            Value::Bool(word) if !truth(word) => Ok(Self::Off),
            _ => one_of(
                node,
                &[("off", Self::Off), ("merge", Self::Merge), ("reject", Self::Reject)],
            ),
        }
    }
}
