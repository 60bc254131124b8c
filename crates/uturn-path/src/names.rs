//! From a destination to an address: hosts, cluster names, the Ingress that serves a host.

use std::net::IpAddr;

use uturn_model::route::{By, Step, StepKind};
use uturn_model::{Cluster, Origin, Pod, Service};

/// A name's address and why.
pub(crate) struct Resolved {
    pub(crate) address: IpAddr,
    pub(crate) step: Step,
}

/// Resolves a host name as a pod does; `None` when it has no address.
pub(crate) fn resolve(cluster: &Cluster, pod: Option<&Pod>, host: &str) -> Option<Resolved> {
    let name = host.trim_end_matches('.').to_ascii_lowercase();
    let found = |address: IpAddr, why: String, by: By| {
        let why = format!("{name} → {address}: {why}");
        Some(Resolved { address, step: Step::new(StepKind::Resolve, why, by) })
    };
    if let Some(pod) = pod
        && let Some((_, ip)) = pod.spec.host_aliases.iter().find(|(alias, _)| **alias == *name)
    {
        let by = By::new(format!("Pod {} hostAliases", pod.name), pod.origin.clone());
        return found(*ip, "the pod's own hosts file".into(), by);
    }
    if let Some((ip, by)) = corefile_host(cluster, &name) {
        return found(ip, "hosts block of CoreDNS".into(), by);
    }
    if let Some(service) = cluster_name(cluster, pod, &name)
        && let Some(ip) = service.cluster_ips.first()
    {
        let by = By::new(service.object().to_string(), service.origin.clone());
        return found(*ip, "the Service's cluster IP".into(), by);
    }
    if let Some((_, ip)) = cluster.dns.outside.iter().find(|(known, _)| **known == *name) {
        let by = By::new(format!("Facts dns.outside {name}"), Origin::file("Facts"));
        return found(*ip, "as stated in Facts".into(), by);
    }
    // A host that an Ingress serves is supposed to lead to its address: why else name it?
    let ingress = cluster.ingresses.values().find(|ingress| {
        ingress.rules.iter().any(|rule| rule.host.as_deref() == Some(&name))
            && ingress.load_balancer.iter().any(|one| one.ip.is_some())
    })?;
    let ip = ingress.load_balancer.iter().find_map(|one| one.ip)?;
    let by = By::new(ingress.object().to_string(), ingress.origin.clone());
    found(ip, "supposed to lead to the Ingress that serves it".into(), by)
}

/// The step that says who was asked and did not know.
pub(crate) fn not_found(cluster: &Cluster, host: &str) -> Step {
    let by = match &cluster.dns.corefile {
        Some(corefile) => By::new("Corefile", corefile.origin.clone()),
        None => By::new("no CoreDNS configuration is known", Origin::file("dns")),
    };
    Step::new(StepKind::Resolve, format!("{host} has no address"), by)
}

/// `svc.ns.svc.cluster.local` and what the pod's search list makes of shorter names.
fn cluster_name<'a>(cluster: &'a Cluster, pod: Option<&Pod>, name: &str) -> Option<&'a Service> {
    let domain = cluster.dns.domain.as_deref().unwrap_or("cluster.local");
    let short = name
        .strip_suffix(domain)
        .and_then(|rest| rest.strip_suffix(".svc."))
        .or_else(|| name.strip_suffix(".svc"))
        .unwrap_or(name);
    let (service, namespace) = match short.split_once('.') {
        Some((service, namespace)) if !namespace.contains('.') => (service, namespace),
        Some(_) => return None,
        None => (short, pod?.name.namespace.as_str()),
    };
    let name = uturn_model::NamespacedName::new(namespace, service).ok()?;
    cluster.services.get(&name)
}

/// An entry of a `hosts` block in the Corefile.
fn corefile_host(cluster: &Cluster, name: &str) -> Option<(IpAddr, By)> {
    let corefile = cluster.dns.corefile.as_ref()?;
    let mut in_hosts = false;
    for (number, line) in (0u32..).zip(corefile.text.lines()) {
        let mut words = line.split('#').next().unwrap_or("").split_whitespace();
        match words.next() {
            Some("hosts") => in_hosts = line.contains('{'),
            Some("}") => in_hosts = false,
            Some(first) if in_hosts => {
                if let Ok(ip) = first.parse::<IpAddr>()
                    && words.any(|word| word.eq_ignore_ascii_case(name))
                {
                    let at = &corefile.origin;
                    let origin = Origin::line(at.file.clone(), at.line + number);
                    return Some((ip, By::new(format!("hosts {}", line.trim()), origin)));
                }
            }
            _ => {}
        }
    }
    None
}
