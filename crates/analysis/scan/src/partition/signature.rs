//! The signature of a target: everything that a walk towards it can depend on, without names,
//! addresses and ports on nodes. Targets with equal signatures share their verdicts.
//!
//! Annotations and labels are not read here: [`Switches`](uturn_kubeproxy::Switches) contains
//! kube-proxy's reading of them, and `balancer_key` the load balancers that the cloud's controller
//! makes of the object. So a cloud that reads other annotations needs no change here.

mod balancer_key;
mod service_key;

use std::hash::Hash;
use std::net::IpAddr;
use std::sync::Arc;

use uturn_model::gateway::{AttachedRoute, RouteBackend, RouteRedirect};
use uturn_model::ingress::{Backend, BackendPort};
use uturn_model::{Cluster, Family, Ingress, Labels, Name, NamespacedName, Port, Service, Unknown};
use uturn_netfilter::IpProtocol;
use uturn_netfilter::hash::FastMap;

use super::PART;
use crate::distinguish::discriminators::Discriminators;
use crate::inventory::Inventory;
use crate::numbers::Numbers;
use crate::partition::scope::{Met, Scope};
use balancer_key::{BalancerKey, SampleCluster};
use service_key::ServiceKey;

/// The request to a target, without its address and names.
#[derive(PartialEq, Eq, Hash)]
struct RequestKey {
    port: u16,
    protocol: IpProtocol,
    is_http: bool,
    tls: Option<bool>,
    has_name: bool,
}

/// The part of an Ingress that a walk reads; its load balancer's behaviour is a [`BalancerKey`].
#[derive(PartialEq, Eq, Hash)]
struct IngressKey {
    /// The Services that its rules lead to, by their places in scope, and their ports.
    backends: Vec<Vec<BackendKey>>,
    /// The redirects of its routes.
    redirects: Vec<RouteRedirect>,
    /// The listeners of a Gateway that a route is attached to.
    listeners: Vec<(Port, bool)>,
    is_of_connections: bool,
    is_in_doubt: bool,
    unjudged: Vec<Unknown>,
}

/// The place of a Service in scope, `None` if it is not in scope; its port, its weight, and whether
/// a route may lead there.
type BackendKey = (Option<usize>, BackendPort, u32, Option<bool>);

/// Numbers the requests, Services, Ingresses and load balancers of signatures.
pub(crate) struct SignatureNumbers<'a> {
    requests: Numbers<RequestKey>,
    service_keys: Numbers<ServiceKey<'a>>,
    ingress_keys: Numbers<IngressKey>,
    balancer_keys: Numbers<BalancerKey>,
    sample: SampleCluster,
    /// The number of each Service's key.
    services: FastMap<&'a NamespacedName, u32>,
    /// Signatures without the request.
    of_objects: Numbers<Vec<u64>>,
    /// The numbers of these signatures if no Ingress is in scope, by the place in memory of what
    /// targets can meet, which is kept here, and the called address.
    of_met: FastMap<(usize, IpAddr), (Arc<Met<'a>>, u32)>,
}

impl<'a> SignatureNumbers<'a> {
    /// Prepares for the targets of a cluster whose Services ask their nodes for these labels.
    pub(crate) fn new(cluster: &Cluster, node_labels: &[Labels]) -> Self {
        Self {
            requests: Numbers::default(),
            service_keys: Numbers::default(),
            ingress_keys: Numbers::default(),
            balancer_keys: Numbers::default(),
            sample: SampleCluster::new(cluster, node_labels),
            services: FastMap::default(),
            of_objects: Numbers::default(),
            of_met: FastMap::default(),
        }
    }

    /// Drops the cache that targets share.
    pub(crate) fn forget(&mut self) {
        self.of_met = FastMap::default();
    }

    /// Adds everything to a shape that a walk can depend on, except nodes and endpoints.
    pub(crate) fn add_signature(
        &mut self,
        inventory: &Inventory<'a>,
        discriminators: &mut Discriminators,
        scope: &Scope<'a>,
        shape: &mut Vec<u64>,
    ) {
        let asked = &scope.asked;
        let request = RequestKey {
            port: asked.to.port(),
            protocol: asked.protocol,
            is_http: asked.request.http.is_some(),
            tls: asked.request.tls,
            has_name: asked.request.asked_name().is_some(),
        };
        shape.push(u64::from(self.requests.of(request)));
        shape.push(u64::from(self.objects(inventory, discriminators, scope)));
        // A load balancer that Facts state is not equal to any other.
        shape.extend(scope.stated.map(|place| place as u64));
    }

    /// Returns the number of the signature without the request.
    fn objects(
        &mut self,
        inventory: &Inventory<'a>,
        discriminators: &mut Discriminators,
        scope: &Scope<'a>,
    ) -> u32 {
        let key = (Arc::as_ptr(&scope.met).addr(), scope.asked.to.ip());
        let known = self.of_met.get(&key).filter(|_| scope.ingresses.is_empty());
        if let Some((_, number)) = known {
            return *number;
        }
        let (addresses, ports, shape) = (Places::default(), Places::default(), Vec::new());
        let mut writer =
            SignatureWriter { numbers: self, inventory, discriminators, addresses, ports, shape };
        writer.address(scope.asked.to.ip());
        for service in &scope.services {
            writer.shape.push(PART);
            writer.service(service);
        }
        for ingress in &scope.ingresses {
            writer.shape.push(PART);
            writer.ingress(ingress, &scope.services);
        }
        writer.shape.push(PART);
        writer.balancers(scope);
        let shape = writer.shape;
        let number = self.of_objects.of(shape);
        if scope.ingresses.is_empty() {
            self.of_met.insert(key, (Arc::clone(&scope.met), number));
        }
        number
    }
}

/// Writes a signature: addresses and ports on nodes appear by their order and by what rules can
/// distinguish in them.
struct SignatureWriter<'s, 'a> {
    numbers: &'s mut SignatureNumbers<'a>,
    inventory: &'s Inventory<'a>,
    discriminators: &'s mut Discriminators,
    addresses: Places<IpAddr>,
    ports: Places<u16>,
    shape: Vec<u64>,
}

impl<'a> SignatureWriter<'_, 'a> {
    fn address(&mut self, ip: IpAddr) {
        let at = self.addresses.of(ip);
        let family = u64::from(Family::of(ip) == Family::V6);
        // An address that also belongs to a node or pod is not equal to any other.
        let holder = self.inventory.node_towards(ip).map_or(0, |place| 1 + u64::from(place));
        let mark = u64::from(self.discriminators.of(ip));
        self.shape.extend([at as u64, family << 32 | mark, holder]);
    }

    fn port(&mut self, port: u16) {
        let at = self.ports.of(port);
        let mark = self.discriminators.of_port(port);
        self.shape.extend([at as u64, u64::from(mark)]);
    }

    fn service(&mut self, service: &'a Service) {
        let keys = &mut self.numbers.service_keys;
        let number = self.numbers.services.entry(&service.name);
        let binding = self.inventory.cluster.proxy.address_binding;
        let number = *number.or_insert_with(|| keys.of(ServiceKey::of(service, binding)));
        self.shape.push(u64::from(number));
        for list in [&service.cluster_ips, &service.external_ips] {
            self.shape.push(list.len() as u64);
            for ip in list {
                self.address(*ip);
            }
        }
        for ip in service.load_balancer.iter().filter_map(|entry| entry.ip) {
            self.address(ip);
        }
        let own = service.ports.iter().map(|port| port.node_port);
        for port in own.chain([service.health_check_node_port]) {
            match port {
                Some(port) => self.port(port.number()),
                None => self.shape.push(PART - 1),
            }
        }
    }

    fn ingress(&mut self, ingress: &Ingress, services: &[&Service]) {
        let Ingress {
            name,
            default_backend,
            rules,
            load_balancer,
            unjudged,
            // A controller in the cluster is considered node by node.
            controller: _,
            possible_controllers: _,
            // The controllers have no rules of an Ingress that nothing serves.
            unserved: _,
            // No walk reads whether an address is still to be assigned.
            is_pending: _,
            // Only the cloud's controller reads this: see `balancers`.
            product: _,
            route,
            annotations: _,
            class_settings: _,
            class: _,
            tls: _,
            origin: _,
        } = ingress;
        let paths = rules.iter().flat_map(|rule| &rule.paths).map(|path| &path.backend);
        let backends = paths.chain(default_backend).map(|backend| {
            let place = |namespace: &Name, service: &Name| {
                let is_it = |known: &&Service| {
                    known.name.name == *service && known.name.namespace == *namespace
                };
                services.iter().position(is_it)
            };
            match backend {
                Backend::Service { name: service, port } => {
                    vec![(place(&name.namespace, service), port.clone(), 1, Some(true))]
                }
                Backend::Services(all) => {
                    let one = |behind: &RouteBackend| {
                        let RouteBackend { service, port, weight, is_granted } = behind;
                        let port = BackendPort::Number(*port);
                        (place(&service.namespace, &service.name), port, *weight, *is_granted)
                    };
                    all.iter().map(one).collect()
                }
                Backend::Resource(_) | Backend::Redirect(_) => Vec::new(),
            }
        });
        let backends = backends.collect();
        let paths = rules.iter().flat_map(|rule| &rule.paths);
        let redirects = paths.filter_map(|path| match &path.backend {
            Backend::Redirect(redirect) => Some(redirect.clone()),
            _ => None,
        });
        let listeners = route.iter().flat_map(|route| &route.listeners);
        let listeners = listeners.map(|listener| (listener.port, listener.tls));
        let key = IngressKey {
            backends,
            redirects: redirects.collect(),
            listeners: listeners.collect(),
            is_in_doubt: route.as_ref().is_some_and(|route| route.doubt.is_some()),
            is_of_connections: route.as_ref().is_some_and(AttachedRoute::is_of_connections),
            unjudged: unjudged.clone(),
        };
        self.shape.push(u64::from(self.numbers.ingress_keys.of(key)));
        for ip in load_balancer.iter().filter_map(|entry| entry.ip) {
            self.address(ip);
        }
    }

    /// Adds the load balancers of the objects in scope.
    fn balancers(&mut self, scope: &Scope<'a>) {
        let facts = &self.inventory.cluster.load_balancers;
        let made = self.numbers.sample.balancers(scope, facts);
        for (vip, key) in made {
            self.address(vip);
            self.shape.push(u64::from(self.numbers.balancer_keys.of(key)));
        }
    }
}

/// Numbers addresses or ports by their order. Mostly there are only a few.
struct Places<T> {
    first: Vec<T>,
    others: Numbers<T>,
}

/// The number of elements that are compared one by one.
const FIRST: usize = 16;

impl<T> Default for Places<T> {
    fn default() -> Self {
        Self { first: Vec::new(), others: Numbers::default() }
    }
}

impl<T: Copy + Eq + Hash> Places<T> {
    fn of(&mut self, wanted: T) -> usize {
        if let Some(at) = self.first.iter().position(|known| *known == wanted) {
            return at;
        }
        if self.first.len() < FIRST {
            self.first.push(wanted);
            return self.first.len() - 1;
        }
        FIRST + self.others.of(wanted) as usize
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "what is wrong here fails the test")]

    use std::fmt::Write as _;

    use uturn_clouds::controller;
    use uturn_model::Protocol;
    use uturn_model::lb::{LoadBalancer, Scheduler};
    use uturn_snapshot::{Source, read};
    use uturn_testing::manifests::{facts, node};

    use super::*;
    use uturn_path::{Request, outline_of_listeners};

    use crate::partition::scope::{KnownMet, Listeners, TargetRequest};
    use crate::partition::target_classes::{Classifier, Granularity};

    /// Makes a cluster with a Service of type LoadBalancer for each list of annotations. The
    /// Services differ only in these, names and addresses.
    fn cluster(annotations: &[&str]) -> Cluster {
        let mut text = facts(&["provider: tke"]) + &node(1);
        for (number, annotations) in (1..).zip(annotations) {
            let _ = writeln!(
                text,
                "---\n{{apiVersion: v1, kind: Service, metadata: {{name: s{number}, namespace: shop, \
                 annotations: {{{annotations}}}}}, spec: {{type: LoadBalancer, clusterIP: 172.16.0.{number}, \
                 ports: [{{port: 80, nodePort: 3000{number}}}]}}, \
                 status: {{loadBalancer: {{ingress: [{{ip: 10.0.0.10{number}}}]}}}}}}"
            );
        }
        read(vec![Source { name: "cluster.yaml".into(), text }]).unwrap().cluster
    }

    /// Returns the shapes of the Services' load balancers, which `make` makes.
    fn shapes(cluster: &Cluster, make: fn(&Cluster) -> Vec<LoadBalancer>) -> Vec<Vec<u64>> {
        let mut discriminators = Discriminators::new(cluster, &[], &FastMap::default());
        let inventory =
            Inventory::new(cluster, Vec::new(), FastMap::default(), &mut discriminators);
        let listeners = Listeners::new(cluster, &outline_of_listeners(cluster));
        let mut classifier = Classifier::new(inventory, discriminators);
        classifier.signatures.sample.make = make;
        let shape = |service: &Service| {
            let to = (service.load_balancer[0].ip.unwrap(), 80).into();
            let protocol = Protocol::Tcp.into();
            let asked = TargetRequest { to, protocol, request: Request::default() };
            let known = KnownMet::default();
            let scope = Scope::new(&classifier.inventory, &listeners, &known, asked);
            classifier.classify(scope, Granularity::Classes, None).shape
        };
        cluster.services.values().map(shape).collect()
    }

    /// Makes load balancers of a cloud that pick by the client's address if one of the cloud's
    /// annotations asks for it.
    fn of_another_cloud(cluster: &Cluster) -> Vec<LoadBalancer> {
        let mut made = controller::load_balancers(cluster);
        for listener in made.iter_mut().flat_map(|balancer| &mut balancer.listeners) {
            let service = &cluster.services[&listener.rules[0].service];
            if service.annotations.is("cloud.example/picks-by", "client") {
                listener.profile.scheduler = Scheduler::SourceHash;
            }
        }
        made
    }

    #[test]
    fn what_a_load_balancer_does_distinguishes_targets() {
        let cluster = cluster(&["", "cloud.example/picks-by: client", "cloud.example/other: x"]);
        let shapes = shapes(&cluster, of_another_cloud);
        assert_ne!(shapes[0], shapes[1], "another scheduler");
        assert_eq!(shapes[0], shapes[2], "the same listener");
    }

    #[test]
    fn annotations_that_nothing_reads_do_not() {
        let unread = "service.kubernetes.io/unread: a, example.kubernetes.io/unread: b";
        let cluster = cluster(&["", unread]);
        let shapes = shapes(&cluster, controller::load_balancers);
        assert_eq!(shapes[0], shapes[1]);
    }

    #[test]
    fn annotations_that_the_controller_reads_do() {
        let direct = "service.cloud.tencent.com/direct-access: 'true'";
        let labelled = "service.kubernetes.io/qcloud-loadbalancer-backends-label: pool=web";
        let cluster = cluster(&["", direct, labelled]);
        let shapes = shapes(&cluster, controller::load_balancers);
        assert_ne!(shapes[0], shapes[1], "pods are targets");
        assert_ne!(shapes[0], shapes[2], "other nodes are targets");
    }
}
