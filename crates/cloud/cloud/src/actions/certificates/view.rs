//! Certificates in the form of answers.

use uturn_cloud_api::clb::CertificateOutput;

use crate::state::ListenerCertificate;

/// Returns the certificates of a listener or a rule in the form of answers.
pub(in crate::actions) fn view(certificate: &ListenerCertificate) -> CertificateOutput {
    let is_mutual = certificate.authority.is_some();
    let mode = if is_mutual { "MUTUAL" } else { "UNIDIRECTIONAL" };
    let verify = if certificate.clients_may_be_anonymous { "OPTIONAL" } else { "ON" };
    let mut servers = certificate.servers.iter().cloned();
    CertificateOutput {
        ssl_mode: Some(mode.to_owned()),
        ssl_verify_client: is_mutual.then(|| verify.to_owned()),
        cert_id: servers.next(),
        cert_ca_id: certificate.authority.clone(),
        ext_cert_ids: Some(servers.collect()),
    }
}
