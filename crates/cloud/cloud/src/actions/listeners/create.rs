//! `CreateListener`.

use uturn_cloud_api::clb::{CreateListenerRequest, CreateListenerResponse};
use uturn_cloud_api::wire::error::{ApiError, ErrorCode};

use super::settings::{Allowed, Settings};
use crate::actions::check::{self, given, missing, parameter_error, quota_error, value_error};
use crate::actions::health_check::{self, Checked};
use crate::actions::{certificates, find};
use crate::state::{IpVersion, Listener, ListenerCertificate, LoadBalancer, Protocol, Transaction};

/// The most ports of a request.
const MAX_PORTS: usize = 49;

/// `CreateListener`: creates a listener for each port.
pub(in crate::actions) fn create(
    transaction: &mut Transaction<'_>,
    request: &CreateListenerRequest,
) -> Result<CreateListenerResponse, ApiError> {
    let id = &request.load_balancer_id;
    let load_balancer = find::load_balancer(transaction, id, ErrorCode::InvalidParameter)?;
    let allowed = Allowed::from(load_balancer);
    let is_v6 = load_balancer.ip_version != IpVersion::V4;
    let protocol = protocol(&request.protocol)?;
    check_offered(request, protocol)?;
    let ports = ports(request, protocol)?;
    check_ports(load_balancer, protocol, &ports)?;
    let limit = transaction.context.quotas.listeners;
    if load_balancer.listeners.len() + ports.len() > limit {
        return Err(quota_error("listeners of a load balancer", limit));
    }
    let names = names(request, ports.len())?;
    let template = template(transaction, request, protocol, is_v6, allowed)?;
    let mut ids = Vec::with_capacity(ports.len());
    for (ports, name) in ports.into_iter().zip(names) {
        let listener = Listener {
            id: transaction.context.ids.resource("lbl"),
            name,
            port: ports.first,
            end_port: ports.last,
            ..template.clone()
        };
        ids.push(listener.id.clone());
        let load_balancer = transaction.load_balancer_mut(id, ErrorCode::InvalidParameter)?;
        load_balancer.listeners.push(listener);
    }
    Ok(CreateListenerResponse { listener_ids: Some(ids) })
}

/// Returns the protocol with this name, which may be in lower case, as in the documentation.
pub(super) fn protocol(name: &str) -> Result<Protocol, ApiError> {
    Protocol::parse(&name.to_ascii_uppercase()).ok_or_else(|| {
        let known = "TCP, UDP, HTTP, HTTPS, TCP_SSL, QUIC";
        value_error(format!("the parameter `Protocol` is {name:?}; one of {known} is needed"))
    })
}

/// Refuses parameters for features that this server does not have, instead of ignoring them.
fn check_offered(request: &CreateListenerRequest, protocol: Protocol) -> Result<(), ApiError> {
    let asked = [
        ("H2cSwitch", request.h2c_switch.unwrap_or(false)),
        ("SslCloseSwitch", request.ssl_close_switch.unwrap_or(false)),
        ("FullEndPorts", request.full_end_ports.as_ref().is_some_and(|ports| !ports.is_empty())),
    ];
    if let Some((parameter, _)) = asked.into_iter().find(|(_, is_asked)| *is_asked) {
        let message = format!("this server does not offer the parameter `{parameter}`");
        return Err(value_error(message));
    }
    if given(request.scheduler.as_ref()) == Some("IP_HASH") {
        let message = "the parameter `Scheduler` is IP_HASH, which a listener gets by \
                       ModifyListener only";
        return Err(value_error(message));
    }
    if protocol.is_layer_7() && request.health_check.is_some() {
        let message = "the parameter `HealthCheck` is not for HTTP and HTTPS listeners, whose \
                       rules have health checks";
        return Err(parameter_error(message));
    }
    Ok(())
}

/// The ports of a listener.
#[derive(Clone, Copy, Debug)]
struct Ports {
    first: u16,
    last: Option<u16>,
}

impl Ports {
    fn of(listener: &Listener) -> Self {
        Self { first: listener.port, last: listener.end_port }
    }

    fn overlap(self, other: Self) -> bool {
        let last = |ports: Self| ports.last.unwrap_or(ports.first);
        self.first <= last(other) && other.first <= last(self)
    }
}

fn ports(request: &CreateListenerRequest, protocol: Protocol) -> Result<Vec<Ports>, ApiError> {
    check::count("Ports", &request.ports, 1..=MAX_PORTS)?;
    let ports = request.ports.iter().enumerate().map(|(position, port)| {
        Ok(Ports { first: check::port(&format!("Ports.{position}"), *port)?, last: None })
    });
    let mut ports = ports.collect::<Result<Vec<Ports>, ApiError>>()?;
    let Some(end) = request.end_port.filter(|end| *end != 0) else { return Ok(ports) };
    let last = check::port("EndPort", i64::try_from(end).unwrap_or(i64::MAX))?;
    let [range] = ports.as_mut_slice() else {
        return Err(parameter_error("the parameter `EndPort` needs exactly one of `Ports`"));
    };
    if protocol.is_layer_7() {
        return Err(parameter_error("the parameter `EndPort` is not for HTTP and HTTPS listeners"));
    }
    if last <= range.first {
        let first = range.first;
        return Err(value_error(format!("the range of ports {first} to {last} is empty")));
    }
    range.last = Some(last);
    Ok(ports)
}

/// Refuses ports that another listener has, or that occur twice, over the same transport.
fn check_ports(
    load_balancer: &LoadBalancer,
    protocol: Protocol,
    ports: &[Ports],
) -> Result<(), ApiError> {
    let conflict = |port: u16, with: &str| {
        let message = format!("the port {port} of {} conflicts with {with}", protocol.as_str());
        Err(ApiError::new(ErrorCode::PortCheckFailed, message))
    };
    for (position, wanted) in ports.iter().enumerate() {
        if ports[..position].iter().any(|earlier| earlier.overlap(*wanted)) {
            return conflict(wanted.first, "another one of the request");
        }
        let mut listeners = load_balancer.listeners.iter();
        let taken = listeners.find(|listener| {
            listener.protocol.is_over_udp() == protocol.is_over_udp()
                && Ports::of(listener).overlap(*wanted)
        });
        if let Some(listener) = taken {
            return conflict(wanted.first, &format!("the listener {}", listener.id));
        }
    }
    Ok(())
}

/// Returns a name for each port. INF: without names in the request, listeners have the empty name.
fn names(request: &CreateListenerRequest, number: usize) -> Result<Vec<String>, ApiError> {
    let names = request.listener_names.clone().unwrap_or_default();
    if names.is_empty() {
        return Ok(vec![String::new(); number]);
    }
    if names.len() != number {
        let found = names.len();
        let message = format!("{found} names for {number} ports: `ListenerNames` needs as many");
        return Err(parameter_error(message));
    }
    for (position, name) in names.iter().enumerate() {
        check::name(&format!("ListenerNames.{position}"), name)?;
    }
    Ok(names)
}

/// Returns the listener that the request describes, without its id, name and port.
fn template(
    transaction: &mut Transaction<'_>,
    request: &CreateListenerRequest,
    protocol: Protocol,
    is_v6: bool,
    allowed: Allowed,
) -> Result<Listener, ApiError> {
    let sni = check::switch("SniSwitch", request.sni_switch.unwrap_or(0))?;
    if sni && protocol != Protocol::Https {
        return Err(parameter_error("the parameter `SniSwitch` is for HTTPS listeners only"));
    }
    let certificate = certificate(transaction, request, protocol, sni)?;
    let checked = Checked { protocol, forward_type: None, is_v6 };
    let health_check = if protocol.is_layer_7() {
        None
    } else {
        Some(health_check::read(request.health_check.as_ref(), None, checked)?)
    };
    let created = transaction.context.now;
    let mut listener =
        Listener { health_check, certificate, sni, ..Listener::new(protocol, 0, created) };
    Settings::from(request).apply(&mut listener, allowed)?;
    Ok(listener)
}

/// Returns the certificates of a listener that terminates TLS without SNI. Such a listener needs
/// them, and no other may have any.
fn certificate(
    transaction: &mut Transaction<'_>,
    request: &CreateListenerRequest,
    protocol: Protocol,
    sni: bool,
) -> Result<Option<ListenerCertificate>, ApiError> {
    let needs_certificate = protocol.ends_tls() && !sni;
    let (single, several) = (request.certificate.as_ref(), request.multi_cert_info.as_ref());
    match (needs_certificate, single.is_some() || several.is_some()) {
        (true, false) => Err(missing("Certificate")),
        (false, true) => {
            let message = "certificates are for TCP_SSL, QUIC and HTTPS listeners without SNI only";
            Err(parameter_error(message))
        }
        _ => certificates::read(transaction, single, several),
    }
}
