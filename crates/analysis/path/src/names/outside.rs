//! The answers of name servers beyond the cluster, as far as they are stated or can be assumed.

use std::net::IpAddr;

use uturn_clouds::cloud::Owner;
use uturn_clouds::controller;
use uturn_dns::{Answer, Question, Rcode, Reply, Unknown};
use uturn_lb::rules::is_for_host;
use uturn_model::route::StepKind;
use uturn_model::{Assumption, Cluster, Evidence, Ingress, Service, Step};

use crate::unmodelled::{EXTERNAL_DNS, unmodelled};

/// The way to settle what name servers outside answer.
pub(super) const SETTLE: &str = "state it in Facts: spec.dns.outside";

/// The beginning of a reason: servers outside give an unknown answer. The name comes next.
pub(super) const ANSWERS: &str = "the answer from outside the cluster for ";

/// The beginning of a reason: the name is that of a load balancer whose addresses are not known.
/// The name comes next.
pub(super) const BALANCER: &str = "the addresses of the load balancer with the name ";

/// Returns the answer to a question, a step for it, and the assumption that it rests on.
pub(super) fn answer(
    cluster: &Cluster,
    question: &Question,
) -> (Answer, Option<Step>, Option<Assumption>) {
    let name = question.name.trim_end_matches('.');
    let step = |why: String, by: Evidence| Some(Step::new(StepKind::Resolve, why, by));
    let reply = |ips: Vec<IpAddr>| Answer::Reply(Reply::addresses(question, ips));
    let is = |known: &str| known.trim_end_matches('.').eq_ignore_ascii_case(name);
    if let Some((stated, ips)) = cluster.dns.stated_outside(name) {
        let by = Evidence::StatedName { name: stated.to_string().into() };
        let first = ips.first().map(ToString::to_string).unwrap_or_default();
        let why = if stated == name {
            format!("{name} → {first}: as stated in Facts")
        } else {
            format!("{name} → {first}: Facts state it of every name below {stated}")
        };
        return (reply(ips), step(why, by), None);
    }
    let named = cluster.dns.of_balancer(name);
    if let Some(first) = named.first() {
        let why = format!("{name} → {}: a load balancer's name", first.address);
        let by = Evidence::Outside { what: "names of load balancers".into() };
        let ips = named.iter().map(|named| named.address).collect();
        return (reply(ips), step(why, by), None);
    }
    if let Some((service, ips)) = written_by_service(cluster, name) {
        let first = ips.first().map(ToString::to_string).unwrap_or_default();
        let by = Evidence::object(service.object(), service.origin.clone());
        let why = format!("{name} → {first}: supposed to lead to the Service that asks for it");
        let supposed = Assumption {
            subject: format!("what {name} leads to outside the cluster").into(),
            assumed: first.into(),
            because: format!("an annotation of {} asks for this name", service.object()).into(),
            settle: SETTLE.into(),
        };
        return (reply(ips), step(why, by), Some(supposed));
    }
    if unmodelled(cluster).any(|balancer| balancer.is_called(name) || balancer.serves_by_name(name))
    {
        let unknown = Unknown { why: format!("{BALANCER}{name}"), settle: SETTLE.into() };
        return (Answer::Unknown(unknown), None, None);
    }
    // A host that an Ingress serves is assumed to resolve to its address: why else name it?
    let fits = |host: &str| is_for_host(host, name);
    let addressed = |ingress: &&Ingress| {
        ingress.rules.iter().any(|rule| rule.host.as_deref().is_some_and(fits))
            && !addresses_of(cluster, ingress).is_empty()
    };
    let all: Vec<_> = cluster.ingresses.values().filter(addressed).collect();
    let exact =
        |ingress: &&&Ingress| ingress.rules.iter().any(|rule| rule.host.as_deref().is_some_and(is));
    if let Some(ingress) = all.iter().find(exact).or(all.first()) {
        let ips = addresses_of(cluster, ingress);
        let first = ips.first().map(ToString::to_string).unwrap_or_default();
        let by = Evidence::object(ingress.object(), ingress.origin.clone());
        let why = format!("{name} → {first}: supposed to lead to the Ingress that serves it");
        let others = all.len().saturating_sub(1);
        let because = match others {
            0 => format!("{} serves this host", ingress.object()),
            _ => format!("{} serves this host, and so do {others} more", ingress.object()),
        };
        let supposed = Assumption {
            subject: format!("what {name} leads to outside the cluster").into(),
            assumed: first.into(),
            because: because.into(),
            settle: "state it in Facts: spec.dns.outside".into(),
        };
        return (reply(ips), step(why, by), Some(supposed));
    }
    // No server outside serves the cluster's own names, by its domain or by the customary one, or
    // names without a dot.
    let domain = cluster.dns.domain();
    let inner =
        name.strip_suffix(domain).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'));
    let inner = inner || name.ends_with(".svc.cluster.local");
    if inner || !name.contains('.') || name.ends_with(".arpa") {
        let by = Evidence::Outside { what: "names outside the cluster".into() };
        let why = format!("{name} is not known outside the cluster");
        return (Answer::Reply(Reply::nothing(Rcode::NxDomain)), step(why, by), None);
    }
    let unknown = Unknown { why: format!("{ANSWERS}{name}"), settle: SETTLE.into() };
    (Answer::Unknown(unknown), None, None)
}

/// Returns the addresses of an Ingress.
fn addresses_of(cluster: &Cluster, ingress: &Ingress) -> Vec<IpAddr> {
    let all = controller::addresses(cluster, Owner::Ingress(ingress));
    all.into_iter().map(|at| at.address).collect()
}

/// Returns the Service whose annotation has a name, if its load balancer is described, with the
/// addresses.
fn written_by_service<'c>(cluster: &'c Cluster, name: &str) -> Option<(&'c Service, Vec<IpAddr>)> {
    let asks = |service: &&Service| {
        let written = service.annotations.get(EXTERNAL_DNS).unwrap_or_default();
        controller::is_judged(service)
            && written.split(',').any(|own| is_for_host(own.trim().trim_end_matches('.'), name))
    };
    let service = cluster.services.values().find(asks)?;
    let all = controller::addresses(cluster, Owner::Service(service));
    let ips: Vec<IpAddr> = all.into_iter().map(|at| at.address).collect();
    (!ips.is_empty()).then_some((service, ips))
}
