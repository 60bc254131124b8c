//! Finds Gateways of a service mesh that select no gateway, or have a port that no Service of the
//! gateway has.

use std::time::Duration;

use uturn_model::service::{ServicePort, TargetPort};
use uturn_model::{
    Cluster, MeshGateway, MeshRoute, Outcome, Pod, Port, Share, gateway_ports, mesh,
};
use uturn_path::Engine;

use super::object_faults::about;
use crate::clients::Clients;
use crate::finding::Finding;
use crate::{Code, Severity};

pub(crate) fn find(engine: &Engine<'_>) -> Vec<Finding> {
    let cluster = engine.cluster();
    if !cluster.extent.pods {
        return Vec::new();
    }
    let pods = cluster.pods.values().filter(|pod| pod.is_alive() && mesh::is_gateway(&pod.spec));
    let pods: Vec<&Pod> = pods.collect();
    let fault = |gateway: &MeshGateway| {
        let selected: Vec<&Pod> =
            pods.iter().copied().filter(|pod| gateway.selects(&pod.spec)).collect();
        let what = match selected.first() {
            None => selects_none(cluster, gateway, &pods)?,
            Some(pod) => gateway.ports.iter().find_map(|port| wrong_port(cluster, pod, *port))?,
        };
        let mut finding = about(Code::GatewayOpensNothing, gateway.object(), &gateway.origin, what);
        finding.targets = gateway.ports.iter().map(|port| format!(":{port}")).collect();
        finding.clients = Clients::other(Clients::OF_HOSTS);
        finding.share_failing = Share::ALL;
        finding.outcome = Outcome::Refused;
        Some(finding)
    };
    let misplaced = cluster.mesh_routes.iter().filter_map(|route| misplaced(cluster, route));
    cluster.mesh_gateways.iter().filter_map(fault).chain(misplaced).collect()
}

/// Finds that a VirtualService is read by no Gateway, and is probably meant for one of another
/// namespace.
fn misplaced(cluster: &Cluster, route: &MeshRoute) -> Option<Finding> {
    let meant = gateway_ports::misplaced(cluster, route)?;
    let named: Vec<String> = route.gateways.iter().map(ToString::to_string).collect();
    let what = format!(
        "VirtualService {} is for Gateway {}, which does not exist: {} is probably meant, and has to \
         be named with its namespace ({})",
        route.name,
        named.join(", "),
        meant.name,
        route.origin
    );
    let mut finding = about(Code::GatewayOpensNothing, meant.object(), &meant.origin, what);
    finding.targets = route.hosts.iter().map(ToString::to_string).collect();
    finding.clients = Clients::other(Clients::OF_HOSTS);
    finding.share_failing = Share::ALL;
    finding.outcome = Outcome::Status { code: 404, after: Duration::ZERO };
    Some(finding)
}

/// Lowers the severity of ports that a gateway's Service has and no Gateway opens, if Gateways open
/// others of the same Service, or none selects the gateway: charts give the Service more ports than
/// most clusters use, and install gateways that nobody uses. A load balancer's health checks of such
/// a port get no answer either.
pub(crate) fn excuse_unused_ports(engine: &Engine<'_>, findings: &mut [Finding]) {
    let cluster = engine.cluster();
    let may_be = |code| matches!(code, Code::WrongPort | Code::NoCandidate);
    for finding in findings.iter_mut().filter(|finding| may_be(finding.code)) {
        let name = finding.subject.namespaced_name();
        let service = name.and_then(|name| cluster.services.get(&name));
        let Some(service) = service.filter(|service| service.object() == finding.subject) else {
            continue;
        };
        let slices = cluster.slices(&service.name).iter();
        let ports: Vec<u16> =
            slices.flat_map(|slice| &slice.ports).map(|port| port.port.number()).collect();
        let pods = cluster.selected(service);
        let opens = |port: &u16, wanted: bool| {
            // The proxy's own ports are open in any case.
            let is_own = (15_000..15_100).contains(port);
            let is = |pod: &&Pod| gateway_ports::opens(cluster, pod, *port) == Some(wanted);
            !is_own && !pods.is_empty() && pods.iter().all(is)
        };
        let has = |wanted: bool| ports.iter().any(|port| opens(port, wanted));
        let is_unused =
            |pod: &&Pod| !cluster.mesh_gateways.iter().any(|gateway| gateway.selects(&pod.spec));
        let is_closed = |target: &String| {
            let number = target.rsplit(':').next().unwrap_or_default();
            let mut of_service = service.ports.iter();
            let port = of_service.find(|port| port.port.to_string() == number);
            port.is_some_and(|port| {
                pods.iter().all(|pod| match number_of(pod, port) {
                    Some(number) => gateway_ports::opens(cluster, pod, number) == Some(false),
                    None => false,
                })
            })
        };
        let is_about_closed =
            finding.code == Code::WrongPort || finding.targets.iter().all(is_closed);
        if is_about_closed && has(false) && (has(true) || pods.iter().all(is_unused)) {
            finding.severity = Severity::Info;
        }
    }
}

/// Returns the port of a pod to which a port of its Service leads.
fn number_of(pod: &Pod, port: &ServicePort) -> Option<u16> {
    match &port.target {
        TargetPort::Number(number) => Some(number.number()),
        TargetPort::Name(name) => Some(pod.spec.named_port(name, port.protocol)?.number()),
    }
}

/// Describes a Gateway whose selector fits no pod. Returns `None` if it may be for pods that are no
/// gateways: any pod with the mesh's proxy can be selected.
fn selects_none(cluster: &Cluster, gateway: &MeshGateway, pods: &[&Pod]) -> Option<String> {
    let alive = cluster.pods.values().filter(|pod| pod.is_alive());
    if alive.into_iter().any(|pod| gateway.selects(&pod.spec)) {
        return None;
    }
    let wanted: Vec<String> =
        gateway.selector.iter().map(|(key, value)| format!("{key}: {value}")).collect();
    let near = pods.iter().find_map(|pod| {
        let (key, own) =
            gateway.selector.iter().find_map(|(key, _)| Some((key, pod.spec.labels.get(key)?)))?;
        Some(format!("; gateway pod {} has {key}: {own}", pod.name))
    });
    let near = near.or_else(|| Some(format!("; gateway pod {} lacks them", pods.first()?.name)));
    Some(format!(
        "no pod has the labels of its selector ({}), so no proxy opens its ports{}",
        wanted.join(", "),
        near.unwrap_or_else(|| ", and no gateway runs here".to_owned())
    ))
}

/// Describes a port that no Service of a gateway's pods leads to, if it is the node port of one.
fn wrong_port(cluster: &Cluster, pod: &Pod, port: Port) -> Option<String> {
    let services = gateway_ports::services_of(cluster, pod);
    let ports: Vec<&ServicePort> = services.flat_map(|service| &service.ports).collect();
    let leads = |own: &&ServicePort| own.port == port || own.target == TargetPort::Number(port);
    if ports.iter().copied().any(|own| leads(&own)) {
        return None;
    }
    let own = ports.iter().find(|own| own.node_port == Some(port))?;
    Some(format!(
        "its server has port {port}, which is the node port of port {} of its gateway's Service: the \
         proxy opens {port}, to which nothing leads; number: {} is meant",
        own.port, own.port
    ))
}
