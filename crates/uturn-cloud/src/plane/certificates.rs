//! Certificates as files, which the data plane reads.

use uturn_lb::config::CertificateFiles;

use super::Planner;
use crate::state::{Certificate, Listener, ListenerCertificate};

/// A certificate that has to be written for the data plane.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CertificateFile {
    /// The account it belongs to.
    pub account: String,
    /// Its id.
    pub id: String,
}

impl Planner<'_> {
    /// The files of the certificates that a listener shows to its clients, its own first. Those
    /// without a key are left out.
    pub(super) fn certificates(
        &self,
        listener: &Listener,
        notes: &mut Vec<String>,
    ) -> Vec<CertificateFiles> {
        let mut files = Vec::new();
        for id in server_ids(listener) {
            match self.certificate(id) {
                Some(certificate) if certificate.key.is_some() => {
                    let folder = self.ground.certificates.join(&self.place.account);
                    files.push(CertificateFiles {
                        certificate: folder.join(format!("{id}.crt")),
                        key: folder.join(format!("{id}.key")),
                    });
                }
                Some(_) => notes.push(format!("the certificate {id} has no private key")),
                None => notes.push(format!("the certificate {id} does not exist")),
            }
        }
        if listener.certificate.as_ref().is_some_and(|used| used.authority.is_some()) {
            notes.push("clients' certificates are not checked by this data plane".to_owned());
        }
        files
    }

    fn certificate(&self, id: &str) -> Option<&Certificate> {
        self.certificates?.get(id)
    }

    /// The certificates that have to be written for a listener.
    pub(super) fn files_of(&self, listener: &Listener) -> Vec<CertificateFile> {
        let known = server_ids(listener)
            .filter(|id| self.certificate(id).is_some_and(|certificate| certificate.key.is_some()));
        let account = &self.place.account;
        known.map(|id| CertificateFile { account: account.clone(), id: id.clone() }).collect()
    }
}

/// The ids of the certificates for clients: the listener's, then those of its rules.
fn server_ids(listener: &Listener) -> impl Iterator<Item = &String> {
    let rules = listener.rules.iter().filter_map(|rule| rule.certificate.as_ref());
    listener.certificate.iter().chain(rules).flat_map(|used: &ListenerCertificate| &used.servers)
}
