//! Finds the object of a name: a Service, its endpoints, or a pod.

use std::net::IpAddr;

use uturn_model::pod::Phase;
use uturn_model::service::ServiceKind;
use uturn_model::{Endpoint, EndpointSlice, Evidence, NamespacedName, Service};

use super::labels::Parts;
use super::{Kubernetes, Pods};
use crate::corefile::plugin::Exchange;
use crate::message::Unknown;
use crate::name;

/// Namespaces that exist in every cluster.
const ALWAYS: [&str; 4] = ["default", "kube-system", "kube-public", "kube-node-lease"];

/// The reason why there is no record.
pub(super) enum Nothing {
    /// NXDOMAIN.
    Name(String),
    Unknown(Unknown),
}

/// The target of a name.
pub(super) enum Host<'a> {
    Address(IpAddr),
    Name(&'a str),
}

/// The data of records, and the reason why they were found.
pub(super) struct Found<'a> {
    pub(super) hosts: Vec<Host<'a>>,
    pub(super) why: Option<(String, Evidence)>,
}

impl<'a> Found<'a> {
    fn none() -> Self {
        Self { hosts: Vec::new(), why: None }
    }

    fn add(&mut self, host: Host<'a>, why: impl FnOnce() -> (String, Evidence)) {
        self.hosts.push(host);
        self.why.get_or_insert_with(why);
    }
}

impl Kubernetes {
    pub(super) fn find<'a>(
        &self,
        exchange: &Exchange<'a>,
        zone: &str,
        asked: &str,
    ) -> Result<Found<'a>, Nothing> {
        let below = name::below(asked, zone);
        let cluster = exchange.world.cluster;
        if below == "ns.dns" {
            let mut found = Found::none();
            let service = cluster.dns.service.as_ref().and_then(|name| cluster.services.get(name));
            if let Some(service) = service {
                for ip in &service.cluster_ips {
                    found.add(Host::Address(*ip), || service_step(service, "the DNS Service"));
                }
            }
            return Ok(found);
        }
        let not_found = |why: String| Err(Nothing::Name(why));
        let Some(parts) = Parts::of(below) else {
            return not_found(format!("{asked} is not the name of a Service or a pod"));
        };
        if matches!(below, "" | "svc" | "pod") {
            return Ok(Found::none());
        }
        let configured = self.namespaces.is_empty()
            || self.namespaces.iter().any(|known| known == parts.namespace);
        if !configured {
            let why = format!("namespace {} is none that CoreDNS speaks of", parts.namespace);
            return not_found(why);
        }
        if parts.is_pod && self.pods == Pods::Disabled {
            return not_found("names of pods are off (pods disabled)".to_owned());
        }
        match (parts.is_pod, parts.service) {
            (_, "") => {
                if exists(exchange, parts.namespace) {
                    Ok(Found::none())
                } else {
                    not_found(format!("no namespace {} is known", parts.namespace))
                }
            }
            (true, _) => self.find_pod(exchange, &parts),
            (false, _) => self.find_service(exchange, &parts),
        }
    }

    fn find_pod<'a>(
        &self,
        exchange: &Exchange<'a>,
        parts: &Parts<'_>,
    ) -> Result<Found<'a>, Nothing> {
        let not_found = |why: &str| Err(Nothing::Name(why.to_owned()));
        let written = if parts.service.matches('-').count() == 3 && !parts.service.contains("--") {
            parts.service.replace('-', ".")
        } else {
            parts.service.replace('-', ":")
        };
        let ip = written.parse::<IpAddr>().ok();
        let mut found = Found::none();
        if self.pods == Pods::Insecure {
            let Some(ip) = ip else { return not_found("not an address of a pod") };
            if !exists(exchange, parts.namespace) {
                let why = format!("whether there is a namespace {}", parts.namespace);
                let settle = "give the objects of that namespace".to_owned();
                return Err(Nothing::Unknown(Unknown { why, settle }));
            }
            found.add(Host::Address(ip.to_canonical()), || exchange.by("as the name says"));
            return Ok(found);
        }
        for pod in exchange.world.cluster.pods.values() {
            let lists = matches!(pod.phase, Phase::Running | Phase::Pending) && !pod.terminating;
            if lists
                && pod.name.namespace.as_str() == parts.namespace
                && pod.ips.first().is_some_and(|first| first.to_string() == written)
                && let Some(ip) = ip
            {
                found.add(Host::Address(ip.to_canonical()), || {
                    let by = Evidence::object(pod.object(), pod.origin.clone());
                    ("the pod's address".to_owned(), by)
                });
            }
        }
        if found.hosts.is_empty() {
            not_found("no pod has this address (pods verified)")
        } else {
            Ok(found)
        }
    }

    fn find_service<'a>(
        &self,
        exchange: &Exchange<'a>,
        parts: &Parts<'_>,
    ) -> Result<Found<'a>, Nothing> {
        let not_found = |why: String| Err(Nothing::Name(why));
        let known = NamespacedName::new(parts.namespace, parts.service)
            .ok()
            .and_then(|name| exchange.world.cluster.services.get(&name));
        let Some(service) = known else {
            return not_found(format!("there is no Service {}/{}", parts.namespace, parts.service));
        };
        let mut found = Found::none();
        if let ServiceKind::ExternalName(host) = &service.kind {
            let plain =
                parts.endpoint.is_empty() && parts.port.is_empty() && parts.protocol.is_empty();
            if !plain || host.parse::<IpAddr>().is_ok() {
                return not_found(format!("Service {} stands for no other name", service.name));
            }
            found.add(Host::Name(host), || service_step(service, "what the Service stands for"));
            return Ok(found);
        }
        if self.ignores_empty
            && !service.headless
            && self.endpoints_of(exchange, service).next().is_none()
        {
            return not_found(format!(
                "Service {} has no endpoints (ignore empty_service)",
                service.name
            ));
        }
        if service.headless || !parts.endpoint.is_empty() {
            self.add_endpoints(exchange, service, parts, &mut found);
        } else if service.ports.is_empty() && parts.fits("", "")
            || service.ports.iter().any(|port| {
                parts.fits(port.name.as_deref().unwrap_or(""), &port.protocol.to_string())
            })
        {
            for ip in &service.cluster_ips {
                found.add(Host::Address(*ip), || service_step(service, "the Service's cluster IP"));
            }
            // The name exists, even without an address.
            return Ok(found);
        }
        match found.hosts.is_empty() {
            true if service.headless => not_found(format!(
                "headless Service {} has no such endpoint that is ready",
                service.name
            )),
            true => not_found(format!("Service {} has no such port or endpoint", service.name)),
            false => Ok(found),
        }
    }

    fn add_endpoints<'a>(
        &self,
        exchange: &Exchange<'a>,
        service: &'a Service,
        parts: &Parts<'_>,
        found: &mut Found<'a>,
    ) {
        for (slice, endpoint) in self.endpoints_of(exchange, service) {
            let named = parts.endpoint.is_empty()
                || self.hostname(endpoint).eq_ignore_ascii_case(parts.endpoint);
            let fits = slice.ports.is_empty() && parts.fits("", "")
                || slice.ports.iter().any(|port| {
                    parts.fits(port.name.as_deref().unwrap_or(""), &port.protocol.to_string())
                });
            if named && fits {
                found.add(Host::Address(endpoint.address), || {
                    service_step(service, "an endpoint of the Service")
                });
            }
        }
    }

    /// Returns the endpoints that CoreDNS serves: those that are ready.
    fn endpoints_of<'a>(
        &self,
        exchange: &Exchange<'a>,
        service: &Service,
    ) -> impl Iterator<Item = (&'a EndpointSlice, &'a Endpoint)> {
        let slices =
            if self.endpoints { exchange.world.cluster.slices(&service.name) } else { &[] };
        slices
            .iter()
            .flat_map(|slice| slice.endpoints.iter().map(move |endpoint| (slice, endpoint)))
            .filter(|(_, endpoint)| endpoint.ready)
    }

    /// Returns the name of an endpoint below its Service.
    fn hostname(&self, endpoint: &Endpoint) -> String {
        if let Some(hostname) = endpoint.hostname.as_deref().filter(|name| !name.is_empty()) {
            return hostname.to_owned();
        }
        let pod = endpoint.pod.as_ref().map(|pod| pod.name.as_str());
        if let Some(pod) = pod.filter(|pod| self.pod_names && pod.len() < 64) {
            return pod.to_owned();
        }
        let text = endpoint.address.to_string().replace(['.', ':'], "-");
        if text.ends_with('-') { text + "0" } else { text }
    }
}

fn service_step(service: &Service, why: &str) -> (String, Evidence) {
    (why.to_owned(), Evidence::object(service.object(), service.origin.clone()))
}

/// Returns whether a namespace exists, as far as its objects show.
fn exists(exchange: &Exchange<'_>, namespace: &str) -> bool {
    let cluster = exchange.world.cluster;
    let is = |name: &NamespacedName| name.namespace.as_str() == namespace;
    ALWAYS.contains(&namespace)
        || cluster.services.keys().any(is)
        || cluster.ingresses.keys().any(is)
        || cluster.workloads.keys().any(|(_, name)| is(name))
        || cluster.pods.keys().any(is)
}
