//! The certificate of the API server.

use std::fmt;
use std::io;
use std::path::Path;
use std::sync::Arc;

use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::TlsAcceptor;

/// A certificate with its key.
#[derive(Clone)]
pub struct Tls(TlsAcceptor);

impl fmt::Debug for Tls {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Tls(…)")
    }
}

impl Tls {
    /// Reads a certificate with its chain, and its key, from files in PEM.
    ///
    /// # Errors
    ///
    /// Returns which file cannot be read or has other content, or that the key does not belong to
    /// the certificate.
    pub fn from_files(certificate: &Path, key: &Path) -> io::Result<Self> {
        let chain: Vec<CertificateDer<'static>> = CertificateDer::pem_file_iter(certificate)
            .and_then(Iterator::collect)
            .map_err(|error| of_file(certificate, &error))?;
        if chain.is_empty() {
            return Err(of_file(certificate, &"it has no certificate"));
        }
        let private = PrivateKeyDer::from_pem_file(key).map_err(|error| of_file(key, &error))?;
        let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(io::Error::other)?
            .with_no_client_auth()
            .with_single_cert(chain, private)
            .map_err(|error| of_file(key, &error))?;
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Self(TlsAcceptor::from(Arc::new(config))))
    }

    pub(super) fn acceptor(&self) -> &TlsAcceptor {
        &self.0
    }
}

fn of_file(file: &Path, error: &dyn fmt::Display) -> io::Error {
    io::Error::other(format!("{}: {error}", file.display()))
}
