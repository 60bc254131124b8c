//! A running pod: its namespace and its servers, or the real program for CoreDNS.

use std::net::IpAddr;

use kube::Client;
use serde_json::{Value, json};
use uturn_model::{Cluster, Pod};
use uturn_snapshot::Source;

use super::super::record::Place;
use super::PodContext;
use super::core_dns::{self, CoreDns};
use crate::LabError;
use crate::linux::build::pods;
use crate::linux::kernel::namespace::Namespace;
use crate::linux::kernel::system::During;
use crate::linux::serve::names::outside;
use crate::linux::serve::names::resolver::{Resolver, Settings};
use crate::linux::serve::server::Servers;

/// A running pod. When it is dropped, its programs end and its namespace is removed.
pub(super) struct RunningPod {
    // The order matters: servers end before their namespace.
    core_dns: Option<CoreDns>,
    _servers: Option<Servers>,
    own_space: Option<Namespace>,
    place: Place,
}

impl RunningPod {
    /// Builds a pod and starts its programs. `services` are those of its namespace, `files` the
    /// files of its CoreDNS.
    pub(super) fn start(
        context: PodContext<'_>,
        number: usize,
        object: &Value,
        ip: IpAddr,
        services: &[Value],
        files: &core_dns::Files,
    ) -> Result<Self, LabError> {
        let (cluster, pod) = read(object, ip, services)?;
        let own_space = if pod.spec.host_network {
            None
        } else {
            let (run, layout, lab_cluster) =
                (context.run, &context.layout.cluster, context.lab_cluster);
            Some(pods::build(run, layout, lab_cluster, number, &pod)?)
        };
        let space = own_space.as_ref().or_else(|| context.lab_cluster.of_pod(&pod));
        let space = space.ok_or_else(|| LabError::Cluster("the pod's node is not built".into()))?;
        let is_core_dns = core_dns::runs_in(&pod);
        let core_dns =
            if is_core_dns { Some(CoreDns::start(context, &pod, space, files)?) } else { None };
        let servers = if is_core_dns || pod.spec.host_network && core_dns::is_component(&pod) {
            None
        } else {
            Some(Servers::of_pod(&cluster, &pod, space)?)
        };
        let settings = Settings {
            cluster: context.layout.dns.into(),
            node: outside::address(&context.layout.cluster),
            domain: context.layout.cluster.dns.domain(),
        };
        let place = Place {
            name: format!("pod/{}/{}", pod.name.namespace, pod.name.name),
            namespace: space.name().to_owned(),
            resolv_conf: Resolver::of_pod(&settings, &pod).to_resolv_conf(),
        };
        place.write(context.run.folder()).during(&format!("record pod {}", pod.name))?;
        Ok(Self { core_dns, _servers: servers, own_space, place })
    }

    /// Returns whether the pod has its node's address.
    pub(super) fn shares_host(&self) -> bool {
        self.own_space.is_none()
    }

    /// Ends the pod.
    pub(super) fn leave(self, context: PodContext<'_>) {
        self.place.remove(context.run.folder());
    }

    /// Reads the files of the pod's CoreDNS again.
    pub(super) async fn refresh(&self, context: PodContext<'_>, client: &Client) {
        if let Some(core_dns) = &self.core_dns {
            core_dns.refresh(context, client).await;
        }
    }
}

/// Reads an object of the API server as a pod with this address. If no container declares a port,
/// the pod gets those that Services send to.
fn read(object: &Value, ip: IpAddr, services: &[Value]) -> Result<(Cluster, Pod), LabError> {
    let mut object = object.clone();
    object["status"] = json!({"phase": "Running", "podIP": ip, "podIPs": [{"ip": ip}]});
    let declares =
        |container: &Value| container["ports"].as_array().is_some_and(|all| !all.is_empty());
    let containers = object["spec"]["containers"].as_array();
    if !containers.is_some_and(|containers| containers.iter().any(declares)) {
        object["spec"]["containers"][0]["ports"] = ports(&object, services).into();
    }
    let source = Source { name: "pod".into(), text: object.to_string() };
    let mut cluster = uturn_snapshot::read(vec![source])
        .map_err(|faults| {
            let faults: Vec<String> = faults.iter().map(ToString::to_string).collect();
            LabError::Cluster(faults.join("; "))
        })?
        .cluster;
    let pod = cluster.pods.pop_first().map(|(_, pod)| pod);
    let pod = pod.ok_or_else(|| LabError::Cluster("the object is not a pod".into()))?;
    Ok((cluster, pod))
}

/// Returns the numbered ports that the Services of a pod send to.
fn ports(pod: &Value, services: &[Value]) -> Vec<Value> {
    let labels = &pod["metadata"]["labels"];
    let selects = |service: &&Value| {
        let selector = service["spec"]["selector"].as_object();
        selector.is_some_and(|selector| {
            !selector.is_empty() && selector.iter().all(|(key, value)| labels[key] == *value)
        })
    };
    let all = services.iter().filter(selects);
    let all = all.flat_map(|service| service["spec"]["ports"].as_array().into_iter().flatten());
    let mut ports: Vec<Value> = Vec::new();
    for port in all {
        let target = port.get("targetPort").unwrap_or(&port["port"]);
        let made = json!({"containerPort": target, "protocol": port["protocol"]});
        if target.is_u64() && !ports.contains(&made) {
            ports.push(made);
        }
    }
    ports
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_are_declared_or_those_of_services() {
        let mut object = json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {"namespace": "shop", "name": "web-0", "labels": {"app": "web"}},
            "spec": {"nodeName": "n1", "containers": [{"name": "web", "image": "web:1"}]},
        });
        let service = |app: &str, target: Value| {
            let port = json!({"port": 80, "protocol": "TCP", "targetPort": target});
            json!({"spec": {"selector": {"app": app}, "ports": [port]}})
        };
        let services =
            [service("web", json!(8080)), service("web", json!("http")), service("api", json!(1))];
        let ip = "10.1.1.2".parse().unwrap();
        let served = |object: &Value| -> Vec<u16> {
            let (_, pod) = read(object, ip, &services).unwrap();
            assert_eq!(pod.ips, [ip]);
            pod.spec.ports().map(|port| port.port.number()).collect()
        };
        assert_eq!(served(&object), [8080]);
        object["spec"]["containers"][0]["ports"] = json!([{"containerPort": 9090}]);
        assert_eq!(served(&object), [9090]);
    }
}
