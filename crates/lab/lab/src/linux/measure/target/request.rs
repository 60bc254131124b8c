//! The request that a client makes to a destination.

use std::net::{IpAddr, SocketAddr};

use uturn_clouds::controller;
use uturn_model::service::ServicePort;
use uturn_model::{Cluster, Destination, Family, LoadBalancer, Port};

use super::addresses::{ingress_balancer, resolve, unknown};
use crate::LabError;
use crate::linux::measure::client::{ClientProtocol, RequestSpec};

pub(super) fn request_spec(
    cluster: &Cluster,
    load_balancers: &[LoadBalancer],
    to: &Destination,
    family: Family,
    resolved: Option<IpAddr>,
) -> Result<RequestSpec, LabError> {
    let plain = |address: SocketAddr| RequestSpec {
        address,
        others: Vec::new(),
        host: address.to_string(),
        path: "/".into(),
        protocol: ClientProtocol::Any { tls: false },
        redirected: None,
    };
    let named = |host: &str, port: Port, path: &str, protocol: ClientProtocol| {
        let ip = resolved.or_else(|| resolve(cluster, load_balancers, host, family)).ok_or_else(
            || LabError::Plan(format!("nothing says what address the name {host} has")),
        )?;
        let host = match (ip, port.number()) {
            (IpAddr::V6(ip), port) if host.parse() == Ok(ip) => format!("[{host}]:{port}"),
            (_, 80) if protocol != ClientProtocol::Https => host.to_owned(),
            (_, 443) if protocol == ClientProtocol::Https => host.to_owned(),
            (_, port) => format!("{host}:{port}"),
        };
        let address = SocketAddr::new(ip, port.number());
        Ok(RequestSpec {
            address,
            others: Vec::new(),
            host,
            path: path.into(),
            protocol,
            redirected: None,
        })
    };
    match to {
        Destination::Url { tls, host, port, path } => {
            let protocol = if *tls { ClientProtocol::Https } else { ClientProtocol::Http };
            named(host, *port, path, protocol)
        }
        Destination::Host(host, port) => {
            named(host, *port, "/", ClientProtocol::Any { tls: false })
        }
        Destination::Address(address) => Ok(plain(*address)),
        Destination::Service(name, port) => {
            let service = cluster.services.get(name).ok_or_else(|| unknown(to))?;
            let wanted = |candidate: &&ServicePort| match port.as_deref() {
                None => true,
                Some(text) => {
                    candidate.name.as_deref() == Some(text) || candidate.port.to_string() == text
                }
            };
            let port = service.ports.iter().find(wanted).ok_or_else(|| unknown(to))?;
            let ip = service.cluster_ip(family).or_else(|| service.cluster_ips.first().copied());
            let ip = ip.ok_or_else(|| LabError::Plan(format!("{to} has no cluster IP")))?;
            Ok(plain(SocketAddr::new(ip, port.port.number())))
        }
        Destination::Pod(name, port) => {
            let pod = cluster.pods.get(name).ok_or_else(|| unknown(to))?;
            let ip = pod.address(family).or_else(|| pod.ips.first().copied());
            let ip = ip.ok_or_else(|| LabError::Plan(format!("{to} has no address")))?;
            Ok(plain(SocketAddr::new(ip, port.number())))
        }
        Destination::Ingress { name, host, path, .. } => {
            let ingress = cluster.ingresses.get(name).ok_or_else(|| unknown(to))?;
            let lb = ingress_balancer(load_balancers, name, host.as_deref())
                .ok_or_else(|| LabError::Plan(format!("no load balancer serves {to}")))?;
            let call = controller::ingress_call(cluster, ingress, host.as_ref(), path.as_ref());
            let address = SocketAddr::new(lb.vip, call.port.number());
            Ok(RequestSpec {
                address,
                others: Vec::new(),
                host: call.host.map_or_else(|| address.to_string(), |host| host.to_string()),
                path: call.path.map_or_else(|| "/".into(), |path| path.to_string()),
                protocol: if call.protocol.ends_tls() {
                    ClientProtocol::Https
                } else {
                    ClientProtocol::Http
                },
                redirected: None,
            })
        }
    }
}
