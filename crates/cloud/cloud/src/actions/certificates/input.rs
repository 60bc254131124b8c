//! Reads the certificates that a request names, and stores those that it uploads.

use uturn_cloud_api::clb::{CertInfo, CertificateInput, MultiCertInfo};
use uturn_cloud_api::wire::error::ApiError;

use crate::actions::check::{self, given, parameter_error, quota_error, value_error};
use crate::state::{Certificate, ListenerCertificate, Transaction};

/// The most bytes of a certificate with its chain and its key.
const MAX_LENGTH: usize = 128 << 10;

/// The most certificates of a listener or a domain.
const MAX_CERTIFICATES: usize = 3;

/// Reads the parameter `Certificate` or `MultiCertInfo`. Returns `None` if both are absent.
pub(in crate::actions) fn read(
    transaction: &mut Transaction<'_>,
    single: Option<&CertificateInput>,
    several: Option<&MultiCertInfo>,
) -> Result<Option<ListenerCertificate>, ApiError> {
    match (single, several) {
        (None, None) => Ok(None),
        (Some(_), Some(_)) => {
            let message = "only one of the parameters `Certificate` and `MultiCertInfo` is allowed";
            Err(parameter_error(message))
        }
        (Some(single), None) => read_single(transaction, single).map(Some),
        (None, Some(several)) => read_several(transaction, several).map(Some),
    }
}

fn read_single(
    transaction: &mut Transaction<'_>,
    input: &CertificateInput,
) -> Result<ListenerCertificate, ApiError> {
    let is_mutual = is_mutual(given(input.ssl_mode.as_ref()).unwrap_or("UNIDIRECTIONAL"))?;
    let server = match given(input.cert_id.as_ref()) {
        Some(id) => existing(transaction, id, false)?,
        None => {
            let upload = Upload {
                name: given(input.cert_name.as_ref()),
                content: given(input.cert_content.as_ref()),
                key: given(input.cert_key.as_ref()),
            };
            upload.keep(transaction, false, "CertId, or CertName, CertContent and CertKey")?
        }
    };
    let authority = is_mutual.then(|| authority(transaction, input)).transpose()?;
    let clients_may_be_anonymous = may_be_anonymous(input.ssl_verify_client.as_ref())?;
    Ok(ListenerCertificate { servers: vec![server], authority, clients_may_be_anonymous })
}

/// Returns the id of the authority that a request names or uploads.
pub(super) fn authority(
    transaction: &mut Transaction<'_>,
    input: &CertificateInput,
) -> Result<String, ApiError> {
    if let Some(id) = given(input.cert_ca_id.as_ref()) {
        return existing(transaction, id, true);
    }
    let upload = Upload {
        name: given(input.cert_ca_name.as_ref()),
        content: given(input.cert_ca_content.as_ref()),
        key: None,
    };
    upload.keep(transaction, true, "CertCaId, or CertCaName and CertCaContent")
}

fn read_several(
    transaction: &mut Transaction<'_>,
    input: &MultiCertInfo,
) -> Result<ListenerCertificate, ApiError> {
    let is_mutual = is_mutual(&input.ssl_mode)?;
    check::count("MultiCertInfo.CertList", &input.cert_list, 1..=MAX_CERTIFICATES)?;
    let mut result = ListenerCertificate {
        clients_may_be_anonymous: may_be_anonymous(input.ssl_verify_client.as_ref())?,
        ..ListenerCertificate::default()
    };
    for certificate in &input.cert_list {
        let (id, is_authority) = read_listed(transaction, certificate)?;
        match (is_authority, &result.authority) {
            (true, Some(_)) => return Err(parameter_error("only one authority is allowed")),
            (true, None) => result.authority = Some(id),
            (false, _) if result.servers.contains(&id) => {
                return Err(value_error(format!("the certificate {id} stands twice")));
            }
            (false, _) => result.servers.push(id),
        }
    }
    if result.servers.is_empty() {
        return Err(parameter_error("the parameter `MultiCertInfo` has no server certificate"));
    }
    if is_mutual != result.authority.is_some() {
        return Err(parameter_error("an authority and the SSLMode MUTUAL need each other"));
    }
    Ok(result)
}

/// Returns the id of a certificate in a list, and whether it is an authority: an uploaded one is if
/// it has no key.
fn read_listed(
    transaction: &mut Transaction<'_>,
    input: &CertInfo,
) -> Result<(String, bool), ApiError> {
    if let Some(id) = given(input.cert_id.as_ref()) {
        let certificate = transaction.certificate(id).ok_or_else(|| unknown(id))?;
        return Ok((id.to_owned(), certificate.is_authority));
    }
    let upload = Upload {
        name: given(input.cert_name.as_ref()),
        content: given(input.cert_content.as_ref()),
        key: given(input.cert_key.as_ref()),
    };
    let is_authority = upload.key.is_none();
    let needed = "CertId, or CertName and CertContent";
    Ok((upload.keep(transaction, is_authority, needed)?, is_authority))
}

/// A certificate that a request uploads.
pub(in crate::actions) struct Upload<'a> {
    pub(in crate::actions) name: Option<&'a str>,
    pub(in crate::actions) content: Option<&'a str>,
    pub(in crate::actions) key: Option<&'a str>,
}

impl Upload<'_> {
    /// Stores the certificate and returns its id. `needed` names the parameters of the upload for
    /// an error.
    pub(in crate::actions) fn keep(
        &self,
        transaction: &mut Transaction<'_>,
        is_authority: bool,
        needed: &str,
    ) -> Result<String, ApiError> {
        let (Some(name), Some(content)) = (self.name, self.content) else {
            return Err(parameter_error(format!("the certificate needs {needed}")));
        };
        if !is_authority && self.key.is_none() {
            return Err(parameter_error(format!("the certificate needs {needed}")));
        }
        if !is_pem(content, "CERTIFICATE") {
            return Err(value_error(format!("the certificate {name} is not in PEM")));
        }
        if self.key.is_some_and(|key| !is_pem(key, "PRIVATE KEY")) {
            return Err(value_error(format!("the key of the certificate {name} is not in PEM")));
        }
        let length = content.len() + self.key.map_or(0, str::len);
        if length > MAX_LENGTH {
            let message =
                format!("the certificate {name} has {length} bytes; {MAX_LENGTH} are allowed");
            return Err(value_error(message));
        }
        let quota = transaction.context.quotas.certificates;
        if transaction.certificate_count() >= quota {
            return Err(quota_error("certificates", quota));
        }
        let id = transaction.context.ids.letters_and_digits();
        transaction.put_certificate(Certificate {
            id: id.clone(),
            name: name.to_owned(),
            is_authority,
            chain: content.to_owned(),
            key: self.key.map(str::to_owned),
            created: transaction.context.now,
        });
        Ok(id)
    }
}

/// Returns whether a text consists of one or more PEM blocks with this label.
pub(in crate::actions) fn is_pem(text: &str, label: &str) -> bool {
    let text = text.trim();
    let has_label = |line: Option<&str>| line.is_some_and(|line| line.contains(label));
    text.starts_with("-----BEGIN ") && has_label(text.lines().next()) && text.ends_with("-----")
}

fn existing(
    transaction: &Transaction<'_>,
    id: &str,
    is_authority: bool,
) -> Result<String, ApiError> {
    let certificate = transaction.certificate(id).ok_or_else(|| unknown(id))?;
    if certificate.is_authority == is_authority {
        return Ok(id.to_owned());
    }
    let kind = if is_authority { "authority" } else { "server certificate" };
    Err(value_error(format!("the certificate {id} is no {kind}")))
}

fn unknown(id: &str) -> ApiError {
    parameter_error(format!("the certificate {id} does not exist"))
}

fn is_mutual(mode: &str) -> Result<bool, ApiError> {
    check::choice("SSLMode", mode, &["UNIDIRECTIONAL", "MUTUAL"])?;
    Ok(mode == "MUTUAL")
}

fn may_be_anonymous(verify: Option<&String>) -> Result<bool, ApiError> {
    let verify = given(verify).unwrap_or("ON");
    check::choice("SSLVerifyClient", verify, &["ON", "OPTIONAL"])?;
    Ok(verify == "OPTIONAL")
}
