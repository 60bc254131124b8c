//! Finds rules of other programs that stop calls to Services before they reach an endpoint, or send
//! them elsewhere.

use std::net::{IpAddr, SocketAddr};

use uturn_model::route::StepKind;
use uturn_model::{CaptureFile, Evidence, Family, Origin, Protocol, Service, Step};
use uturn_netfilter::iptables::{self as parser, Chain, Policy, Rule, Target};
use uturn_netfilter::{Assumptions, Budget, DropReason, End, EndKind, Entry, Packet};
use uturn_path::Engine;

use super::difference::{Difference, Question};
use super::{Subject, iptables};
use crate::{Code, Severity, policy_chains};

/// The maximum number of Services that are called.
const MAX: usize = 60;

/// The maximum number of rules that all calls on a node together may evaluate.
const MAX_RULES: u64 = 64_000_000;

/// Answers whether rules of other programs stop packets from pods and the node itself to Services,
/// or change their destination.
pub(super) fn questions(engine: &Engine<'_>, subject: &Subject<'_>) -> Vec<Question> {
    let calls = match walk_calls(engine, subject) {
        Ok(calls) => calls,
        Err(why) => return vec![Question::unknown(STOPS, why)],
    };
    let walked = calls.walked;
    if walked == 0 {
        return vec![Question::unknown(STOPS, "no Service has a cluster IP")];
    }
    let other = other_back_end(subject).filter(|_| calls.stopped.is_empty());
    let given_up = calls.given_up.filter(|_| calls.stopped.is_empty());
    let stops = match other {
        _ if let Some(by) = given_up => {
            Question::unknown(STOPS, format!("the rules take more work than a walk may do: {by}"))
        }
        Some(file) => Question::unknown(
            STOPS,
            format!("{file} has rules that may: packets pass the rules of both back ends"),
        ),
        None => Question::of(STOPS, format!("{walked} calls walked"), calls.stopped),
    };
    vec![stops, Question::of(SENDS, format!("{walked} calls walked"), calls.sent_elsewhere)]
}

const STOPS: &str = "no rule of others stops calls to Services";
const SENDS: &str = "no rule of others sends calls to Services elsewhere";

/// The results of calls to Services.
#[derive(Default)]
struct Calls {
    walked: usize,
    stopped: Vec<Difference>,
    sent_elsewhere: Vec<Difference>,
    /// The rule at which a walk was given up.
    given_up: Option<Evidence>,
}

/// Walks calls of a pod and of the node itself to Services. Returns the reason if they cannot be
/// walked.
fn walk_calls(engine: &Engine<'_>, subject: &Subject<'_>) -> Result<Calls, &'static str> {
    let capture = subject.capture;
    let families: Vec<Family> =
        Family::BOTH.into_iter().filter(|family| subject.serves(*family)).collect();
    if !families.iter().all(|family| capture.has_rules(*family)) || !capture.has_links() {
        return Err("the capture lacks rules, addresses or routes");
    }
    let runtime = engine.runtime(&subject.node.name).map_err(|_| "its rules cannot be walked")?;
    let assumed = Assumptions::of_ordinary_call();
    let (mut found, budget) = (Calls::default(), Budget::of_rules(MAX_RULES));
    let callers: Vec<_> = families
        .into_iter()
        .map(|family| (family, callers(subject, family, &|ip| runtime.pod_link(ip))))
        .collect();
    let services = subject.cluster.services.values().take(MAX);
    for (service, (family, callers)) in
        services.flat_map(|own| callers.iter().map(move |of| (own, of)))
    {
        for (packet, what) in calls(service, *family, callers) {
            let ends = runtime.kernel.walk_within(&packet.0, &packet.1, &[], &assumed, &budget);
            found.walked += 1;
            let given_up = ends.iter().find(|end| end.kind == EndKind::Unsettled);
            let by = given_up.and_then(|end| end.steps.last()).map(|step| step.by.clone());
            found.given_up = found.given_up.or(by);
            if ends.iter().any(|end| !end.unknown.is_empty()) {
                continue;
            }
            if let Some(by) = ends.iter().find_map(|end| stopped_by(subject, end)) {
                let what = format!("{what} is stopped: {by}");
                add(&mut found.stopped, Difference::new(Code::NodeFirewall, what, by));
            }
            let elsewhere = |end: &End| sent_elsewhere(subject, service, end);
            if let Some((to, by)) = ends.iter().find_map(elsewhere) {
                let what = format!("{what} is sent to {to}: {by}");
                let sent = Difference::new(Code::EndpointsDiffer, what, by);
                // The redirection may be intended: a proxy that sees all calls.
                add(&mut found.sent_elsewhere, Difference { severity: Severity::Warning, ..sent });
            }
        }
    }
    Ok(found)
}

/// Adds a difference, unless one by the same rule is known.
fn add(all: &mut Vec<Difference>, new: Difference) {
    if all.iter().all(|known| known.by != new.by) {
        all.push(new);
    }
}

/// Returns a file with rules of the other back end of iptables that may stop calls. These rules are
/// not walked.
fn other_back_end(subject: &Subject<'_>) -> Option<&'static str> {
    let files =
        [(CaptureFile::OtherIptables, Family::V4), (CaptureFile::OtherIp6tables, Family::V6)];
    let stops = |chain: &Chain| {
        let stops = |rule: &Rule| matches!(rule.target, Some(Target::Drop | Target::Reject(_)));
        let is_of_kubernetes = chain.name.starts_with("KUBE-");
        chain.policy == Some(Policy::Drop) || !is_of_kubernetes && chain.rules.iter().any(stops)
    };
    let may_stop = |(file, family): &(CaptureFile, Family)| {
        let captured = subject.capture.files.get(file)?;
        let rules = parser::parse(captured.path.clone(), &captured.text, *family).ok()?;
        rules.tables.iter().flat_map(|table| &table.chains).any(stops).then_some(())
    };
    files.iter().find(|file| may_stop(file).is_some()).map(|(file, _)| file.file_name())
}

/// Returns the callers: the address, and how its packets reach the rules.
fn callers(
    subject: &Subject<'_>,
    family: Family,
    link: &dyn Fn(IpAddr) -> uturn_model::Text,
) -> Vec<(IpAddr, Entry, &'static str)> {
    let node = subject.node;
    let pods = subject.cluster.pods_on(&node.name);
    let mut pods = pods.filter(|pod| pod.is_alive() && !pod.spec.host_network);
    let pod = pods.find_map(|pod| pod.address(family));
    let own = node.address(family);
    let pod = pod.map(|ip| (ip, Entry::Interface(link(ip)), "a pod's call"));
    pod.into_iter().chain(own.map(|ip| (ip, Entry::Local, "the node's own call"))).collect()
}

/// Returns a call of each caller to each TCP port of a Service that has a cluster IP.
fn calls(
    service: &Service,
    family: Family,
    callers: &[(IpAddr, Entry, &'static str)],
) -> Vec<((Packet, Entry), String)> {
    let address = service.cluster_ips.iter().find(|ip| Family::of(**ip) == family);
    let ports = service.ports.iter().filter(|port| port.protocol == Protocol::Tcp);
    let calls = ports.filter_map(|port| Some(SocketAddr::new(*address?, port.port.number())));
    calls
        .flat_map(|to| {
            callers.iter().map(move |(from, entry, who)| {
                let packet = Packet::tcp(SocketAddr::new(*from, 40_000), to);
                ((packet, entry.clone()), format!("{who} to {} ({to})", service.object()))
            })
        })
        .collect()
}

/// Returns the rule of another program that stops a packet.
fn stopped_by(subject: &Subject<'_>, end: &End) -> Option<Evidence> {
    let by = match &end.kind {
        EndKind::Drop(DropReason::Rule(by) | DropReason::Policy(by)) => by.clone(),
        EndKind::Reject(_) => end.steps.last()?.by.clone(),
        _ => return None,
    };
    (!is_meant(subject, &by)).then_some(by)
}

/// Returns where a rule of another program sends a packet before kube-proxy's rules see it, and
/// that rule. A rule that picks an endpoint of the Service has the effect of kube-proxy's rules and
/// is left out.
fn sent_elsewhere(
    subject: &Subject<'_>,
    service: &Service,
    end: &End,
) -> Option<(SocketAddr, Evidence)> {
    let changed = |step: &&Step| match (&step.before, &step.after) {
        (Some(before), Some(after)) => before.dst != after.dst,
        _ => false,
    };
    let mut translated = end.steps.iter().filter(|step| step.kind == StepKind::Translate);
    let first = translated.find(changed)?;
    let to = first.after?.dst;
    let slices = subject.cluster.slices(&service.name);
    let mut endpoints = slices.iter().flat_map(|slice| &slice.endpoints);
    let is_meant =
        is_meant(subject, &first.by) || endpoints.any(|endpoint| endpoint.address == to.ip());
    (!is_meant).then(|| (to, first.by.clone()))
}

/// Returns whether a rule is kube-proxy's, or belongs to a plugin that isolates pods.
fn is_meant(subject: &Subject<'_>, by: &Evidence) -> bool {
    match by {
        Evidence::Iptables { chain, .. } | Evidence::IptablesPolicy { chain, .. } => {
            iptables::is_of_kube_proxy(chain) || policy_chains::is_one(chain)
        }
        Evidence::Nftables { origin, .. } => is_of_plugin(subject, origin),
        _ => true,
    }
}

/// Returns whether a rule is in a table of kube-proxy, or of a plugin that isolates pods.
fn is_of_plugin(subject: &Subject<'_>, origin: &Origin) -> bool {
    const TABLES: [&str; 6] =
        ["kube-proxy", "calico", "cilium", "antrea", "kube-network-policies", "kindnet"];
    let tables = subject.state.nft.tables.iter();
    let mut own = tables.filter(|table| TABLES.iter().any(|name| table.name.starts_with(name)));
    own.any(|table| {
        let mut rules = table.chains.iter().flat_map(|chain| &chain.rules);
        rules.any(|rule| rule.origin == *origin)
            || table.chains.iter().any(|chain| chain.origin == *origin)
    })
}
