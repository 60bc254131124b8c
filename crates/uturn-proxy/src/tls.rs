//! What TLS is terminated with.

use std::io;
use std::sync::Arc;

use rustls::ServerConfig;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};

/// The configuration of a listener without certificates: one is made when the process starts and
/// signed by itself. It shows that TLS ends here, and proves nothing.
///
/// # Errors
/// When no certificate can be made.
pub(crate) fn self_signed(speaks_http2: bool) -> io::Result<Arc<ServerConfig>> {
    let made = rcgen::generate_simple_self_signed(vec!["uturn-lb".into()]).map_err(other)?;
    let certificate = CertificateDer::from(made.cert);
    let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(made.signing_key.serialize_der()));
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(other)?
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)
        .map_err(other)?;
    if speaks_http2 {
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    }
    Ok(Arc::new(config))
}

fn other(error: impl std::error::Error + Send + Sync + 'static) -> io::Error {
    io::Error::other(error)
}
