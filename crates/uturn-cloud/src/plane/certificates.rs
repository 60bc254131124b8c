//! Certificates as files, which the data plane reads.

use std::fmt;
use std::path::PathBuf;

use sha2::{Digest as _, Sha256};
use uturn_lb::config::CertificateFiles;

use super::Planner;
use crate::state::{Certificate, Listener, ListenerCertificate};
use crate::wire::tc3::hex;

/// The digits of a name that come from the content.
const DIGITS: usize = 32;

/// A certificate with its key, for the data plane.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct CertificateFile {
    /// Its name, which no other content has.
    pub name: String,
    /// The certificates and the private key in PEM.
    pub pem: String,
}

impl fmt::Debug for CertificateFile {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("CertificateFile").field("name", &self.name).finish_non_exhaustive()
    }
}

impl CertificateFile {
    /// The file of an account's certificate; `None` if it has no key.
    fn new(account: &str, certificate: &Certificate) -> Option<Self> {
        let key = certificate.key.as_deref()?;
        let mut hash = Sha256::new();
        for part in [account, &certificate.chain, key] {
            hash.update(part.len().to_be_bytes());
            hash.update(part);
        }
        let name = format!("{}-{}", certificate.id, &hex(&hash.finalize())[..DIGITS]);
        Some(Self { name, pem: format!("{}\n{key}\n", certificate.chain.trim_end()) })
    }

    /// Whether a name is one that certificates have here.
    pub(crate) fn is_name(name: &str) -> bool {
        let digits = name.rsplit_once('-').map_or("", |(_, digits)| digits);
        digits.len() == DIGITS && digits.bytes().all(|byte| byte.is_ascii_hexdigit())
    }

    /// The file, as a configuration names it.
    pub fn path(&self) -> PathBuf {
        PathBuf::from(format!("{}.pem", self.name))
    }
}

impl Planner<'_> {
    /// The certificates that a listener shows to its clients, its own first. Those without a key
    /// are left out.
    pub(super) fn certificates(
        &self,
        listener: &Listener,
        notes: &mut Vec<String>,
    ) -> Vec<CertificateFile> {
        let mut files: Vec<CertificateFile> = Vec::new();
        for id in server_ids(listener) {
            let Some(certificate) = self.certificates.and_then(|known| known.get(id)) else {
                notes.push(format!("the certificate {id} does not exist"));
                continue;
            };
            match CertificateFile::new(&self.place.account, certificate) {
                Some(file) if !files.contains(&file) => files.push(file),
                Some(_) => {}
                None => notes.push(format!("the certificate {id} has no private key")),
            }
        }
        files
    }
}

/// The files of certificates, as a configuration names them.
pub(super) fn named(files: &[CertificateFile]) -> Vec<CertificateFiles> {
    files
        .iter()
        .map(|file| CertificateFiles { certificate: file.path(), key: file.path() })
        .collect()
}

/// Whether clients without a certificate of an authority have to be refused.
pub(super) fn has_to_check_clients(listener: &Listener) -> bool {
    all(listener).any(|used| used.authority.is_some() && !used.clients_may_be_anonymous)
}

/// The ids of the certificates for clients.
fn server_ids(listener: &Listener) -> impl Iterator<Item = &String> {
    all(listener).flat_map(|used| &used.servers)
}

/// What the listener does with certificates, and then what its rules do.
fn all(listener: &Listener) -> impl Iterator<Item = &ListenerCertificate> {
    let rules = listener.rules.iter().filter_map(|rule| rule.certificate.as_ref());
    listener.certificate.iter().chain(rules)
}
