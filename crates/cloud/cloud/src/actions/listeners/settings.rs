//! The settings that a listener can be created with and that can be changed later, each checked
//! against the listener's protocol.

use uturn_cloud_api::clb::{CreateListenerRequest, ModifyListenerRequest};
use uturn_cloud_api::wire::error::{ApiError, ErrorCode};

use crate::actions::check::{self, given, operation_error, parameter_error, value_error};
use crate::state::{IpVersion, Listener, LoadBalancer, Protocol, Scheduler};

/// The settings in a request. `None` leaves a setting as it is.
#[derive(Clone, Debug, Default)]
pub(super) struct Settings {
    session_seconds: Option<i64>,
    session_type: Option<String>,
    scheduler: Option<String>,
    target_type: Option<String>,
    keepalive: Option<i64>,
    snat: Option<bool>,
    resets_on_unbind: Option<bool>,
    on_zero_weight: Option<bool>,
    on_death: Option<bool>,
    on_change: Option<bool>,
    start_seconds: Option<i64>,
    seconds: Option<i64>,
    max_connections: Option<i64>,
    max_new_connections: Option<i64>,
    idle_seconds: Option<i64>,
    proxy_protocol: Option<bool>,
    compression: Option<String>,
}

macro_rules! settings_from {
    ($($request:ty),*) => {
        $(impl From<&$request> for Settings {
            fn from(request: &$request) -> Self {
                Self {
                    session_seconds: request.session_expire_time,
                    session_type: request.session_type.clone(),
                    scheduler: request.scheduler.clone(),
                    target_type: request.target_type.clone(),
                    keepalive: request.keepalive_enable,
                    snat: request.snat_enable,
                    resets_on_unbind: request.deregister_target_rst,
                    on_zero_weight: request.reschedule_target_zero_weight,
                    on_death: request.reschedule_unhealthy,
                    on_change: request.reschedule_expand_target,
                    start_seconds: request.reschedule_start_time,
                    seconds: request.reschedule_interval,
                    max_connections: request.max_conn,
                    max_new_connections: request.max_cps,
                    idle_seconds: request.idle_connect_timeout,
                    proxy_protocol: request.proxy_protocol,
                    compression: request.data_compress_mode.clone(),
                }
            }
        })*
    };
}

settings_from!(CreateListenerRequest, ModifyListenerRequest);

/// Properties of the load balancer that limit a listener's settings.
#[derive(Clone, Copy, Debug)]
pub(super) struct Allowed {
    is_v6: bool,
    has_sla: bool,
}

impl From<&LoadBalancer> for Allowed {
    fn from(load_balancer: &LoadBalancer) -> Self {
        Self {
            is_v6: load_balancer.ip_version != IpVersion::V4,
            has_sla: load_balancer.sla_type.is_some(),
        }
    }
}

impl Settings {
    /// Applies the settings to a listener.
    pub(super) fn apply(self, listener: &mut Listener, allowed: Allowed) -> Result<(), ApiError> {
        if let Some(target_type) = given(self.target_type.as_ref()) {
            check::choice("TargetType", target_type, &["NODE"])?;
        }
        self.apply_choice(listener, allowed)?;
        self.apply_rescheduling(listener)?;
        self.apply_limits(listener, allowed)?;
        self.apply_layer_7(listener)?;
        listener.snat = self.snat.unwrap_or(listener.snat);
        if let Some(proxy_protocol) = self.proxy_protocol {
            let has = [Protocol::TcpSsl, Protocol::Quic];
            require(proxy_protocol, "ProxyProtocol", listener, &has)?;
            listener.proxy_protocol = proxy_protocol;
        }
        Ok(())
    }

    /// Applies the scheduler and the session settings.
    fn apply_choice(&self, listener: &mut Listener, allowed: Allowed) -> Result<(), ApiError> {
        if let Some(scheduler) = given(self.scheduler.as_ref()) {
            let scheduler = Scheduler::parse(scheduler).ok_or_else(|| {
                value_error(format!("the parameter `Scheduler` is {scheduler:?}, which is unknown"))
            })?;
            require(scheduler != Scheduler::Wrr, "Scheduler", listener, &LAYER_4)?;
            listener.scheduler = scheduler;
        }
        if let Some(seconds) = self.session_seconds {
            let has = [Protocol::Tcp, Protocol::Udp];
            require(seconds != 0, "SessionExpireTime", listener, &has)?;
            listener.session_seconds = check::session_seconds(seconds, 30..=3600)?;
        }
        if let Some(session_type) = given(self.session_type.as_ref()) {
            check::choice("SessionType", session_type, &["NORMAL", "QUIC_CID"])?;
            session_type.clone_into(&mut listener.session_type);
        }
        let follows_quic = listener.session_type == "QUIC_CID";
        require(follows_quic, "SessionType", listener, &[Protocol::Udp])?;
        if follows_quic && (listener.scheduler != Scheduler::Wrr || allowed.is_v6) {
            let message = "the session type QUIC_CID needs the scheduler WRR and IPv4";
            return Err(parameter_error(message));
        }
        Ok(())
    }

    fn apply_rescheduling(&self, listener: &mut Listener) -> Result<(), ApiError> {
        let switches = [
            ("DeregisterTargetRst", self.resets_on_unbind, &mut listener.resets_on_unbind),
            (
                "RescheduleTargetZeroWeight",
                self.on_zero_weight,
                &mut listener.rescheduling.on_zero_weight,
            ),
            ("RescheduleUnhealthy", self.on_death, &mut listener.rescheduling.on_death),
            ("RescheduleExpandTarget", self.on_change, &mut listener.rescheduling.on_change),
        ];
        for (parameter, wanted, current) in switches {
            let Some(wanted) = wanted else { continue };
            match listener.protocol {
                // The published documentation allows UDP too, but real accounts refuse it.
                Protocol::Udp if wanted => {
                    let message = format!("the account has no reschedule function: `{parameter}`");
                    return Err(operation_error(message));
                }
                Protocol::Tcp | Protocol::Udp => *current = wanted,
                _ if wanted => return Err(not_for(parameter, listener.protocol)),
                _ => {}
            }
        }
        let times = [
            ("RescheduleStartTime", self.start_seconds, &mut listener.rescheduling.start_seconds),
            ("RescheduleInterval", self.seconds, &mut listener.rescheduling.seconds),
        ];
        for (parameter, wanted, current) in times {
            let Some(wanted) = wanted else { continue };
            if !matches!(listener.protocol, Protocol::Tcp | Protocol::Udp) {
                return Err(not_for(parameter, listener.protocol));
            }
            check::range(parameter, wanted, 0..=3600, ErrorCode::InvalidParameterValue)?;
            *current = Some(wanted);
        }
        Ok(())
    }

    fn apply_limits(&self, listener: &mut Listener, allowed: Allowed) -> Result<(), ApiError> {
        let code = ErrorCode::InvalidParameterValue;
        for (parameter, wanted, current) in [
            ("MaxConn", self.max_connections, &mut listener.max_connections),
            ("MaxCps", self.max_new_connections, &mut listener.max_new_connections),
        ] {
            let Some(wanted) = wanted else { continue };
            if wanted != -1 {
                if listener.protocol.is_layer_7() {
                    return Err(not_for(parameter, listener.protocol));
                }
                check::range(parameter, wanted, 1..=i64::MAX, code)?;
            }
            *current = wanted;
        }
        if let Some(seconds) = self.idle_seconds {
            let has = [Protocol::Tcp, Protocol::Udp];
            require(true, "IdleConnectTimeout", listener, &has)?;
            let max = if allowed.has_sla { 1980 } else { 900 };
            check::range("IdleConnectTimeout", seconds, 10..=max, code)?;
            listener.idle_seconds = Some(seconds);
        }
        Ok(())
    }

    fn apply_layer_7(&self, listener: &mut Listener) -> Result<(), ApiError> {
        let has = [Protocol::Http, Protocol::Https];
        if let Some(keepalive) = self.keepalive {
            let keepalive = check::switch("KeepaliveEnable", keepalive)?;
            require(keepalive, "KeepaliveEnable", listener, &has)?;
            listener.keepalive = keepalive;
        }
        if let Some(mode) = given(self.compression.as_ref()) {
            check::choice("DataCompressMode", mode, &["transparent", "compatibility"])?;
            require(mode != "transparent", "DataCompressMode", listener, &has)?;
            listener.compression = Some(mode.to_owned()).filter(|_| listener.protocol.is_layer_7());
        }
        Ok(())
    }
}

/// The protocols of layer 4, whose listeners have no rules.
const LAYER_4: [Protocol; 4] = [Protocol::Tcp, Protocol::Udp, Protocol::TcpSsl, Protocol::Quic];

/// Refuses a parameter that is set on a listener of another protocol than these.
fn require(
    is_set: bool,
    parameter: &str,
    listener: &Listener,
    protocols: &[Protocol],
) -> Result<(), ApiError> {
    if !is_set || protocols.contains(&listener.protocol) {
        return Ok(());
    }
    Err(not_for(parameter, listener.protocol))
}

fn not_for(parameter: &str, protocol: Protocol) -> ApiError {
    let protocol = protocol.as_str();
    parameter_error(format!("the parameter `{parameter}` is not for {protocol} listeners"))
}
