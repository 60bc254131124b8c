//! All that a walk towards a target can depend on, said without names, addresses and ports
//! on nodes: targets of which the same is said are alike.

use std::net::IpAddr;

use uturn_lb::controller;
use uturn_model::{Family, NamespacedName, Service};

use crate::inventory::said;
use crate::scope::Scope;
use crate::target_classes::{Classifier, PART};

impl<'a> Classifier<'a> {
    /// Says all else that a walk can depend on.
    pub(crate) fn say(&mut self, scope: &Scope<'a>, shape: &mut Vec<u64>) {
        let cluster = self.census.cluster;
        let mut told = Told { sketcher: self, addresses: Vec::new(), ports: Vec::new() };
        shape.push(PART);
        let asked = &scope.asked;
        told.address(asked.to.ip(), shape);
        let speaks = (asked.protocol, asked.request.http.is_some(), asked.request.tls);
        told.text(&(asked.to.port(), speaks), shape);
        if let Some(one) = &scope.balancer {
            told.text(&(one.scope, &one.security_groups), shape);
            let facts = cluster.load_balancers.iter().filter(|fact| fact.vip == one.vip);
            for fact in facts {
                let listeners: Vec<_> = fact
                    .listeners
                    .iter()
                    .map(|one| (one.port, one.protocol, one.snat, one.scheduler))
                    .collect();
                told.text(&(fact.scope, fact.probe_source, listeners), shape);
            }
        }
        for service in &scope.services {
            shape.push(PART);
            told.service(service, shape);
        }
        for one in &scope.ingresses {
            shape.push(PART);
            let paths = one.rules.iter().flat_map(|rule| &rule.paths).map(|path| &path.backend);
            let backends = paths.chain(&one.default_backend).map(|backend| {
                let uturn_model::ingress::Backend::Service { name, port } = backend else {
                    return None;
                };
                let own = |service: &&&Service| {
                    service.name.name == *name && service.name.namespace == one.name.namespace
                };
                Some((scope.services.iter().position(|service| own(&service)), port))
            });
            let backends: Vec<_> = backends.collect();
            let annotations = telling(&one.annotations);
            let vips = one.load_balancer.iter().filter_map(|one| one.ip);
            vips.for_each(|ip| told.address(ip, shape));
            let wanted = controller::ingress_wants(one);
            told.text(&(&one.class, wanted, annotations, backends, &one.unjudged), shape);
            told.configs(&one.name, &one.annotations, shape);
        }
    }
}

/// Tells addresses and ports on nodes without naming them.
struct Told<'s, 'a> {
    sketcher: &'s mut Classifier<'a>,
    addresses: Vec<IpAddr>,
    ports: Vec<u16>,
}

impl<'a> Told<'_, 'a> {
    fn text(&mut self, what: &dyn std::fmt::Debug, shape: &mut Vec<u64>) {
        shape.push(u64::from(self.sketcher.texts.of(said(what))));
    }

    fn address(&mut self, ip: IpAddr, shape: &mut Vec<u64>) {
        let at = match self.addresses.iter().position(|one| *one == ip) {
            Some(at) => at,
            None => {
                self.addresses.push(ip);
                self.addresses.len() - 1
            }
        };
        let census = &self.sketcher.census;
        let family = u64::from(Family::of(ip) == Family::V6);
        // An address that somebody else has is not like any other.
        let place = census.node_towards(ip).map_or(0, |place| 1 + u64::from(place));
        shape.extend([at as u64, family << 32 | u64::from(self.sketcher.marks.of(ip)), place]);
    }

    fn port(&mut self, port: u16, shape: &mut Vec<u64>) {
        let at = match self.ports.iter().position(|one| *one == port) {
            Some(at) => at,
            None => {
                self.ports.push(port);
                self.ports.len() - 1
            }
        };
        let mark = self.sketcher.marks.of_port(port);
        shape.extend([at as u64, u64::from(mark)]);
    }

    fn service(&mut self, service: &'a Service, shape: &mut Vec<u64>) {
        let sketcher = &mut *self.sketcher;
        let texts = &mut sketcher.texts;
        let number = sketcher.services.entry(&service.name);
        shape.push(u64::from(*number.or_insert_with(|| texts.of(settings(service)))));
        for list in [&service.cluster_ips, &service.external_ips] {
            shape.push(list.len() as u64);
            for ip in list {
                self.address(*ip, shape);
            }
        }
        for ip in service.load_balancer.iter().filter_map(|one| one.ip) {
            self.address(ip, shape);
        }
        let own = service.ports.iter().map(|one| one.node_port);
        for port in own.chain([service.health_check_node_port]) {
            match port {
                Some(port) => self.port(port.number(), shape),
                None => shape.push(PART - 1),
            }
        }
        self.configs(&service.name, &service.annotations, shape);
    }

    /// What a TkeServiceConfig says that an object names.
    fn configs(
        &mut self,
        owner: &NamespacedName,
        annotations: &uturn_model::Labels,
        shape: &mut Vec<u64>,
    ) {
        for name in config_names(owner, annotations) {
            let Some(config) = self.sketcher.census.cluster.tke_service_configs.get(&name) else {
                continue;
            };
            let listeners: Vec<_> = config
                .listeners
                .iter()
                .map(|one| {
                    let speaks = (one.port, one.protocol, one.keepalive, one.scheduler);
                    (speaks, one.health_check, one.probe_source)
                })
                .collect();
            self.text(&listeners, shape);
        }
    }
}

/// All that a Service says of itself but for addresses and ports on nodes.
fn settings(service: &Service) -> String {
    let external = (service.external_policy, service.allocates_node_ports);
    let ports: Vec<_> =
        service.ports.iter().map(|one| (&one.name, one.protocol, one.port, &one.target)).collect();
    let ours: Vec<_> = service
        .load_balancer
        .iter()
        .map(|one| (one.ip.is_some(), one.hostname.is_some(), one.mode))
        .collect();
    let labels: Vec<_> =
        ["service.kubernetes.io/service-proxy-name", "service.kubernetes.io/headless"]
            .map(|label| service.labels.get(label))
            .into();
    let policies = (external, service.internal_policy, service.affinity_seconds);
    let choice = (&service.source_ranges, &service.traffic_distribution);
    let class = (&service.load_balancer_class, labels, telling(&service.annotations));
    let families = (&service.families, service.headless, service.publishes_not_ready);
    said(&(&service.kind, ports, ours, policies, choice, class, families, &service.unjudged))
}

/// The TkeServiceConfigs that an object may name.
pub(crate) fn config_names(
    owner: &NamespacedName,
    annotations: &uturn_model::Labels,
) -> Vec<NamespacedName> {
    let namespace = owner.namespace.as_str();
    let automatic = ["auto-service-config", "auto-ingress-config"]
        .map(|suffix| format!("{}-{suffix}", owner.name));
    let named = annotations.iter().filter(|(key, _)| key.ends_with("/tke-service-config"));
    let named = named.map(|(_, name)| name.to_owned());
    let all = named.chain(automatic).filter_map(|name| NamespacedName::new(namespace, &name).ok());
    all.collect()
}

/// Annotations that something may read; which TkeServiceConfig is named does not matter,
/// but what it says.
fn telling(annotations: &uturn_model::Labels) -> Vec<(&str, &str)> {
    let read = |key: &str| {
        ["tencent.com/", "kubernetes.io/"].iter().any(|part| key.contains(part))
            && !key.starts_with("kubectl.")
    };
    let names = |key: &str| {
        key.ends_with("/tke-service-config")
            || key.ends_with("loadbalance-id")
            || key.ends_with("existed-lbid")
            || key.ends_with("subnetId")
            || key.ends_with("subnetid")
            || key.ends_with("/ingress.rule")
    };
    let read = annotations.iter().filter(|(key, _)| read(key));
    read.map(|(key, value)| (key, if names(key) { "" } else { value })).collect()
}
