//! `ModifyListener`.

use uturn_cloud_api::clb::{ModifyListenerRequest, ModifyListenerResponse};
use uturn_cloud_api::wire::error::{ApiError, ErrorCode};

use super::settings::{Allowed, Settings};
use crate::actions::check::{self, missing, parameter_error};
use crate::actions::health_check::{self, Checked};
use crate::actions::{certificates, find};
use crate::state::{IpVersion, Listener, ListenerCertificate, Protocol, Transaction};

/// The code for unknown ids.
const MISSING: ErrorCode = ErrorCode::InvalidParameter;

/// `ModifyListener`. Settings that the request leaves out stay as they are.
pub(in crate::actions) fn modify(
    transaction: &mut Transaction<'_>,
    request: &ModifyListenerRequest,
) -> Result<ModifyListenerResponse, ApiError> {
    let empty = ModifyListenerRequest {
        load_balancer_id: request.load_balancer_id.clone(),
        listener_id: request.listener_id.clone(),
        ..ModifyListenerRequest::default()
    };
    if *request == empty {
        return Err(missing("ListenerName"));
    }
    let id = &request.load_balancer_id;
    let load_balancer = find::load_balancer(transaction, id, MISSING)?;
    find::listener(load_balancer, &request.listener_id, MISSING)?;
    let (single, several) = (request.certificate.as_ref(), request.multi_cert_info.as_ref());
    let certificate = certificates::read(transaction, single, several)?;

    let load_balancer = transaction.load_balancer_mut(id, MISSING)?;
    let allowed = Allowed::from(&*load_balancer);
    let is_v6 = load_balancer.ip_version != IpVersion::V4;
    let listener = find::listener_mut(load_balancer, &request.listener_id, MISSING)?;
    apply_sni(listener, request.sni_switch)?;
    if let Some(certificate) = certificate {
        apply_certificate(listener, certificate)?;
    }
    if let Some(name) = &request.listener_name {
        check::name("ListenerName", name)?;
        listener.name.clone_from(name);
    }
    if let Some(input) = &request.health_check {
        if listener.protocol.is_layer_7() {
            let message = "the parameter `HealthCheck` is not for HTTP and HTTPS listeners: \
                           ModifyRule changes the rule's";
            return Err(parameter_error(message));
        }
        let checked = Checked { protocol: listener.protocol, forward_type: None, is_v6 };
        let current = listener.health_check.as_ref();
        listener.health_check = Some(health_check::read(Some(input), current, checked)?);
    }
    Settings::from(request).apply(listener, allowed)?;
    Ok(ModifyListenerResponse {})
}

/// Turns SNI on, so that each domain gets the listener's certificates. SNI cannot be turned off.
fn apply_sni(listener: &mut Listener, switch: Option<i64>) -> Result<(), ApiError> {
    let Some(switch) = switch else { return Ok(()) };
    let wanted = check::switch("SniSwitch", switch)?;
    match (listener.sni, wanted) {
        (true, false) => Err(parameter_error("SNI cannot be turned off again")),
        (false, true) if listener.protocol != Protocol::Https => {
            Err(parameter_error("the parameter `SniSwitch` is for HTTPS listeners only"))
        }
        (false, true) => {
            listener.sni = true;
            let certificate = listener.certificate.take();
            for rule in &mut listener.rules {
                rule.certificate.clone_from(&certificate);
            }
            Ok(())
        }
        _ => Ok(()),
    }
}

fn apply_certificate(
    listener: &mut Listener,
    certificate: ListenerCertificate,
) -> Result<(), ApiError> {
    if listener.sni {
        let message = "with SNI each domain has certificates: ModifyDomainAttributes changes them";
        return Err(parameter_error(message));
    }
    if !listener.protocol.ends_tls() {
        let protocol = listener.protocol.as_str();
        return Err(parameter_error(format!("a {protocol} listener has no certificates")));
    }
    listener.certificate = Some(certificate);
    Ok(())
}
