//! The server side of TLS: certificates from files, chosen by the name that a client asks for.

use std::collections::HashMap;
use std::fmt;
use std::io;
use std::path::Path;
use std::sync::Arc;

use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::server::danger::ClientCertVerifier;
use rustls::server::{ClientHello, ResolvesServerCert, WebPkiClientVerifier};
use rustls::sign::CertifiedKey;
use rustls::{RootCertStore, ServerConfig};
use uturn_lb::config::{CertificateFiles, ClientCertificates};
use webpki::EndEntityCert;

/// Certificates by the names that they are valid for.
struct ByName {
    /// Certificates of whole names, in lower case.
    exact: HashMap<String, Arc<CertifiedKey>>,
    /// Certificates of wildcard names, by what follows `*.`, in lower case.
    wildcard: HashMap<String, Arc<CertifiedKey>>,
    /// The certificate for clients that ask for no name, or for an unknown one.
    default: Arc<CertifiedKey>,
}

impl ByName {
    fn find(&self, name: &str) -> &Arc<CertifiedKey> {
        let name = name.trim_end_matches('.').to_ascii_lowercase();
        let wildcard = || self.wildcard.get(name.split_once('.')?.1);
        self.exact.get(&name).or_else(wildcard).unwrap_or(&self.default)
    }
}

impl ResolvesServerCert for ByName {
    fn resolve(&self, client: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let found = client.server_name().map_or(&self.default, |name| self.find(name));
        Some(Arc::clone(found))
    }
}

impl fmt::Debug for ByName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&String> = self.exact.keys().chain(self.wildcard.keys()).collect();
        f.debug_struct("ByName").field("names", &names).finish_non_exhaustive()
    }
}

/// Returns the TLS configuration of a listener. Without certificates, a self-signed one is made: it
/// shows that TLS ends here, and proves nothing.
///
/// # Errors
/// When a file cannot be read, has no certificate or key, or its key belongs to another
/// certificate.
pub(crate) fn server(
    certificates: &[CertificateFiles],
    clients: Option<&ClientCertificates>,
    speaks_http2: bool,
) -> io::Result<Arc<ServerConfig>> {
    let keys = match certificates {
        [] => vec![self_signed()?],
        files => files.iter().map(load).collect::<io::Result<Vec<_>>>()?,
    };
    let mut by_name =
        ByName { exact: HashMap::new(), wildcard: HashMap::new(), default: Arc::clone(&keys[0]) };
    for key in &keys {
        for name in names(key)? {
            // The first certificate for a name wins.
            match name.strip_prefix("*.") {
                Some(suffix) => by_name.wildcard.entry(suffix.to_owned()),
                None => by_name.exact.entry(name),
            }
            .or_insert_with(|| Arc::clone(key));
        }
    }
    let verifier = match clients {
        Some(clients) => verifier(clients)?,
        None => WebPkiClientVerifier::no_client_auth(),
    };
    let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(invalid)?
        .with_client_cert_verifier(verifier)
        .with_cert_resolver(Arc::new(by_name));
    if speaks_http2 {
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    }
    Ok(Arc::new(config))
}

/// Returns the verifier of clients' certificates.
fn verifier(clients: &ClientCertificates) -> io::Result<Arc<dyn ClientCertVerifier>> {
    let roots = Arc::new(authorities(&clients.authorities)?);
    let provider = Arc::new(ring::default_provider());
    let builder = WebPkiClientVerifier::builder_with_provider(roots, provider);
    let builder = if clients.optional { builder.allow_unauthenticated() } else { builder };
    builder.build().map_err(|error| of_file(&clients.authorities, &error))
}

/// Reads certificate authorities from a file, which must not have a private key.
///
/// # Errors
/// When the file cannot be read, or contains something else.
pub(crate) fn authorities(file: &Path) -> io::Result<RootCertStore> {
    if PrivateKeyDer::from_pem_file(file).is_ok() {
        return Err(of_file(file, &"authorities have no private key"));
    }
    let mut roots = RootCertStore::empty();
    let certificates: Vec<CertificateDer<'_>> = CertificateDer::pem_file_iter(file)
        .and_then(Iterator::collect)
        .map_err(|error| of_file(file, &error))?;
    for certificate in certificates {
        roots.add(certificate).map_err(|error| of_file(file, &error))?;
    }
    if roots.is_empty() { Err(of_file(file, &"no certificate")) } else { Ok(roots) }
}

fn of_file(path: &Path, error: &dyn fmt::Display) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("{}: {error}", path.display()))
}

fn load(files: &CertificateFiles) -> io::Result<Arc<CertifiedKey>> {
    let chain: Vec<CertificateDer<'_>> = CertificateDer::pem_file_iter(&files.certificate)
        .and_then(Iterator::collect)
        .map_err(|error| of_file(&files.certificate, &error))?;
    if chain.is_empty() {
        return Err(of_file(&files.certificate, &"no certificate"));
    }
    let key =
        PrivateKeyDer::from_pem_file(&files.key).map_err(|error| of_file(&files.key, &error))?;
    certified(chain, key).map_err(|error| of_file(&files.key, &error))
}

fn self_signed() -> io::Result<Arc<CertifiedKey>> {
    let made = rcgen::generate_simple_self_signed(vec!["uturn-lb".into()]).map_err(invalid)?;
    let key = PrivatePkcs8KeyDer::from(made.signing_key.serialize_der());
    certified(vec![made.cert.into()], key.into()).map_err(invalid)
}

fn certified(
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
) -> Result<Arc<CertifiedKey>, rustls::Error> {
    CertifiedKey::from_der(chain, key, &ring::default_provider()).map(Arc::new)
}

/// Returns the names that a certificate is valid for, in lower case.
fn names(key: &CertifiedKey) -> io::Result<Vec<String>> {
    let certificate = EndEntityCert::try_from(&key.cert[0]).map_err(invalid)?;
    Ok(certificate.valid_dns_names().map(str::to_ascii_lowercase).collect())
}

fn invalid(error: impl std::error::Error + Send + Sync + 'static) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::PathBuf;

    use super::*;

    /// A folder that is removed with this.
    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Self {
            let path = std::env::temp_dir().join(format!("uturn-{name}-{}", std::process::id()));
            fs::create_dir_all(&path).unwrap();
            Self(path)
        }

        /// Writes a certificate for these names into files.
        fn certificate(&self, file: &str, names: &[&str]) -> CertificateFiles {
            let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
            let made = rcgen::generate_simple_self_signed(names).unwrap();
            let path = |kind| self.0.join(format!("{file}.{kind}"));
            let files = CertificateFiles { certificate: path("crt"), key: path("key") };
            fs::write(&files.certificate, made.cert.pem()).unwrap();
            fs::write(&files.key, made.signing_key.serialize_pem()).unwrap();
            files
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            fs::remove_dir_all(&self.0).unwrap();
        }
    }

    #[test]
    fn names_are_read_from_certificates() {
        let folder = Folder::new("names");
        let key = load(&folder.certificate("a", &["Shop.example.com", "*.example.com"])).unwrap();
        assert_eq!(names(&key).unwrap(), ["shop.example.com", "*.example.com"]);
    }

    #[test]
    fn another_certificates_key_is_refused_with_its_file() {
        let folder = Folder::new("keys");
        let (mut a, b) = (folder.certificate("a", &["a"]), folder.certificate("b", &["b"]));
        a.key = b.key;
        let error = server(&[a], None, false).unwrap_err().to_string();
        assert!(error.contains("b.key: "), "{error}");
        let none = CertificateFiles { certificate: b.certificate.clone(), key: b.certificate };
        let error = server(&[none], None, false).unwrap_err().to_string();
        assert!(error.contains("b.crt: "), "{error}");
    }
}
