//! A Kubernetes API that CoreDNS can read: the cluster's Services, slices, pods and
//! namespaces, as lists that never change.

use std::io::{self, BufRead, BufReader, PipeReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;

use rustix::event::{PollFd, PollFlags, poll};
use serde_json::{Value, json};
use uturn_model::service::ServiceKind;
use uturn_model::{Cluster, EndpointSlice, Family, NamespacedName, Pod, Service};

use crate::linux::kernel::namespace::Namespace;
use crate::linux::run::worker::Worker;

/// The lists, by path, as they are sent.
#[derive(Debug)]
pub(super) struct Lists(Vec<(&'static str, String)>);

impl Lists {
    pub(super) fn of(cluster: &Cluster) -> Self {
        let slices = cluster.endpoints.values().flatten();
        let mut spaces: Vec<&str> = ["default", "kube-system"].into();
        spaces.extend(cluster.services.keys().map(|name| name.namespace.as_str()));
        spaces.extend(cluster.pods.keys().map(|name| name.namespace.as_str()));
        spaces.sort_unstable();
        spaces.dedup();
        let namespace = |name: &&str| json!({ "metadata": metadata("", name) });
        let lists = [
            ("/api/v1/namespaces", "NamespaceList", spaces.iter().map(namespace).collect()),
            ("/api/v1/services", "ServiceList", cluster.services.values().map(service).collect()),
            ("/api/v1/pods", "PodList", cluster.pods.values().map(pod).collect()),
            (
                "/apis/discovery.k8s.io/v1/endpointslices",
                "EndpointSliceList",
                slices.map(slice).collect::<Vec<Value>>(),
            ),
        ];
        Self(
            lists.into_iter().map(|(path, kind, items)| (path, list(path, kind, &items))).collect(),
        )
    }

    fn find(&self, path: &str) -> Option<&str> {
        self.0.iter().find(|(own, _)| *own == path).map(|(_, list)| list.as_str())
    }
}

fn list(path: &str, kind: &str, items: &[Value]) -> String {
    let group = path.trim_start_matches("/apis/").trim_start_matches("/api/");
    let version = group.rsplit_once('/').map_or(group, |(version, _)| version);
    json!({
        "apiVersion": version,
        "kind": kind,
        "metadata": { "resourceVersion": "1" },
        "items": items,
    })
    .to_string()
}

fn named(name: &NamespacedName) -> Value {
    metadata(name.namespace.as_str(), name.name.as_str())
}

fn metadata(namespace: &str, name: &str) -> Value {
    let uid = format!("{namespace}.{name}");
    json!({ "namespace": namespace, "name": name, "uid": uid, "resourceVersion": "1" })
}

fn service(service: &Service) -> Value {
    let addresses: Vec<String> = if service.headless {
        vec!["None".into()]
    } else {
        service.cluster_ips.iter().map(ToString::to_string).collect()
    };
    let (kind, external) = match &service.kind {
        ServiceKind::ClusterIp => ("ClusterIP", ""),
        ServiceKind::NodePort => ("NodePort", ""),
        ServiceKind::LoadBalancer => ("LoadBalancer", ""),
        ServiceKind::ExternalName(name) => ("ExternalName", &**name),
    };
    let ports = service.ports.iter().map(|port| {
        json!({
            "name": port.name.as_deref().unwrap_or_default(),
            "protocol": port.protocol.to_string().to_uppercase(),
            "port": port.port.number(),
        })
    });
    json!({
        "metadata": named(&service.name),
        "spec": {
            "type": kind,
            "clusterIP": addresses.first().map_or("", String::as_str),
            "clusterIPs": addresses,
            "externalName": external,
            "ports": ports.collect::<Vec<_>>(),
            "publishNotReadyAddresses": service.publishes_not_ready,
        },
    })
}

fn slice(slice: &EndpointSlice) -> Value {
    let mut own =
        metadata(slice.name.namespace.as_str(), &format!("{}-{}", slice.name.name, family(slice)));
    own["labels"] = json!({ "kubernetes.io/service-name": slice.service.name.as_str() });
    let ports = slice.ports.iter().map(|port| {
        json!({
            "name": port.name.as_deref().unwrap_or_default(),
            "protocol": port.protocol.to_string().to_uppercase(),
            "port": port.port.number(),
        })
    });
    let endpoints = slice.endpoints.iter().map(|endpoint| {
        let mut made = json!({
            "addresses": [endpoint.address.to_string()],
            "conditions": {
                "ready": endpoint.ready,
                "serving": endpoint.serving,
                "terminating": endpoint.terminating,
            },
        });
        if let Some(name) = &endpoint.hostname {
            made["hostname"] = json!(&**name);
        }
        if let Some(pod) = &endpoint.pod {
            made["targetRef"] =
                json!({ "kind": "Pod", "namespace": pod.namespace.as_str(), "name": pod.name.as_str() });
        }
        made
    });
    json!({
        "metadata": own,
        "addressType": family(slice),
        "endpoints": endpoints.collect::<Vec<_>>(),
        "ports": ports.collect::<Vec<_>>(),
    })
}

fn family(slice: &EndpointSlice) -> &'static str {
    match slice.family {
        Family::V4 => "IPv4",
        Family::V6 => "IPv6",
    }
}

fn pod(pod: &Pod) -> Value {
    let ip = pod.ips.first().map(ToString::to_string).unwrap_or_default();
    json!({
        "metadata": named(&pod.name),
        "status": { "podIP": ip, "phase": if pod.is_alive() { "Running" } else { "Succeeded" } },
    })
}

/// The running server. It stops when this is dropped.
#[derive(Debug)]
pub(super) struct Api {
    pub(super) address: SocketAddr,
    _worker: Worker,
}

impl Api {
    /// Starts the server on a namespace's loopback.
    pub(super) fn start(space: &Namespace, lists: &Arc<Lists>) -> io::Result<Self> {
        let listener = space.run(|| TcpListener::bind((Ipv4Addr::LOCALHOST, 0)))?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let lists = Arc::clone(lists);
        let serve = move |end: PipeReader| serve(&listener, &end, &lists);
        Ok(Self { address, _worker: Worker::start("api", serve)? })
    }
}

/// Serves each connection in a thread that ends with it. CoreDNS must end before the server.
fn serve(listener: &TcpListener, end: &PipeReader, lists: &Arc<Lists>) {
    loop {
        let mut waiting = [PollFd::new(end, PollFlags::IN), PollFd::new(listener, PollFlags::IN)];
        if poll(&mut waiting, None).is_err() {
            continue;
        }
        if !waiting[0].revents().is_empty() {
            return;
        }
        while let Ok((stream, _)) = listener.accept() {
            let lists = Arc::clone(lists);
            // If no thread can be started, the connection is closed: CoreDNS asks again.
            let _ = thread::Builder::new().name("api".into()).spawn(move || {
                let _ = stream.set_nonblocking(false).and_then(|()| answer(stream, &lists));
            });
        }
    }
}

/// Answers one request after the other.
fn answer(stream: TcpStream, lists: &Lists) -> io::Result<()> {
    let mut stream = BufReader::new(stream);
    loop {
        let mut request = String::new();
        if stream.read_line(&mut request)? == 0 {
            return Ok(());
        }
        let mut field = String::from("-");
        while !field.trim().is_empty() {
            field.clear();
            stream.read_line(&mut field)?;
        }
        let target = request.split(' ').nth(1).unwrap_or_default();
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let watches =
            query.split('&').any(|parameter| matches!(parameter, "watch=true" | "watch=1"));
        let streams = query.contains("sendInitialEvents=true");
        let out = stream.get_mut();
        match lists.find(path) {
            Some(_) if streams => {
                respond(
                    out,
                    "400 Bad Request",
                    r#"{"kind":"Status","status":"Failure","code":400}"#,
                )?;
            }
            Some(_) if watches => {
                out.write_all(
                    b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\
                      Transfer-Encoding: chunked\r\n\r\n",
                )?;
                // No event ever happens, so the watcher ends the connection.
                io::copy(&mut stream.by_ref().take(u64::MAX), &mut io::sink())?;
                return Ok(());
            }
            Some(list) => respond(out, "200 OK", list)?,
            None if path == "/version" => {
                respond(out, "200 OK", r#"{"major":"1","minor":"34","gitVersion":"v1.34.4"}"#)?;
            }
            None => {
                respond(
                    out,
                    "404 Not Found",
                    r#"{"kind":"Status","status":"Failure","code":404}"#,
                )?;
            }
        }
    }
}

fn respond(out: &mut TcpStream, status: &str, body: &str) -> io::Result<()> {
    let length = body.len();
    write!(
        out,
        "HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n\
         {body}"
    )
}
