//! Serves the API server's calls to a node for `kubectl exec`: `/exec/NAMESPACE/POD/CONTAINER`.
//!
//! A command runs as with `uturn lab exec`: in the network namespace of the pod, with the programs
//! of this machine. It has no terminal. It is killed when the caller leaves, which a real kubelet
//! does not do. The API server of the box forwards WebSocket, so nothing here speaks SPDY. Logs and
//! port forwarding are not supported.

mod call;
mod run;

use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig, crypto};
use tokio::net::TcpStream;
use tokio::sync::oneshot;
use tokio_rustls::TlsAcceptor;

use super::super::credentials::{AUTHORITY, Credentials, KUBELET_CERTIFICATE, KUBELET_KEY};
use crate::linux::kernel::namespace::Namespace;

/// The port of a kubelet.
pub(in super::super) const PORT: u16 = 10250;

/// Serves the API server's calls on all nodes until it is dropped.
#[derive(Debug)]
pub(in super::super) struct ExecServer {
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// The surroundings that commands run in.
#[derive(Clone, Debug)]
struct Site {
    /// The folder of the run, with the places that can be entered.
    folder: PathBuf,
    /// The program whose `lab exec` enters them.
    program: PathBuf,
}

impl ExecServer {
    /// Listens on the addresses of nodes, in their namespaces.
    pub(in super::super) fn start<'a>(
        folder: &Path,
        program: &Path,
        credentials: &Credentials,
        nodes: impl Iterator<Item = (IpAddr, &'a Namespace)>,
    ) -> io::Result<Self> {
        let acceptor = TlsAcceptor::from(Arc::new(configuration(credentials)?));
        let mut listeners = Vec::new();
        for (address, space) in nodes {
            let listener = space.run(|| TcpListener::bind(SocketAddr::new(address, PORT)))?;
            listener.set_nonblocking(true)?;
            listeners.push(listener);
        }
        let site = Site { folder: folder.to_owned(), program: program.to_owned() };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let (stop, stopped) = oneshot::channel();
        let serves = move || {
            runtime.block_on(async {
                let site = Arc::new(site);
                for listener in listeners {
                    tokio::spawn(listen(listener, acceptor.clone(), Arc::clone(&site)));
                }
                // The sender is dropped at the end.
                let _ = stopped.await;
            });
        };
        let thread = thread::Builder::new().name("exec".into()).spawn(serves)?;
        Ok(Self { stop: Some(stop), thread: Some(thread) })
    }
}

impl Drop for ExecServer {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // A thread that panicked has ended too.
            let _ = thread.join();
        }
    }
}

/// Returns a configuration that admits only the API server, which has a certificate of the
/// cluster's authority.
fn configuration(credentials: &Credentials) -> io::Result<ServerConfig> {
    let authority = credentials.file(AUTHORITY);
    let mut roots = RootCertStore::empty();
    let authority = CertificateDer::from_pem_file(authority).map_err(io::Error::other)?;
    roots.add(authority).map_err(io::Error::other)?;
    let provider = Arc::new(crypto::ring::default_provider());
    let verifier =
        WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider));
    let verifier = verifier.build().map_err(io::Error::other)?;
    let certificate = credentials.file(KUBELET_CERTIFICATE);
    let certificate = CertificateDer::from_pem_file(certificate).map_err(io::Error::other)?;
    let key = PrivateKeyDer::from_pem_file(credentials.file(KUBELET_KEY));
    let key = key.map_err(io::Error::other)?;
    ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(io::Error::other)?
        .with_client_cert_verifier(verifier)
        .with_single_cert(vec![certificate], key)
        .map_err(io::Error::other)
}

async fn listen(listener: TcpListener, acceptor: TlsAcceptor, site: Arc<Site>) {
    let Ok(listener) = tokio::net::TcpListener::from_std(listener) else { return };
    loop {
        // A call that broke off before it was accepted is no error of this server.
        let Ok((stream, _)) = listener.accept().await else { continue };
        tokio::spawn(serve(stream, acceptor.clone(), Arc::clone(&site)));
    }
}

/// Serves a call. Errors are not reported, as the caller is gone then.
async fn serve(stream: TcpStream, acceptor: TlsAcceptor, site: Arc<Site>) {
    let Ok(stream) = acceptor.accept(stream).await else { return };
    if let Some((call, stream)) = call::accept(stream, &site).await {
        run::run(&call, stream, &site).await;
    }
}
