//! ssl `DeployCertificateInstance` and `DescribeHostDeployRecordDetail`: sets the certificates of
//! listeners and domains through the ssl service.

use uturn_cloud_api::clb::{
    CertificateInput, ModifyDomainAttributesRequest, ModifyListenerRequest,
};
use uturn_cloud_api::ssl::{
    DeployCertificateInstanceRequest, DeployCertificateInstanceResponse, DeployRecordDetail,
    DescribeHostDeployRecordDetailRequest, DescribeHostDeployRecordDetailResponse,
};
use uturn_cloud_api::wire::error::{ApiError, ErrorCode};

use crate::actions::check::{self, given, parameter_error};
use crate::actions::number::number_of;
use crate::actions::{certificates, find, listeners, rules, time};
use crate::state::{ListenerCertificate, Task, Transaction};

/// The only kind of resource that certificates can be deployed to here.
const RESOURCE: &str = "clb";
/// The number of records in an answer if the request sets none.
const DEFAULT_LIMIT: u64 = 10;
/// The upper bound of record numbers, so that every client can represent them.
const NUMBERS: u64 = 1 << 31;

/// `DeployCertificateInstance`: deploys a certificate to all places that the request names, or to
/// none. A place is `LOAD_BALANCER|LISTENER`, or `LOAD_BALANCER|LISTENER|DOMAIN` on listeners with
/// SNI.
///
/// `Status` asks for encryption to be on, as it always is on a listener with TLS.
pub(in crate::actions) fn deploy(
    transaction: &mut Transaction<'_>,
    request: &DeployCertificateInstanceRequest,
) -> Result<DeployCertificateInstanceResponse, ApiError> {
    let kind = given(request.resource_type.as_ref()).unwrap_or(RESOURCE);
    check::choice("ResourceType", kind, &[RESOURCE])?;
    let id = &request.certificate_id;
    let message = || format!("the certificate {id} does not exist");
    let is_authority = transaction.certificate(id).map(|certificate| certificate.is_authority);
    match is_authority {
        None => return Err(ApiError::new(ErrorCode::CertificateNotFound, message())),
        Some(true) => return Err(parameter_error(format!("{id} is an authority's certificate"))),
        Some(false) => {}
    }
    if request.instance_id_list.is_empty() {
        return Err(parameter_error("the parameter `InstanceIdList` is empty"));
    }
    for place in &request.instance_id_list {
        deploy_to(transaction, place, id)?;
    }
    let number = number(transaction.context.request_id);
    Ok(DeployCertificateInstanceResponse { deploy_record_id: Some(number), deploy_status: Some(1) })
}

fn deploy_to(
    transaction: &mut Transaction<'_>,
    place: &str,
    certificate: &str,
) -> Result<(), ApiError> {
    let mut parts = place.split('|');
    let (load_balancer, listener, domain) = (parts.next(), parts.next(), parts.next());
    let (Some(load_balancer_id), Some(listener_id), None) = (load_balancer, listener, parts.next())
    else {
        let message = format!(
            "{place:?} in `InstanceIdList` is not LOAD_BALANCER|LISTENER or \
             LOAD_BALANCER|LISTENER|DOMAIN"
        );
        return Err(parameter_error(message));
    };
    let missing = ErrorCode::InvalidParameter;
    let found = find::load_balancer(transaction, load_balancer_id, missing)?;
    let listener = find::listener(found, listener_id, missing)?;
    let (load_balancer_id, listener_id) = (load_balancer_id.to_owned(), listener_id.to_owned());
    match domain.filter(|domain| !domain.is_empty()) {
        None => {
            let certificate = Some(input(listener.certificate.as_ref(), certificate));
            let request = ModifyListenerRequest {
                load_balancer_id,
                listener_id,
                certificate,
                ..ModifyListenerRequest::default()
            };
            listeners::modify::modify(transaction, &request)?;
        }
        Some(domain) => {
            let mut rules = listener.rules.iter();
            let rule = rules.find(|rule| rule.domains.iter().any(|known| known == domain));
            let current = rule.and_then(|rule| rule.certificate.as_ref());
            let request = ModifyDomainAttributesRequest {
                load_balancer_id,
                listener_id,
                domain: domain.to_owned(),
                certificate: Some(input(current, certificate)),
                ..ModifyDomainAttributesRequest::default()
            };
            rules::domain_attributes::modify(transaction, &request)?;
        }
    }
    Ok(())
}

/// Returns the new certificate. The settings for clients' certificates stay as they are.
fn input(current: Option<&ListenerCertificate>, id: &str) -> CertificateInput {
    let current = current.map(certificates::view).unwrap_or_default();
    CertificateInput {
        ssl_mode: current.ssl_mode,
        ssl_verify_client: current.ssl_verify_client,
        cert_id: Some(id.to_owned()),
        cert_ca_id: current.cert_ca_id,
        ..CertificateInput::default()
    }
}

/// `DescribeHostDeployRecordDetail`: describes the status of a deployment, by load balancer.
pub(in crate::actions) fn describe(
    transaction: &mut Transaction<'_>,
    request: &DescribeHostDeployRecordDetailRequest,
) -> Result<DescribeHostDeployRecordDetailResponse, ApiError> {
    let wanted = request.deploy_record_id.as_str();
    let mut tasks = transaction.tasks().iter();
    let found = tasks.find(|(request, _)| number(request).to_string() == wanted);
    let (_, task) =
        found.ok_or_else(|| parameter_error(format!("the deployment {wanted} does not exist")))?;
    let now = transaction.context.now;
    let total = i64::try_from(task.load_balancers.len()).unwrap_or(i64::MAX);
    let count = |status: i64| if task.status_code(now) == status { total } else { 0 };
    let number = |value: u64| usize::try_from(value).unwrap_or(usize::MAX);
    let details = (1..).zip(&task.load_balancers);
    let details = details.skip(number(request.offset.unwrap_or(0)));
    let details = details.take(number(request.limit.unwrap_or(DEFAULT_LIMIT)));
    let details = details.map(|(id, load_balancer)| detail(transaction, task, id, load_balancer));
    Ok(DescribeHostDeployRecordDetailResponse {
        total_count: Some(total),
        deploy_record_detail_list: Some(details.collect()),
        success_total_count: Some(count(0)),
        failed_total_count: Some(count(1)),
        running_total_count: Some(count(2)),
        pending_total_count: Some(0),
    })
}

fn detail(
    transaction: &Transaction<'_>,
    task: &Task,
    id: u64,
    load_balancer: &str,
) -> DeployRecordDetail {
    let began = time::written(task.began);
    DeployRecordDetail {
        id: Some(id),
        instance_id: Some(load_balancer.to_owned()),
        instance_name: transaction.load_balancer(load_balancer).map(|known| known.name.clone()),
        // 0 is waiting, 1 deployed, 2 failed, 3 running.
        status: Some(match task.status_code(transaction.context.now) {
            0 => 1,
            1 => 2,
            _ => 3,
        }),
        error_msg: Some(String::new()),
        create_time: Some(began.clone()),
        update_time: Some(began),
        region: Some(transaction.context.region.to_owned()),
        ..DeployRecordDetail::default()
    }
}

/// Returns the number of the deployment of a request, which is derived from the request's id.
fn number(request: &str) -> u64 {
    1 + number_of(request, NUMBERS - 1)
}
