//! The load balancer that k3s includes: for each Service, a pod on each node accepts connections at
//! the Service's ports of the node and forwards them to the Service. The addresses of those nodes
//! are the status.

use uturn_model::pod::Container;
use uturn_model::service::{Policy, ServicePort};
use uturn_model::{Cluster, Family, NamespacedName, Node, Pod, Service, Version, image};

use super::{CloudEntry, Markers, NoAddress, PortPlan, Product, StatusShape, Undelivered};

const NAME: &str = "K3s ServiceLB";

/// The program that forwards in the load balancer's pods.
const PROGRAM: &str = "klipper-lb";

/// The first release with rules for source ranges. They accept the port that was called.
const ACCEPTS_OTHER: Version = Version::new(0, 4, 0);

/// The first release whose rules accept the port to which it sends.
const ACCEPTS_SENT: Version = Version::new(0, 4, 4);

/// The description of k3s.
pub static ENTRY: CloudEntry = CloudEntry {
    products: &[&OnNodes],
    serves_services_only: true,
    writes: StatusShape::Addresses,
    ..CloudEntry::recognised(
        "k3s",
        NAME,
        Markers {
            service_keys: &["svccontroller.k3s.cattle.io/"],
            service_product: |_| Some(NAME),
            service_workloads: &["svclb-"],
            distribution_ids: &["k3s://"],
            ..Markers::NONE
        },
    )
};

/// The load balancer: pods on nodes.
struct OnNodes;

impl Product for OnNodes {
    fn name(&self) -> &'static str {
        NAME
    }

    fn is_on_nodes(&self) -> bool {
        true
    }

    fn service_of(&self, pod: &Pod) -> Option<NamespacedName> {
        let label = |key: &str| pod.spec.labels.get(&format!("{LABELS}{key}"));
        NamespacedName::new(label("svcnamespace")?, label("svcname")?).ok()
    }

    /// The first releases with rules of a firewall accept the Service's port after the destination
    /// has become a node port, and drop what they have translated.
    fn drops_forwarded(
        &self,
        pod: &Pod,
        service: &Service,
        port: &ServicePort,
    ) -> Option<Undelivered> {
        let node_port = port.node_port.filter(|own| *own != port.port)?;
        if service.external_policy != Policy::Local {
            return None;
        }
        let old = |container: &&Container| {
            let release = image::tag(&container.image).and_then(|tag| tag.parse::<Version>().ok());
            container.program() == PROGRAM
                && container.ports.iter().any(|own| own.port == port.port)
                && release.is_some_and(|release| (ACCEPTS_OTHER..ACCEPTS_SENT).contains(&release))
        };
        let container = pod.spec.containers.iter().find(old)?;
        let release = image::tag(&container.image).unwrap_or_default();
        Some(Undelivered {
            because: format!(
                "{PROGRAM} {release} accepts what is for port {} in its own FORWARD chain and drops what \
                 it translates to node port {node_port}, to which policy Local makes it send",
                port.port
            ),
            container: container.name.clone(),
            image: format!("{}:{ACCEPTS_SENT}", image::repository(&container.image)),
        })
    }

    /// No machine of the load balancer's own listens.
    fn port(&self, _: &Service, _: &ServicePort, _: Family) -> Option<PortPlan> {
        None
    }

    /// The load balancer's pods have the Service's ports as host ports, so a node on which another
    /// pod has one of them runs none of these pods.
    fn no_address(&self, cluster: &Cluster, service: &Service) -> Option<NoAddress> {
        let mut taken = cluster.nodes.values().filter(|node| node.ready).map(|node| {
            let mut others = cluster.pods_on(&node.name).filter(|pod| {
                pod.is_alive() && self.service_of(pod).as_ref() != Some(&service.name)
            });
            others.find_map(|pod| Some((node, pod, taken_port(service, pod)?)))
        });
        let first = taken.next()??;
        if !taken.all(|other| other.is_some()) || !cluster.extent.pods {
            return None;
        }
        let (node, pod, port): (&Node, &Pod, &ServicePort) = first;
        let whose = match self.service_of(pod) {
            Some(owner) => format!(", which serves Service {owner}"),
            None => String::new(),
        };
        let because = format!(
            "{NAME} serves it with pods that have its ports as host ports, and every node's port \
             {} {} is taken: on node {} by Pod {}{whose}",
            port.port, port.protocol, node.name, pod.name
        );
        Some(NoAddress { because, condition: None })
    }
}

/// Returns the port of a Service that a pod has as a host port.
fn taken_port<'s>(service: &'s Service, pod: &Pod) -> Option<&'s ServicePort> {
    service.ports.iter().find(|port| {
        let mut ports = pod.spec.ports();
        ports.any(|own| own.host_port == Some(port.port) && own.protocol == port.protocol)
    })
}

/// The prefix of the labels with which the load balancer's pods name the Service.
const LABELS: &str = "svccontroller.k3s.cattle.io/";
