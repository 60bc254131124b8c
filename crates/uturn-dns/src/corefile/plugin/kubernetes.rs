//! The plugin `kubernetes`: names of Services, their endpoints, and pods.

use std::net::IpAddr;

use uturn_model::pod::Phase;
use uturn_model::route::StepKind;
use uturn_model::service::ServiceKind;
use uturn_model::{Endpoint, Evidence, Family, NamespacedName, Service, Step};

use super::{Exchange, Setup};
use crate::dispenser::Dispenser;
use crate::fault::Fault;
use crate::message::{Answer, Data, Question, Rcode, Record, RecordType, Reply, Unknown};
use crate::name;

/// The maximum length of a CNAME chain within a zone.
const MAX_CNAMES: usize = 10;

/// Namespaces that exist in every cluster.
const ALWAYS: [&str; 4] = ["default", "kube-system", "kube-public", "kube-node-lease"];

#[derive(Debug)]
pub(crate) struct Kubernetes {
    zones: Vec<String>,
    /// The namespaces it serves; empty for all.
    namespaces: Vec<String>,
    pods: Pods,
    fallthrough: Vec<String>,
    /// `endpoint_pod_names`: endpoints are named after their pods.
    pod_names: bool,
    endpoints: bool,
    ignores_empty: bool,
    /// An option that is not modelled.
    unmodelled: Option<&'static str>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pods {
    Disabled,
    Insecure,
    Verified,
}

/// Why there is no record.
enum Nothing {
    /// NXDOMAIN.
    Name(String),
    Unknown(Unknown),
}

/// The target of a name.
enum Host<'a> {
    Address(IpAddr),
    Name(&'a str),
}

/// A record's data, and why it was found.
struct Found<'a> {
    hosts: Vec<Host<'a>>,
    why: Option<(String, Evidence)>,
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

/// The parts of a name below the zone.
struct Parts<'n> {
    port: &'n str,
    protocol: &'n str,
    endpoint: &'n str,
    service: &'n str,
    namespace: &'n str,
    is_pod: bool,
}

impl Kubernetes {
    pub(crate) fn read(words: &mut Dispenser<'_>, setup: &Setup<'_>) -> Result<Self, Fault> {
        let mut read: Option<Self> = None;
        while words.advance() {
            if read.is_some() {
                return words.fault("kubernetes can be used once in a server block");
            }
            read = Some(Self::stanza(words, setup)?);
        }
        read.map_or_else(|| words.fault("expected kubernetes"), Ok)
    }

    fn stanza(words: &mut Dispenser<'_>, setup: &Setup<'_>) -> Result<Self, Fault> {
        let mut read = Self {
            zones: name::zones(&words.arguments(), setup.zones),
            namespaces: Vec::new(),
            pods: Pods::Disabled,
            fallthrough: Vec::new(),
            pod_names: false,
            endpoints: true,
            ignores_empty: false,
            unmodelled: None,
        };
        let reverse =
            |zone: &String| zone.ends_with("in-addr.arpa.") || zone.ends_with("ip6.arpa.");
        if read.zones.iter().all(reverse) {
            return words.fault("kubernetes needs a zone that is not a reverse one");
        }
        let mut labels = false;
        while words.next_in_block() {
            let word = words.value();
            let arguments = words.arguments();
            match (word, arguments.as_slice()) {
                ("endpoint_pod_names", []) => read.pod_names = true,
                ("pods", [mode]) => {
                    read.pods = match mode.as_str() {
                        "disabled" => Pods::Disabled,
                        "insecure" => Pods::Insecure,
                        "verified" => Pods::Verified,
                        other => {
                            return words.fault(format!(
                                "expected pods disabled, insecure or verified, found {other}"
                            ));
                        }
                    }
                }
                ("namespaces", [_, ..]) => read.namespaces.extend(arguments),
                ("fallthrough", _) => read.fallthrough = setup.fallthrough(&arguments),
                ("noendpoints", []) => read.endpoints = false,
                ("ignore", [what, ..]) if what == "empty_service" => read.ignores_empty = true,
                ("ignore", []) => {}
                ("ttl", [ttl, ..]) if ttl.parse().is_ok_and(|ttl: u16| ttl <= 3600) => {}
                ("endpoint" | "startup_timeout", [_, ..])
                | ("tls", [_, _, _])
                | ("kubeconfig", [_] | [_, _]) => {}
                ("labels", [_, ..]) => read.unmodelled = Some("labels"),
                ("namespace_labels", [_, ..]) => {
                    read.unmodelled = Some("namespace_labels");
                    labels = true;
                }
                ("multicluster", _) => read.unmodelled = Some("multicluster"),
                _ => {
                    let found = arguments.join(" ");
                    return words.fault(format!("kubernetes does not know {word} {found}"));
                }
            }
        }
        if labels && !read.namespaces.is_empty() {
            return words.fault("namespaces and namespace_labels cannot both be set");
        }
        Ok(read)
    }

    pub(crate) fn serve(&self, exchange: &mut Exchange<'_>, question: Question) -> Answer {
        let Some(zone) = name::zone_of(&self.zones, &question.name) else {
            return exchange.next(question);
        };
        if let Some(what) = self.unmodelled {
            return exchange.unmodelled(&format!("{what} of the kubernetes plugin"));
        }
        if let RecordType::Other(word) = &question.kind {
            let special = ["TXT", "CNAME", "PTR", "MX", "SRV", "SOA", "NS", "AXFR", "IXFR"];
            if special.contains(&word.as_str()) {
                return exchange.unmodelled(&format!("{word} records of the kubernetes plugin"));
            }
        }
        match self.records(exchange, zone, &question, &mut Vec::new()) {
            // For other types, only the existence of the name matters.
            Ok(records) if records.is_empty() || question.kind.family().is_none() => {
                let why = format!("{} exists, without {} records", question.name, question.kind);
                exchange.note(why);
                Answer::Reply(Reply::nothing(Rcode::NoError))
            }
            Ok(records) => Answer::Reply(Reply::records(records)),
            Err(Nothing::Unknown(unknown)) => Answer::Unknown(unknown),
            Err(Nothing::Name(_)) if name::zone_of(&self.fallthrough, &question.name).is_some() => {
                exchange.next(question)
            }
            Err(Nothing::Name(why)) => {
                exchange.note(why);
                Answer::Reply(Reply::nothing(Rcode::NxDomain))
            }
        }
    }

    /// The records of a name, following CNAMEs.
    fn records(
        &self,
        exchange: &mut Exchange<'_>,
        zone: &str,
        question: &Question,
        before: &mut Vec<String>,
    ) -> Result<Vec<Record>, Nothing> {
        let found = self.find(exchange, zone, &question.name)?;
        let family = question.kind.family();
        let mut records: Vec<Record> = Vec::new();
        let mut reason = found.why;
        for host in found.hosts {
            let mut note = |exchange: &mut Exchange<'_>, to: &str| {
                if let Some((why, by)) = reason.take() {
                    let why = format!("{} → {to}: {why}", question.name);
                    exchange.steps.push(Step::new(StepKind::Resolve, why, by));
                }
            };
            match host {
                Host::Address(ip) => {
                    let record = Record { name: question.name.clone(), data: Data::Address(ip) };
                    if Some(Family::of(ip)) == family && !records.contains(&record) {
                        note(exchange, &ip.to_string());
                        records.push(record);
                    }
                }
                Host::Name(target) => {
                    let target = name::qualified(target);
                    let circle = name::is_within(&question.name, &target);
                    if circle || before.len() > MAX_CNAMES || before.contains(&target) {
                        continue;
                    }
                    note(exchange, &target);
                    let data = Data::Cname(target.clone());
                    let cname = Record { name: question.name.clone(), data };
                    let next =
                        Question { name: target.to_lowercase(), kind: question.kind.clone() };
                    if name::is_within(zone, &target) {
                        before.push(target);
                        let inner = self.records(exchange, zone, &next, before);
                        before.pop();
                        match inner {
                            Ok(inner) if !inner.is_empty() => {
                                records.push(cname);
                                records.extend(inner);
                            }
                            Err(Nothing::Unknown(unknown)) => {
                                return Err(Nothing::Unknown(unknown));
                            }
                            _ => {}
                        }
                        continue;
                    }
                    match exchange.ask_again(next) {
                        Answer::Reply(reply) => {
                            records.push(cname);
                            records.extend(reply.records);
                        }
                        Answer::Silence => {}
                        Answer::Unknown(unknown) => return Err(Nothing::Unknown(unknown)),
                    }
                }
            }
        }
        Ok(records)
    }

    fn find<'a>(
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
            return not_found(format!("{asked} is no name of a Service or a pod"));
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
            (_, "") => match exists(exchange, parts.namespace) {
                true => Ok(Found::none()),
                false => not_found(format!("no namespace {} is known", parts.namespace)),
            },
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
        let written = match parts.service.matches('-').count() == 3 && !parts.service.contains("--")
        {
            true => parts.service.replace('-', "."),
            false => parts.service.replace('-', ":"),
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
        match found.hosts.is_empty() {
            true => not_found("no pod has this address (pods verified)"),
            false => Ok(found),
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

    /// The endpoints that CoreDNS serves: those that are ready.
    fn endpoints_of<'a>(
        &self,
        exchange: &Exchange<'a>,
        service: &Service,
    ) -> impl Iterator<Item = (&'a uturn_model::EndpointSlice, &'a Endpoint)> {
        let slices = match self.endpoints {
            true => exchange.world.cluster.slices(&service.name),
            false => &[],
        };
        slices
            .iter()
            .flat_map(|slice| slice.endpoints.iter().map(move |endpoint| (slice, endpoint)))
            .filter(|(_, endpoint)| endpoint.ready)
    }

    /// The name of an endpoint below its Service.
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

impl<'n> Parts<'n> {
    fn of(below: &'n str) -> Option<Self> {
        let mut parts = Self {
            port: "",
            protocol: "",
            endpoint: "",
            service: "",
            namespace: "",
            is_pod: false,
        };
        let mut labels = below.rsplit('.');
        parts.is_pod = match labels.next()? {
            "pod" => true,
            "svc" | "" => false,
            _ => return None,
        };
        parts.namespace = labels.next().unwrap_or("");
        parts.service = labels.next().unwrap_or("");
        let left: Vec<&str> = labels.collect();
        let bare = |label: &'n str| label.strip_prefix('_').unwrap_or(label);
        match left.as_slice() {
            [] => {}
            [endpoint] => parts.endpoint = endpoint,
            [protocol, port] => (parts.protocol, parts.port) = (bare(protocol), bare(port)),
            _ => return None,
        }
        Some(parts)
    }

    fn fits(&self, port: &str, protocol: &str) -> bool {
        let fits = |asked: &str, there: &str| asked.is_empty() || asked.eq_ignore_ascii_case(there);
        fits(self.port, port) && fits(self.protocol, protocol)
    }
}

fn service_step(service: &Service, why: &str) -> (String, Evidence) {
    (why.to_owned(), Evidence::object(service.object(), service.origin.clone()))
}

/// Whether a namespace exists, as far as its objects show.
fn exists(exchange: &Exchange<'_>, namespace: &str) -> bool {
    let cluster = exchange.world.cluster;
    let is = |name: &NamespacedName| name.namespace.as_str() == namespace;
    ALWAYS.contains(&namespace)
        || cluster.services.keys().any(is)
        || cluster.ingresses.keys().any(is)
        || cluster.workloads.keys().any(|(_, name)| is(name))
        || cluster.pods.keys().any(is)
}
