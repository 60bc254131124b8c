//! Certificates as files for the data plane.

use std::fmt;
use std::path::PathBuf;

use sha2::{Digest as _, Sha256};
use uturn_cloud_api::wire::tc3::hex;
use uturn_lb::config::{CertificateFiles, ClientCertificates};

use super::Planner;
use crate::state::{Certificate, Listener, ListenerCertificate};

/// The number of digits at the end of a file's name that are derived from its content.
const DIGITS: usize = 32;

/// A certificate with its key, or the certificates of an authority, for the data plane.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct CertificateFile {
    /// The name, which is unique for the content.
    pub name: String,
    /// The certificates in PEM, with the private key for a server's certificate.
    pub pem: String,
}

impl fmt::Debug for CertificateFile {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("CertificateFile").field("name", &self.name).finish_non_exhaustive()
    }
}

impl CertificateFile {
    /// Returns the file of an account's certificate; `None` for a server's certificate without a
    /// key.
    fn new(account: &str, certificate: &Certificate) -> Option<Self> {
        let key = match (certificate.is_authority, certificate.key.as_deref()) {
            (true, _) => "",
            (false, key) => key?,
        };
        let mut hash = Sha256::new();
        for part in [account, &certificate.chain, key] {
            hash.update(part.len().to_be_bytes());
            hash.update(part);
        }
        let name = format!("{}-{}", certificate.id, &hex(&hash.finalize())[..DIGITS]);
        Some(Self { name, pem: format!("{}\n{key}\n", certificate.chain.trim_end()) })
    }

    /// Returns whether a name has the form of the names of these files.
    pub(crate) fn is_name(name: &str) -> bool {
        let digits = name.rsplit_once('-').map_or("", |(_, digits)| digits);
        digits.len() == DIGITS && digits.bytes().all(|byte| byte.is_ascii_hexdigit())
    }

    /// Returns the path by which a configuration names the file.
    pub fn path(&self) -> PathBuf {
        PathBuf::from(format!("{}.pem", self.name))
    }
}

impl Planner<'_> {
    /// Returns the certificates that a listener presents to its clients, its own before its rules'.
    /// Those without a key are left out, with a note.
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

    /// Returns the authority that has to have issued the certificates of a listener's clients.
    ///
    /// # Errors
    ///
    /// Returns why the listener cannot be served.
    pub(super) fn authority(
        &self,
        listener: &Listener,
    ) -> Result<Option<(CertificateFile, ClientCertificates)>, String> {
        let mut all = all(listener).map(|used| {
            (&used.authority, used.authority.is_some() && used.clients_may_be_anonymous)
        });
        let first = all.next();
        // Clients' certificates are requested before the request with its domain is known.
        if all.any(|other| Some(other) != first) {
            let message = "its domains do not check clients' certificates alike";
            return Err(message.to_owned());
        }
        let Some((Some(id), optional)) = first else { return Ok(None) };
        let certificate = self.certificates.and_then(|known| known.get(id));
        let file = certificate.and_then(|it| CertificateFile::new(&self.place.account, it));
        let file = file.ok_or_else(|| format!("the certificate {id} does not exist"))?;
        let clients = ClientCertificates { authorities: file.path(), optional };
        Ok(Some((file, clients)))
    }
}

/// Returns the files of certificates in the form of a configuration.
pub(super) fn named(files: &[CertificateFile]) -> Vec<CertificateFiles> {
    files
        .iter()
        .map(|file| CertificateFiles { certificate: file.path(), key: file.path() })
        .collect()
}

/// Returns the ids of the certificates that are presented to clients.
fn server_ids(listener: &Listener) -> impl Iterator<Item = &String> {
    all(listener).flat_map(|used| &used.servers)
}

/// Returns the certificates used by the listener, and then those used by its rules.
fn all(listener: &Listener) -> impl Iterator<Item = &ListenerCertificate> {
    let rules = listener.rules.iter().filter_map(|rule| rule.certificate.as_ref());
    listener.certificate.iter().chain(rules)
}
