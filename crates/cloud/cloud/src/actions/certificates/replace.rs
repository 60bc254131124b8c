//! `ReplaceCertForLoadBalancers` and `DescribeLoadBalancerListByCertId`.

use uturn_cloud_api::clb::{
    CertIdRelatedWithLoadBalancers, CertificateInput, DescribeLoadBalancerListByCertIdRequest,
    DescribeLoadBalancerListByCertIdResponse, ReplaceCertForLoadBalancersRequest,
    ReplaceCertForLoadBalancersResponse,
};
use uturn_cloud_api::wire::error::{ApiError, ErrorCode};

use super::input;
use crate::actions::check;
use crate::actions::load_balancers::view::view;
use crate::state::{Listener, ListenerCertificate, LoadBalancer, Transaction};

/// The most ids of a request.
const MAX_IDS: usize = 20;

/// `ReplaceCertForLoadBalancers`: replaces a certificate by another one of the same kind wherever
/// it is used.
pub(in crate::actions) fn replace(
    transaction: &mut Transaction<'_>,
    request: &ReplaceCertForLoadBalancersRequest,
) -> Result<ReplaceCertForLoadBalancersResponse, ApiError> {
    let old = &request.old_certificate_id;
    let is_authority = transaction.certificate(old).map(|certificate| certificate.is_authority);
    let is_authority = is_authority
        .ok_or_else(|| check::parameter_error(format!("the certificate {old} does not exist")))?;
    let new = new_certificate(transaction, &request.certificate, is_authority)?;
    let load_balancers = transaction.load_balancers().into_values();
    let using = load_balancers.filter(|load_balancer| uses(load_balancer, old));
    let using: Vec<String> = using.map(|load_balancer| load_balancer.id.clone()).collect();
    for id in using {
        let load_balancer = transaction.load_balancer_mut(&id, ErrorCode::InvalidParameter)?;
        for listener in &mut load_balancer.listeners {
            for certificate in of_listener_mut(listener) {
                exchange(certificate, old, &new);
            }
        }
    }
    transaction.leave_task();
    Ok(ReplaceCertForLoadBalancersResponse {})
}

/// Returns the id of the new certificate, which has the kind of the old one.
fn new_certificate(
    transaction: &mut Transaction<'_>,
    given: &CertificateInput,
    is_authority: bool,
) -> Result<String, ApiError> {
    if !is_authority {
        let single = CertificateInput { ssl_mode: None, ..given.clone() };
        let read = input::read(transaction, Some(&single), None)?;
        let server = read.and_then(|read| read.servers.into_iter().next());
        return server.ok_or_else(|| check::parameter_error("there is no new certificate"));
    }
    input::authority(transaction, given)
}

/// `DescribeLoadBalancerListByCertId`: lists the load balancers that use certificates.
pub(in crate::actions) fn describe(
    transaction: &mut Transaction<'_>,
    request: &DescribeLoadBalancerListByCertIdRequest,
) -> Result<DescribeLoadBalancerListByCertIdResponse, ApiError> {
    check::count("CertIds", &request.cert_ids, 1..=MAX_IDS)?;
    let load_balancers = transaction.load_balancers();
    let related = request.cert_ids.iter().map(|id| {
        let using = load_balancers.values().filter(|load_balancer| uses(load_balancer, id));
        let using = using.map(|load_balancer| view(transaction, load_balancer)).collect();
        CertIdRelatedWithLoadBalancers { cert_id: Some(id.clone()), load_balancers: Some(using) }
    });
    Ok(DescribeLoadBalancerListByCertIdResponse { cert_set: Some(related.collect()) })
}

/// Returns whether a listener or a rule of a load balancer uses a certificate.
pub(in crate::actions) fn uses(load_balancer: &LoadBalancer, id: &str) -> bool {
    load_balancer.listeners.iter().any(|listener| {
        let of_rules = listener.rules.iter().filter_map(|rule| rule.certificate.as_ref());
        let mut certificates = listener.certificate.iter().chain(of_rules);
        certificates.any(|certificate| {
            certificate.servers.iter().chain(&certificate.authority).any(|known| known == id)
        })
    })
}

fn of_listener_mut(listener: &mut Listener) -> impl Iterator<Item = &mut ListenerCertificate> {
    let of_rules = listener.rules.iter_mut().filter_map(|rule| rule.certificate.as_mut());
    listener.certificate.iter_mut().chain(of_rules)
}

fn exchange(certificate: &mut ListenerCertificate, old: &str, new: &str) {
    let ids = certificate.servers.iter_mut().chain(&mut certificate.authority);
    for id in ids.filter(|id| *id == old) {
        new.clone_into(id);
    }
}
