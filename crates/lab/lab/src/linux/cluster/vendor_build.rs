//! Stands in for a cloud's own build of kube-proxy, which is not published: upstream's kube-proxy
//! runs, and sees of the API what that build would act on. In IPVS mode such builds leave some
//! addresses of load balancers unbound, so Services are shown without them.
//!
//! A filter between the kube-proxies and the API server removes them. It forwards everything else
//! unchanged, and speaks HTTP without TLS in the nodes' network.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::pin::pin;

use futures_util::AsyncBufReadExt as _;
use futures_util::future::{Either, select};
use http::header::{ACCEPT, CONTENT_TYPE};
use http::{Method, Request, StatusCode};
use kube::Client;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use uturn_clouds::cloud::kube_proxy_builds;
use uturn_model::{AddressBinding, Cloud, Labels, Version};

use super::api_client::client;
use crate::LabError;
use crate::linux::kernel::namespace::Namespace;
use crate::linux::kernel::system::During;
use crate::linux::run::worker::Worker;

/// The port of the filter, at the API server's address.
pub(super) const PORT: u16 = 6444;

/// The largest body of a request. The events that kube-proxy sends are small; a larger body is
/// refused.
const LARGEST_BODY: usize = 1 << 20;

/// A cloud's build of kube-proxy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct VendorBuild {
    pub(super) cloud: Cloud,
    /// The addresses of load balancers that the build binds.
    pub(super) binding: AddressBinding,
}

impl VendorBuild {
    /// Returns the build that a version names, or `None` for upstream's.
    pub(super) fn of(version: &str) -> Option<Self> {
        let version: Version = version.parse().ok()?;
        let vendor = version.vendor_build?.vendor;
        let (cloud, builds) = kube_proxy_builds().find(|(_, builds)| builds.vendor == vendor)?;
        Some(Self { cloud, binding: (builds.binding)(version) })
    }
}

/// The running filter. It ends when this is dropped.
#[derive(Debug)]
pub(super) struct Filter {
    _worker: Worker<oneshot::Sender<()>>,
}

impl Filter {
    /// Starts the filter in the namespace of the API server, which it calls with this kubeconfig.
    pub(super) fn start(
        space: &Namespace,
        kubeconfig: String,
        address: Ipv4Addr,
        binding: AddressBinding,
    ) -> Result<Self, LabError> {
        let during = "start the filter for kube-proxy";
        let at = SocketAddr::new(address.into(), PORT);
        let listener = space.run(|| std::net::TcpListener::bind(at)).during(during)?;
        listener.set_nonblocking(true).during(during)?;
        let space = space.handle().during(during)?;
        let (life, over) = oneshot::channel();
        let serve = move || {
            // If the thread cannot enter the namespace, nothing is served, which kube-proxy's log
            // shows.
            let _ = space.run(|| {
                let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
                runtime.block_on(async {
                    let client = client(&kubeconfig).await.map_err(io::Error::other)?;
                    let listener = TcpListener::from_std(listener)?;
                    let accepting = pin!(accept(&listener, &client, binding));
                    select(accepting, over).await;
                    Ok(())
                })
            });
        };
        Ok(Self { _worker: Worker::with(life, "filter", serve).during(during)? })
    }
}

async fn accept(listener: &TcpListener, client: &Client, binding: AddressBinding) {
    loop {
        if let Ok((connection, _)) = listener.accept().await {
            let client = client.clone();
            // kube-proxy connects again when a connection breaks.
            tokio::spawn(async move { answer(connection, &client, binding).await });
        }
    }
}

/// Answers one request.
async fn answer(connection: TcpStream, client: &Client, binding: AddressBinding) -> io::Result<()> {
    let mut connection = BufReader::new(connection);
    let Some(request) = read(&mut connection).await? else { return Ok(()) };
    let has_services = request.uri().path().ends_with("/services");
    let body = match client.request_stream(request).await {
        Ok(body) => body,
        Err(error) => {
            let (code, body) = match error {
                kube::Error::Api(status) => (status.code, json!(status).to_string()),
                other => (502, json!({"message": other.to_string()}).to_string()),
            };
            let code = StatusCode::from_u16(code).unwrap_or(StatusCode::BAD_GATEWAY);
            connection.write_all(&head(code)).await?;
            return connection.write_all(body.as_bytes()).await;
        }
    };
    let mut body = pin!(body);
    connection.write_all(&head(StatusCode::OK)).await?;
    let mut line = Vec::new();
    loop {
        line.clear();
        // A list is one line, and so is each event of a watch. kube-proxy may end a watch.
        let mut gone = [0];
        let next = {
            let reading = pin!(body.read_until(b'\n', &mut line));
            let leaving = pin!(connection.read(&mut gone));
            match select(reading, leaving).await {
                Either::Left((read, _)) => read?,
                Either::Right(_) => return Ok(()),
            }
        };
        if next == 0 {
            return connection.shutdown().await;
        }
        match has_services.then(|| serde_json::from_slice(&line)) {
            Some(Ok(mut value)) => {
                hide(&mut value, binding);
                connection.write_all(format!("{value}\n").as_bytes()).await?;
            }
            _ => connection.write_all(&line).await?,
        }
        connection.flush().await?;
    }
}

/// Reads a request. Returns `None` if the connection ends first.
async fn read(connection: &mut BufReader<TcpStream>) -> io::Result<Option<Request<Vec<u8>>>> {
    let invalid = || io::Error::from(io::ErrorKind::InvalidData);
    let mut line = String::new();
    if connection.read_line(&mut line).await? == 0 {
        return Ok(None);
    }
    let mut words = line.split_whitespace();
    let (method, path) = words.next().zip(words.next()).ok_or_else(invalid)?;
    let method = Method::from_bytes(method.as_bytes()).map_err(io::Error::other)?;
    let mut request = Request::builder().method(method).uri(path);
    request = request.header(ACCEPT, "application/json");
    let mut length = 0;
    loop {
        let mut field = String::new();
        connection.read_line(&mut field).await?;
        let Some((name, value)) = field.trim_end().split_once(':') else { break };
        match name.to_ascii_lowercase().as_str() {
            "content-length" => length = value.trim().parse().map_err(io::Error::other)?,
            "content-type" => request = request.header(CONTENT_TYPE, value.trim()),
            _ => {}
        }
    }
    if length > LARGEST_BODY {
        return Err(invalid());
    }
    let mut body = vec![0; length];
    connection.read_exact(&mut body).await?;
    request.body(body).map(Some).map_err(io::Error::other)
}

fn head(code: StatusCode) -> Vec<u8> {
    format!("HTTP/1.1 {code}\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n")
        .into_bytes()
}

/// Removes the addresses that are not bound from a list of Services, or from an event with one.
fn hide(value: &mut Value, binding: AddressBinding) {
    let items = value.get_mut("items").and_then(Value::as_array_mut);
    for service in items.into_iter().flatten() {
        hide_in(service, binding);
    }
    if let Some(service) = value.get_mut("object") {
        hide_in(service, binding);
    }
}

fn hide_in(service: &mut Value, binding: AddressBinding) {
    let annotations = service["metadata"]["annotations"].as_object();
    let annotations = annotations.into_iter().flatten();
    let annotations: Labels =
        annotations.filter_map(|(key, value)| Some((key.as_str(), value.as_str()?))).collect();
    if let Some(status) = service.get_mut("status").and_then(Value::as_object_mut)
        && !binding.binds(&annotations)
    {
        status.insert("loadBalancer".to_owned(), json!({}));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn service(asks: &str) -> Value {
        json!({
            "metadata": {"annotations": {"service.cloud.tencent.com/prevent-loopback": asks}},
            "status": {"loadBalancer": {"ingress": [{"ip": "10.0.0.101"}]}},
        })
    }

    fn seen(version: &str, asks: &str) -> bool {
        let binding = VendorBuild::of(version).unwrap().binding;
        let mut list = json!({"items": [service(asks)]});
        let mut event = json!({"type": "ADDED", "object": service(asks)});
        hide(&mut list, binding);
        hide(&mut event, binding);
        assert_eq!(list["items"][0], event["object"]);
        event["object"]["status"]["loadBalancer"]["ingress"][0]["ip"] == "10.0.0.101"
    }

    #[test]
    fn a_build_sees_the_addresses_that_it_binds() {
        assert!(seen("v1.22.5-tke.13", "true") && !seen("v1.22.5-tke.13", "false"));
        assert!(!seen("v1.22.5-tke.12", "true") && !seen("v1.22.5-tke.12", "false"));
        assert!(seen("v1.22.5-tke.0", "false"));
        assert_eq!(VendorBuild::of("v1.34.4"), None);
        assert_eq!(VendorBuild::of("latest"), None);
    }

    #[test]
    fn other_objects_stay_as_they_are() {
        let bookmark = json!({"type": "BOOKMARK", "object": {"kind": "Service", "metadata": {}}});
        let mut seen = bookmark.clone();
        hide(&mut seen, AddressBinding::None);
        assert_eq!(seen["object"]["status"], Value::Null);
        assert_eq!(seen["type"], bookmark["type"]);
    }
}
