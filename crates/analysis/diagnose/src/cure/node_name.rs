//! Cures of names of Services that programs of a node cannot resolve: addresses in their place.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use uturn_document::edit::{At, Change, Tree};
use uturn_model::volume::VolumeServer;
use uturn_model::{Client, Destination, Flow, Mechanism, Name, Pod, Port, Service};

use super::template::Template;
use super::{Case, Proposal, way};
use crate::find::node_names::registry;
use crate::find::service_reference::ServiceReference;

pub(super) fn propose(case: &Case<'_>) -> Vec<Proposal> {
    if !case.has(Mechanism::NameUnresolved) {
        return Vec::new();
    }
    let Some(Flow { from: Client::Node(_), to, .. }) = case.walked() else { return Vec::new() };
    let (Destination::Host(host, port) | Destination::Url { host, port, .. }) = to else {
        return Vec::new();
    };
    let cluster = case.cluster();
    let is_found = |object| case.found.as_ref().is_none_or(|(_, found)| *found == object);
    let mut all = Vec::new();
    let volumes = cluster.volume_servers.iter();
    for volume in volumes.filter(|volume| volume.host == *host && is_found(volume.object())) {
        all.extend(volume_server(case, volume));
    }
    let waits = |pod: &&Pod| {
        let object = pod.owner.clone().unwrap_or_else(|| pod.object());
        is_found(object)
            && pod
                .spec
                .containers
                .iter()
                .any(|own| registry(&own.image).is_some_and(|(own, _)| own == &**host))
    };
    // The pods of one workload have the same images.
    if let Some(pod) = cluster.pods.values().find(waits) {
        all.extend(image(case, pod, host, *port));
    }
    all
}

/// Proposes the cluster IP as the server of a volume.
fn volume_server(case: &Case<'_>, volume: &VolumeServer) -> Option<Proposal> {
    let namespace = Name::new("default").ok()?;
    let service = ServiceReference::of(case.cluster(), &namespace, &volume.host)?.service;
    let ip = *service.cluster_ips.first()?;
    let path: Vec<At> = volume.field.split('.').map(At::from).collect();
    let written = case.manifests.text_at(&volume.object(), &path)?;
    let new = written.replacen(&*volume.host, &shown(ip, written.contains(':')), 1);
    let title = format!("{} {new}, the cluster IP of svc/{}", volume.field, service.name);
    let mut made = Proposal::new("cluster-ip", 10, title)
        .edit(volume.object(), path, Change::Set(Tree::text(new)))
        .costs("the source of a PersistentVolume cannot be changed: create the volume and its claim anew");
    made = fixed(made, service, ip);
    made.then = then(case, SocketAddr::new(ip, volume.port.number()));
    Some(made)
}

/// Proposes an address in the name of an image.
fn image(case: &Case<'_>, pod: &Pod, host: &str, port: Port) -> Vec<Proposal> {
    let found = ServiceReference::of(case.cluster(), &pod.name.namespace, host);
    let Some(service) = found.map(|found| found.service) else { return Vec::new() };
    let Some(template) = Template::of_pod(case, pod) else { return Vec::new() };
    let containers = pod.spec.containers.iter().enumerate();
    let named: Vec<(usize, &str)> = containers
        .filter(|(_, own)| registry(&own.image).is_some_and(|(own, _)| own == host))
        .filter_map(|(at, own)| Some((at, own.image.split_once('/')?.1)))
        .collect();
    let with = |mut made: Proposal, address: &str| -> Option<Proposal> {
        for (at, rest) in &named {
            let value = Change::Set(Tree::text(format!("{address}/{rest}")));
            let path = way!["spec", "containers", *at, "image"];
            made = template.edit(case, made, &path, &value)?;
        }
        Some(made.costs(template.cost()))
    };
    let by_ip = || {
        let ip = *service.cluster_ips.first()?;
        let address = format!("{}:{port}", shown(ip, true));
        let title = format!("image from {address}, the cluster IP of svc/{}", service.name);
        let made = Proposal::new("cluster-ip", 10, title).ask(
            format!("the container engine trusts {address}"),
            "a registry without TLS has to stand in its settings (hosts.toml, insecure-registries)",
        );
        let mut made = with(fixed(made, service, ip), &address)?;
        made.then = then(case, SocketAddr::new(ip, port.number()));
        Some(made)
    };
    let by_node_port = || {
        let own = service.ports.iter().find(|own| own.port == port)?;
        let number = own.node_port?;
        let address = format!("localhost:{number}");
        let title = format!("image from {address}, the node port of svc/{}", service.name);
        let mut made = with(Proposal::new("local-node-port", 12, title), &address)?.trial();
        made.then = then(case, SocketAddr::new(Ipv4Addr::LOCALHOST.into(), number.number()));
        Some(made)
    };
    by_ip().into_iter().chain(by_node_port()).collect()
}

fn shown(ip: IpAddr, has_port: bool) -> String {
    match ip {
        IpAddr::V6(ip) if has_port => format!("[{ip}]"),
        ip => ip.to_string(),
    }
}

fn fixed(made: Proposal, service: &Service, ip: IpAddr) -> Proposal {
    made.costs(format!(
        "svc/{} has this address as long as it exists: clusterIP: {ip} in its manifest keeps it",
        service.name
    ))
}

fn then(case: &Case<'_>, to: SocketAddr) -> Option<Flow> {
    Some(Flow { to: Destination::Address(to), ..case.walked()?.clone() })
}
