//! Rules of others that stop calls to Services before they reach an endpoint.

use std::net::{IpAddr, SocketAddr};

use uturn_model::{CaptureFile, Evidence, Family, Origin, Protocol, Service};
use uturn_netfilter::iptables::{self as parser, Chain, Policy, Rule, Target};
use uturn_netfilter::{Assumptions, DropReason, End, EndKind, Entry, Packet};
use uturn_path::Engine;

use super::difference::{Difference, Question};
use super::{Subject, iptables};
use crate::{Code, policy_chains};

/// At most this many Services are called.
const MAX: usize = 60;

/// Whether no rule of others stops what pods and the node itself send to Services.
pub(super) fn question(engine: &Engine<'_>, subject: &Subject<'_>) -> Question {
    let what = "no rule of others stops calls to Services";
    let capture = subject.capture;
    let families: Vec<Family> =
        Family::BOTH.into_iter().filter(|family| subject.serves(*family)).collect();
    if !families.iter().all(|family| capture.has_rules(*family)) || !capture.has_links() {
        return Question::unknown(what, "the capture lacks rules, addresses or routes");
    }
    let Ok(runtime) = engine.runtime(&subject.node.name) else {
        return Question::unknown(what, "its rules cannot be walked");
    };
    let assumed = Assumptions::of_ordinary_call();
    let (mut walked, mut found) = (0, Vec::<Difference>::new());
    let callers: Vec<_> = families
        .into_iter()
        .map(|family| (family, callers(subject, family, &|ip| runtime.pod_link(ip))))
        .collect();
    let services = subject.cluster.services.values().take(MAX);
    for (service, (family, callers)) in
        services.flat_map(|own| callers.iter().map(move |of| (own, of)))
    {
        for (packet, what) in calls(service, *family, callers) {
            let ends = runtime.kernel.walk_assuming(&packet.0, &packet.1, &[], &assumed);
            walked += 1;
            let all_stopped = ends.iter().all(|end| end.unknown.is_empty());
            let stops =
                ends.iter().filter(|_| all_stopped).find_map(|end| stopped_by(subject, end));
            if let Some(by) = stops
                && found.iter().all(|known| known.by != by)
            {
                found.push(Difference::new(
                    Code::NodeFirewall,
                    format!("{what} is stopped: {by}"),
                    by,
                ));
            }
        }
    }
    let other = other_back_end(subject).filter(|_| found.is_empty());
    match (walked, other) {
        (0, _) => Question::unknown(what, "no Service has a cluster IP"),
        (_, Some(file)) => Question::unknown(
            what,
            format!("{file} has rules that may: the kernel walks those of both back ends"),
        ),
        (_, None) => Question::of(what, format!("{walked} calls walked"), found),
    }
}

/// A file with rules of the other back end of iptables that may stop calls. They are not walked.
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

/// Who calls: the address, and how its packets come to the rules.
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

/// A call of each caller to each port of a Service that has endpoints.
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

/// The rule of others that stops a packet.
fn stopped_by(subject: &Subject<'_>, end: &End) -> Option<Evidence> {
    let by = match &end.kind {
        EndKind::Drop(DropReason::Rule(by) | DropReason::Policy(by)) => by.clone(),
        EndKind::Reject(_) => end.steps.last()?.by.clone(),
        _ => return None,
    };
    let is_meant = match &by {
        Evidence::Iptables { chain, .. } | Evidence::IptablesPolicy { chain, .. } => {
            iptables::is_of_kube_proxy(chain) || policy_chains::is_one(chain)
        }
        Evidence::Nftables { origin, .. } => is_of_plugin(subject, origin),
        _ => true,
    };
    (!is_meant).then_some(by)
}

/// Whether a rule is in a table of kube-proxy's, or of a plugin that keeps pods apart.
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
