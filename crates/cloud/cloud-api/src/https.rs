//! HTTP/1 with or without TLS, as calls of the API and of data planes use it.

use std::io;
use std::sync::Arc;

use bytes::Bytes;
use http_body_util::Full;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use rustls::crypto::ring;
use rustls::{ClientConfig, RootCertStore};

/// An HTTP/1 client, with or without TLS.
pub type HttpsClient = Client<HttpsConnector<HttpConnector>, Full<Bytes>>;

/// Returns a client that, with TLS, trusts the certificate authorities of the system.
///
/// # Errors
///
/// Returns why the certificate authorities cannot be read.
pub fn client(needs_tls: bool) -> io::Result<HttpsClient> {
    let builder = HttpsConnectorBuilder::new();
    let builder =
        if needs_tls { builder.with_native_roots()? } else { builder.with_tls_config(no_tls()) };
    let connector = builder.https_or_http().enable_http1().build();
    Ok(Client::builder(TokioExecutor::new()).build(connector))
}

/// Returns a configuration without trusted authorities, for endpoints without TLS.
fn no_tls() -> ClientConfig {
    ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("ring has the default versions")
        .with_root_certificates(RootCertStore::empty())
        .with_no_client_auth()
}
