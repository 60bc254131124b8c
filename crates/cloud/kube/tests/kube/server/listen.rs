//! The server for processes of their own: over HTTP, without TLS.

use std::convert::Infallible;
use std::net::SocketAddr;

use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use serde_json::json;
use tokio::net::TcpListener;

use super::Server;

impl Server {
    /// Answers whoever connects, for ever.
    pub(crate) async fn listen(self, listener: TcpListener) -> Infallible {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let server = self.clone();
            let service = service_fn(move |request: http::Request<Incoming>| {
                let server = server.clone();
                async move {
                    let (parts, body) = request.into_parts();
                    let body = body.collect().await.unwrap().to_bytes();
                    let request = http::Request::from_parts(parts, body.into());
                    Ok::<_, Infallible>(server.answer(request).await)
                }
            });
            tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), service));
        }
    }
}

/// A kubeconfig of the server at an address.
pub(crate) fn kubeconfig(address: SocketAddr) -> String {
    json!({ "apiVersion": "v1", "kind": "Config", "current-context": "test",
        "clusters": [{ "name": "test", "cluster": { "server": format!("http://{address}") } }],
        "users": [{ "name": "test", "user": {} }],
        "contexts": [{ "name": "test", "context": { "cluster": "test", "user": "test" } }] })
    .to_string()
}
