//! The fields of a certificate that answers show.

use jiff::Timestamp;
use x509_parser::certificate::X509Certificate;
use x509_parser::extensions::GeneralName;
use x509_parser::pem::parse_x509_pem;
use x509_parser::time::ASN1Time;
use x509_parser::x509::X509Name;

use crate::actions::time;

/// The fields of a certificate that answers show.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Content {
    /// The name of the issuer.
    pub(super) issuer: Option<String>,
    /// The common name, or the first domain.
    pub(super) domain: Option<String>,
    /// All domains.
    pub(super) names: Vec<String>,
    /// The start and the end of the certificate's validity.
    pub(super) begins: Option<String>,
    pub(super) ends: Option<String>,
}

impl Content {
    /// Reads the first certificate of a chain in PEM. All fields are empty if it cannot be read.
    pub(super) fn read(chain: &str) -> Self {
        let Ok((_, pem)) = parse_x509_pem(chain.as_bytes()) else { return Self::default() };
        let Ok(certificate) = pem.parse_x509() else { return Self::default() };
        let common_name = common_name(certificate.subject());
        let mut names = alternative_names(&certificate);
        if names.is_empty() {
            names.extend(common_name.clone());
        }
        Self {
            issuer: common_name_or_all(certificate.issuer()),
            domain: common_name.or_else(|| names.first().cloned()),
            names,
            begins: written(certificate.validity().not_before),
            ends: written(certificate.validity().not_after),
        }
    }
}

fn common_name(name: &X509Name<'_>) -> Option<String> {
    let first = name.iter_common_name().next()?;
    first.as_str().ok().map(str::to_owned)
}

fn common_name_or_all(name: &X509Name<'_>) -> Option<String> {
    common_name(name).or_else(|| Some(name.to_string()))
}

fn alternative_names(certificate: &X509Certificate<'_>) -> Vec<String> {
    let Ok(Some(extension)) = certificate.subject_alternative_name() else { return Vec::new() };
    let names = extension.value.general_names.iter();
    let domains = names.filter_map(|name| match name {
        GeneralName::DNSName(domain) => Some((*domain).to_owned()),
        _ => None,
    });
    domains.collect()
}

fn written(at: ASN1Time) -> Option<String> {
    Timestamp::from_second(at.timestamp()).ok().map(time::written)
}
