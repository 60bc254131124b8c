//! TkeServiceConfigs: the properties that users set on the listeners that the controllers make.

use std::time::Duration;

use uturn_model::lb::{
    HealthCheck, Layer, ListenerOverride, ListenerProtocol, Profile, StatedHealthCheck,
    StatedProbeSource,
};
use uturn_model::{Cluster, NamespacedName, Port};

use super::{annotations, profile};
use crate::cloud::{OverridesField, OverridesObject, OverridesPlace, Owner};

/// The description of these objects.
pub(super) const OBJECT: OverridesObject = OverridesObject {
    kind: "TkeServiceConfig",
    group: "cloud.tencent.com",
    versions: &["cloud.tencent.com/v1alpha1"],
    layer_4: "l4Listeners",
    layer_7: "l7Listeners",
    replaced_source: OverridesField {
        name: "keepaliveEnable",
        condition: (
            "the account is allowed layer-7 SNAT and keepalive",
            "ask for it with a ticket; without it the sync fails",
        ),
        costs: &[
            "connections to servers stay open and are shared between clients",
            "to undo it set keepaliveEnable: 0: taking the field away changes nothing",
        ],
    },
    reserved_probes: OverridesField {
        name: "sourceIpType",
        condition: (
            "the account has the non-VIP health check source",
            "accounts since 2023-02-24 have it; others ask with a ticket",
        ),
        costs: &[],
    },
    reserved_probes_in_console: "health check source 100.64",
};

/// Returns the place where the listeners of a Service or an Ingress are configured: the object that
/// it names, otherwise the one that its controller makes.
pub(super) fn place(owner: Owner<'_>) -> OverridesPlace {
    let (named, auto, suffix) = keys(owner);
    let written = owner.annotations();
    let is_auto = written.is(auto, "true");
    match written.get(named).filter(|_| !is_auto) {
        Some(name) => OverridesPlace { name: name.to_owned(), switch: None },
        None => OverridesPlace {
            name: format!("{}-{suffix}", owner.name().name),
            switch: (!is_auto).then_some(auto),
        },
    }
}

/// Returns the annotation that names the object, the annotation that makes the controller create
/// it, and the suffix of the created object's name.
fn keys(owner: Owner<'_>) -> (&'static str, &'static str, &'static str) {
    match owner {
        Owner::Service(_) => (annotations::CONFIG, annotations::CONFIG_AUTO, "auto-service-config"),
        Owner::Ingress(_) => {
            (annotations::INGRESS_CONFIG, annotations::INGRESS_CONFIG_AUTO, "auto-ingress-config")
        }
    }
}

/// Returns the listeners whose properties the object of a Service or an Ingress sets.
pub(super) fn of<'c>(cluster: &'c Cluster, owner: Owner<'_>) -> &'c [ListenerOverride] {
    let place = place(owner);
    if place.switch.is_some() {
        return &[];
    }
    NamespacedName::new(owner.name().namespace.as_str(), &place.name)
        .ok()
        .and_then(|name| cluster.listener_overrides.get(&name))
        .map_or(&[], |overrides| &overrides.listeners)
}

/// Returns the properties set on the listener with this port, layer and transport protocol.
pub(super) fn listener<'c>(
    cluster: &'c Cluster,
    owner: Owner<'_>,
    port: Port,
    protocol: ListenerProtocol,
) -> Option<&'c ListenerOverride> {
    let key = |protocol: ListenerProtocol| (protocol.layer(), protocol.transport());
    let mut stated = of(cluster, owner).iter();
    stated.find(|listener| listener.port == port && key(listener.protocol) == key(protocol))
}

/// Applies the properties to the profile of a listener.
pub(super) fn apply(profile: &mut Profile, listener: &ListenerOverride) {
    let keeps_connections =
        listener.keepalive == Some(true) && listener.protocol.layer() == Layer::L7;
    if keeps_connections || listener.snat == Some(true) {
        profile.source = profile::snat();
    }
    if let Some(scheduler) = listener.scheduler {
        profile.scheduler = scheduler;
    }
    if listener.health_check == Some(false) {
        profile.health_check = None;
    }
    if let (Some(check), Some(stated)) = (&mut profile.health_check, listener.first_check()) {
        set_times(check, stated);
    }
    set_probe_source(profile, listener.probe_source);
}

fn set_times(check: &mut HealthCheck, stated: &StatedHealthCheck) {
    let seconds = |stated: Option<u16>| stated.map(|seconds| Duration::from_secs(seconds.into()));
    check.interval = seconds(stated.interval).unwrap_or(check.interval);
    check.timeout = seconds(stated.timeout).unwrap_or(check.timeout);
    check.rise = stated.rise.map_or(check.rise, u32::from);
    check.fall = stated.fall.map_or(check.fall, u32::from);
}

fn set_probe_source(profile: &mut Profile, source: Option<StatedProbeSource>) {
    if let (Some(check), Some(source)) = (&mut profile.health_check, source) {
        check.source = source.with_ranges(profile::PROBE_RANGES);
    }
}
