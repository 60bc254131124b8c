//! Listeners in the form of answers.

use uturn_cloud_api::clb::Listener as Described;
use uturn_cloud_api::unserved::Unserved;

use crate::actions::rules::view::view as rule_view;
use crate::actions::{certificates, health_check, time};
use crate::state::{Listener, Protocol};

/// Returns a listener in the form of `DescribeListeners`, with a flag if it is not served.
pub(super) fn view(listener: &Listener, unserved: Option<Unserved>) -> Described {
    let is_layer_7 = listener.protocol.is_layer_7();
    let rules = || listener.rules.iter().map(|rule| rule_view(listener, rule)).collect();
    Described {
        listener_id: Some(listener.id.clone()),
        protocol: Some(listener.protocol.as_str().to_owned()),
        port: Some(listener.port.into()),
        certificate: listener.certificate.as_ref().map(certificates::view),
        health_check: listener.health_check.as_ref().map(|check| health_check::view(check, None)),
        scheduler: (!is_layer_7).then(|| listener.scheduler.as_str().to_owned()),
        session_expire_time: (!is_layer_7).then(|| listener.session_seconds.into()),
        sni_switch: Some(listener.sni.into()),
        rules: is_layer_7.then(rules),
        listener_name: Some(listener.name.clone()),
        create_time: Some(time::written(listener.created)),
        end_port: Some(listener.end_port.unwrap_or_default().into()),
        target_type: (!is_layer_7).then(|| "NODE".to_owned()),
        target_group: None,
        session_type: Some(listener.session_type.clone()),
        keepalive_enable: is_layer_7.then(|| listener.keepalive.into()),
        toa: Some(false),
        deregister_target_rst: Some(listener.resets_on_unbind),
        attr_flags: Some(attribute_flags(listener, unserved)),
        target_group_list: None,
        max_conn: Some(listener.max_connections),
        max_cps: Some(listener.max_new_connections),
        idle_connect_timeout: listener.idle_seconds.or(match listener.protocol {
            Protocol::Tcp => Some(900),
            Protocol::Udp => Some(300),
            _ => None,
        }),
        reschedule_interval: seconds(listener.rescheduling.seconds),
        data_compress_mode: listener.compression.clone(),
        reschedule_start_time: listener.rescheduling.start_seconds,
    }
}

fn seconds(seconds: Option<i64>) -> Option<u64> {
    seconds.and_then(|seconds| u64::try_from(seconds).ok())
}

/// Returns the flags of a listener. INF: the flags for rescheduling have the names of their
/// parameters.
fn attribute_flags(listener: &Listener, unserved: Option<Unserved>) -> Vec<String> {
    let rescheduling = &listener.rescheduling;
    let flags = [
        ("Stop", listener.is_stopped),
        ("SnatEnable", listener.snat),
        ("ProxyProtocol", listener.proxy_protocol),
        ("RescheduleTargetZeroWeight", rescheduling.on_zero_weight),
        ("RescheduleUnhealthy", rescheduling.on_death),
        ("RescheduleExpandTarget", rescheduling.on_change),
    ];
    let set = flags.into_iter().filter(|(_, is_set)| *is_set);
    set.map(|(flag, _)| flag.to_owned()).chain(unserved.map(Unserved::flag)).collect()
}
