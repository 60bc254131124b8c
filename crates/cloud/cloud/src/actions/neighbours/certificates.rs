//! The ssl service: certificates, which belong to the account and to no region.

use uturn_cloud_api::ssl::{
    Certificates as Described, DeleteCertificateRequest, DeleteCertificateResponse,
    DescribeCertificateDetailRequest, DescribeCertificateDetailResponse,
    DescribeCertificatesRequest, DescribeCertificatesResponse, UploadCertificateRequest,
    UploadCertificateResponse,
};
use uturn_cloud_api::wire::error::{ApiError, ErrorCode};

use super::account;
use super::certificate_content::Content;
use crate::actions::certificates::input::{Upload, is_pem};
use crate::actions::certificates::replace::uses;
use crate::actions::check::{self, given, parameter_error};
use crate::actions::time;
use crate::state::{Certificate, Transaction};

/// The number of certificates in an answer if the request sets none, and the most that it contains.
const DEFAULT_LIMIT: u64 = 10;
const MAX_LIMIT: u64 = 1000;
/// The status of a certificate that can be used.
const APPROVED: u64 = 1;

/// `UploadCertificate`: stores a certificate. INF: if the request does not allow the same
/// certificate twice, the answer has the id of the first one in both members.
pub(in crate::actions) fn upload(
    transaction: &mut Transaction<'_>,
    request: &UploadCertificateRequest,
) -> Result<UploadCertificateResponse, ApiError> {
    let kind = given(request.certificate_type.as_ref()).unwrap_or("SVR");
    check::choice("CertificateType", kind, &["SVR", "CA"])?;
    let is_authority = kind == "CA";
    let key = given(request.certificate_private_key.as_ref());
    if !is_authority && key.is_none() {
        return Err(check::missing("CertificatePrivateKey"));
    }
    if given(request.key_password.as_ref()).is_some() {
        let message = "this server does not read keys with a password (`KeyPassword`)";
        return Err(parameter_error(message));
    }
    let content = request.certificate_public_key.as_str();
    check_pem("CertificatePublicKey", content, "CERTIFICATE")?;
    if let Some(key) = key {
        check_pem("CertificatePrivateKey", key, "PRIVATE KEY")?;
    }
    if request.repeatable == Some(false) {
        let is_same = |known: &&Certificate| known.chain.trim() == content.trim();
        if let Some(same) = transaction.certificates().find(is_same) {
            let id = Some(same.id.clone());
            return Ok(UploadCertificateResponse {
                certificate_id: id.clone(),
                repeat_cert_id: id,
            });
        }
    }
    let upload = Upload {
        name: Some(given(request.alias.as_ref()).unwrap_or("")),
        content: Some(content),
        key: key.filter(|_| !is_authority),
    };
    let id = upload.keep(transaction, is_authority, "CertificatePublicKey")?;
    Ok(UploadCertificateResponse { certificate_id: Some(id), repeat_cert_id: None })
}

fn check_pem(parameter: &str, text: &str, label: &str) -> Result<(), ApiError> {
    if is_pem(text, label) {
        return Ok(());
    }
    let message = format!("the parameter `{parameter}` is not in PEM");
    Err(ApiError::new(ErrorCode::CertificateParseError, message))
}

/// `DescribeCertificates`: lists certificates, the latest first.
pub(in crate::actions) fn describe(
    transaction: &mut Transaction<'_>,
    request: &DescribeCertificatesRequest,
) -> Result<DescribeCertificatesResponse, ApiError> {
    let mut found: Vec<&Certificate> =
        transaction.certificates().filter(|known| passes(known, request)).collect();
    found.sort_by(|left, right| right.created.cmp(&left.created).then(left.id.cmp(&right.id)));
    let total_count = u64::try_from(found.len()).ok();
    let number = |value: u64| usize::try_from(value).unwrap_or(usize::MAX);
    let limit = request.limit.unwrap_or(DEFAULT_LIMIT).min(MAX_LIMIT);
    let part = found.into_iter().skip(number(request.offset.unwrap_or(0))).take(number(limit));
    let uin = account::uin(transaction.context.account);
    let described = part.map(|certificate| (certificate, Content::read(&certificate.chain)));
    let described = described.map(|(certificate, content)| Described {
        owner_uin: Some(uin.clone()),
        project_id: Some("0".to_owned()),
        from: Some("upload".to_owned()),
        certificate_type: Some(type_of(certificate).to_owned()),
        alias: Some(certificate.name.clone()),
        status: Some(APPROVED),
        insert_time: Some(time::written(certificate.created)),
        product_zh_name: content.issuer,
        domain: content.domain,
        cert_begin_time: content.begins,
        cert_end_time: content.ends,
        is_wildcard: Some(content.names.iter().any(|name| name.starts_with("*."))),
        subject_alt_name: Some(content.names.clone()),
        cert_sa_ns: Some(content.names),
        is_vip: Some(false),
        is_dv: Some(false),
        is_vulnerability: Some(false),
        renew_able: Some(false),
        certificate_id: Some(certificate.id.clone()),
        deployable: Some(true),
        ..Described::default()
    });
    Ok(DescribeCertificatesResponse { total_count, certificates: Some(described.collect()) })
}

fn passes(certificate: &Certificate, request: &DescribeCertificatesRequest) -> bool {
    let Certificate { id, name, .. } = certificate;
    let is_uploaded = given(request.filter_source.as_ref()).is_none_or(|from| from == "upload");
    let statuses = request.certificate_status.as_deref().unwrap_or_default();
    is_uploaded
        && (statuses.is_empty() || statuses.contains(&APPROVED))
        && given(request.search_key.as_ref())
            .is_none_or(|part| id.contains(part) || name.contains(part))
        && given(request.certificate_type.as_ref()).is_none_or(|kind| kind == type_of(certificate))
        && request.project_id.is_none_or(|project| project == 0)
        && request.cert_ids.as_ref().is_none_or(|ids| ids.is_empty() || ids.contains(id))
}

/// `DescribeCertificateDetail`: describes a certificate, without the private key. An uploaded key
/// is never shown again.
pub(in crate::actions) fn describe_detail(
    transaction: &mut Transaction<'_>,
    request: &DescribeCertificateDetailRequest,
) -> Result<DescribeCertificateDetailResponse, ApiError> {
    let certificate = find(transaction, &request.certificate_id)?;
    let content = Content::read(&certificate.chain);
    Ok(DescribeCertificateDetailResponse {
        owner_uin: Some(account::uin(transaction.context.account)),
        project_id: Some("0".to_owned()),
        from: Some("upload".to_owned()),
        certificate_type: Some(type_of(certificate).to_owned()),
        alias: Some(certificate.name.clone()),
        status: Some(APPROVED),
        insert_time: Some(time::written(certificate.created)),
        product_zh_name: content.issuer,
        domain: content.domain,
        cert_begin_time: content.begins,
        cert_end_time: content.ends,
        subject_alt_name: Some(content.names),
        certificate_public_key: Some(certificate.chain.clone()),
        certificate_id: Some(certificate.id.clone()),
        deployable: Some(true),
        ..DescribeCertificateDetailResponse::default()
    })
}

/// `DeleteCertificate`: deletes a certificate. Refuses one that a load balancer of any region uses.
pub(in crate::actions) fn delete(
    transaction: &mut Transaction<'_>,
    request: &DeleteCertificateRequest,
) -> Result<DeleteCertificateResponse, ApiError> {
    let id = find(transaction, &request.certificate_id)?.id.clone();
    let mut load_balancers = transaction.load_balancers_of_all_regions();
    let using = load_balancers.find(|(_, load_balancer)| uses(load_balancer, &id));
    if let Some((region, load_balancer)) = using {
        let message = format!("{} in {region} uses the certificate {id}", load_balancer.id);
        return Err(ApiError::new(ErrorCode::BoundResources, message));
    }
    transaction.remove_certificate(&id);
    Ok(DeleteCertificateResponse { delete_result: Some(true), task_id: None })
}

fn find<'t>(transaction: &'t Transaction<'_>, id: &str) -> Result<&'t Certificate, ApiError> {
    let message = || format!("the certificate {id} does not exist");
    let found = transaction.certificate(id);
    found.ok_or_else(|| ApiError::new(ErrorCode::CertificateNotFound, message()))
}

fn type_of(certificate: &Certificate) -> &'static str {
    if certificate.is_authority { "CA" } else { "SVR" }
}
