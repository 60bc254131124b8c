//! Cures for the findings of an analysis.

use uturn_model::pod::DnsPolicy;
use uturn_model::{
    Client, Cluster, Destination, Family, Flow, Name, NamespacedName, ObjectKind, Pod, Verdict,
};
use uturn_path::{Engine, WalkError};
use uturn_scan::FewCalls;
use uturn_snapshot::Manifests;

use super::{MAX_BYTES, MAX_SCANNED_BYTES};
use crate::clients::Clients;
use crate::cure::{Case, Cure, TrialBase, cures, first_cure, may_cure};
use crate::find::api_server::servers;
use crate::find::cluster_names::one_of_each_resolver;
use crate::find::outside_clients::OutsideClients;
use crate::{Code, CureTitle, Example, Finding, Severity, Untried, WhyUntried};

/// The maximum number of findings on which cures are tried.
const MAX_FINDINGS: usize = 40;
/// The maximum number of clients that are tried as the example of a finding.
const MAX_CLIENTS: usize = 20;

/// The maximum number of nodes from which the call of a finding is tried besides its example.
const MAX_NODES: usize = 3;

/// Tries cures on the findings with these indices and gives them the titles of the cures that work.
/// Other findings keep the cures that a walk confirmed, and state why no others were tried.
///
/// Returns all cures that were tried, in the order of the indices; none for a finding on which
/// none were tried.
pub(super) fn try_all(
    base: &TrialBase<'_>,
    findings: &mut [(usize, Finding)],
    indices: &[usize],
) -> Vec<Vec<Cure>> {
    for (reading, finding) in findings.iter_mut() {
        let why = match () {
            () if !is_tried(base.manifests()) => WhyUntried::LongManifests,
            // Unless a walk in all readings shows it, the base does not: it is of the first.
            () if *reading > 0 => WhyUntried::OtherReading,
            () => WhyUntried::ManyFindings,
        };
        let is_of_calls = !matches!(finding.example, Example::Manifests);
        finding.untried =
            (is_of_calls || is_curable(finding)).then(|| Untried { cures: Vec::new(), why });
    }
    let of = |(number, index): (usize, &usize)| {
        let (reading, finding) = &mut findings[*index];
        if number >= MAX_FINDINGS || !is_tried(base.manifests()) {
            return Vec::new();
        }
        let is_first = *reading == 0;
        if is_first {
            finding.untried = None;
        }
        let Some(mut cures) = try_one(base, finding, is_first) else { return Vec::new() };
        finding.cures = titles(&cures);
        let left: Vec<CureTitle> = cures.iter().filter(|cure| cure.is_untried).map(title).collect();
        let is_enough = !is_editable(base.manifests()) && !finding.cures.is_empty();
        let why = if is_enough { WhyUntried::OneWorks } else { WhyUntried::Work };
        finding.untried = (!left.is_empty()).then_some(Untried { cures: left, why });
        cures.iter_mut().for_each(|cure| cure.tried = None);
        cures
    };
    indices.iter().enumerate().map(of).collect()
}

/// Returns whether cures may be known for a finding that no call shows.
fn is_curable(finding: &Finding) -> bool {
    let is_fault = finding.severity > Severity::Info || finding.code == Code::OneFamily;
    is_fault && may_cure(finding.code)
}

/// Returns the cures that were tried on a finding. Returns `None` if it is not about a flow, or if
/// it is seen in another reading of unknown facts than the first, and not by a walk of its flow in
/// all of them.
fn try_one(base: &TrialBase<'_>, finding: &Finding, is_first: bool) -> Option<Vec<Cure>> {
    let case = case_of(base.manifests(), base.calls(), finding).ok()??;
    if !is_first && !case.codes().contains(&finding.code) {
        return None;
    }
    // A node or security group that stops many flows is not cured by changing one caller.
    let is_target = matches!(finding.subject.kind, ObjectKind::Service | ObjectKind::Ingress);
    // In a large cluster a trial takes a while.
    let tries_all = is_editable(base.manifests()) || !is_target;
    let mut cures = if tries_all { cures(base, &case) } else { first_cure(base, &case) };
    cures.retain(|cure| is_target || !cure.is_callers());
    Some(cures)
}

/// Returns whether there are manifests to edit, and not too many bytes of them for a scan.
pub(super) fn is_tried(manifests: &Manifests) -> bool {
    (1..=MAX_SCANNED_BYTES).contains(&manifests.bytes())
}

/// Returns whether there are manifests to edit, and few enough bytes of them to try all cures.
fn is_editable(manifests: &Manifests) -> bool {
    (1..=MAX_BYTES).contains(&manifests.bytes())
}

/// Returns the cures that work for a flow. Empty if there are no manifests to edit, or if they are
/// too long.
///
/// # Errors
/// Returns an error if the flow cannot be walked.
pub fn cures_of_flow(
    manifests: &Manifests,
    cluster: &Cluster,
    flow: &Flow,
) -> Result<Vec<CureTitle>, Vec<WalkError>> {
    if !is_editable(manifests) {
        return Ok(Vec::new());
    }
    let engine = Engine::new(cluster)?;
    let base = TrialBase::new(manifests, &engine);
    let case = Case::flow(manifests, base.calls(), flow.clone()).map_err(|why| vec![why])?;
    Ok(titles(&cures(&base, &case)))
}

/// Returns the cures that work for a finding, as those of a flow.
///
/// # Errors
/// Returns an error if the flow of the finding cannot be walked.
pub fn cures_of_finding<'a>(
    manifests: &'a Manifests,
    engine: &'a Engine<'a>,
    finding: &Finding,
) -> Result<Vec<CureTitle>, WalkError> {
    if !is_editable(manifests) {
        return Ok(Vec::new());
    }
    let base = TrialBase::new(manifests, engine);
    let case = case_of(manifests, base.calls(), finding)?;
    Ok(case.map(|case| titles(&cures(&base, &case))).unwrap_or_default())
}

/// Returns the titles of the cures that work.
pub fn titles(cures: &[Cure]) -> Vec<CureTitle> {
    cures.iter().filter(|cure| cure.is_offered()).map(title).collect()
}

fn title(cure: &Cure) -> CureTitle {
    CureTitle { name: cure.name, text: cure.title.clone() }
}

/// Returns the case of a finding that is to be cured: a flow, health checks, or the object at fault
/// if no call shows it. Returns `None` if the finding's calls are not flows.
///
/// # Errors
/// Returns an error if the flow of the finding cannot be walked.
pub fn case_of<'a>(
    manifests: &'a Manifests,
    calls: &FewCalls<'a, 'a>,
    finding: &Finding,
) -> Result<Option<Case<'a>>, WalkError> {
    let engine = calls.engine();
    if let Example::Probes(listener, protocol) = finding.example {
        return Case::probes(manifests, calls, listener, protocol).map(Some);
    }
    if matches!(finding.example, Example::Manifests) {
        return Ok(Some(Case::object(manifests, engine, finding)));
    }
    let flow = failing_flow(calls, finding);
    let of = |flow: Flow| {
        let others = other_flows(engine, finding, &flow);
        let mut case = Case::flow(manifests, calls, flow)?;
        case.found = Some((finding.code, finding.subject.clone()));
        Ok(case.with_others(calls, others))
    };
    flow.map(of).transpose()
}

/// Returns the call of a flow by clients of the other kinds that a finding is about, each with its
/// name: one outside, one in the nodes' network, processes of nodes, pods of other nodes, and the
/// other API servers. Some of these may not fail.
fn other_flows(engine: &Engine<'_>, finding: &Finding, flow: &Flow) -> Vec<(String, Flow)> {
    let cluster = engine.cluster();
    let others = finding.clients.others();
    let mut all: Vec<(String, Client)> = Vec::new();
    let mut add = |client: Client| all.push((client.to_string(), client));
    let is_outside = matches!(flow.from, Client::Outside(_));
    let is_inside = matches!(flow.to, Destination::Service(..) | Destination::Pod(..));
    if others.contains(&Clients::API_SERVER) {
        servers(cluster).into_iter().for_each(&mut add);
    }
    if others.contains(&Clients::NODES) || others.contains(&Clients::OTHER_NODES) {
        cluster.nodes.keys().take(MAX_NODES).cloned().map(Client::Node).for_each(&mut add);
    }
    let home = match &flow.from {
        Client::Pod(name) => cluster.pods.get(name).and_then(|pod| pod.node.as_ref()),
        _ => None,
    };
    let mut seen: Vec<&Name> = home.into_iter().collect();
    // Programs of nodes, and the cluster's name servers, do not resolve names as applications do.
    let is_usual = |pod: &&Pod| uses_cluster_dns(pod) && !pod.spec.host_network;
    for pod in finding.clients.iter().filter_map(|name| cluster.pods.get(name)).filter(is_usual) {
        let Some(node) = &pod.node else { continue };
        if !seen.contains(&node) && seen.len() < MAX_NODES {
            seen.push(node);
            add(Client::Pod(pod.name.clone()));
        }
    }
    if !is_outside && !is_inside {
        if others.contains(&Clients::OUTSIDE) {
            all.insert(0, (Clients::OUTSIDE.to_owned(), Client::Outside(None)));
        }
        let near = || OutsideClients::of(engine).near(family_of(flow));
        if others.contains(&Clients::SAME_NETWORK)
            && let Some(near) = near()
        {
            all.insert(0, (Clients::SAME_NETWORK.to_owned(), near));
        }
    }
    // Names are looked up by each library in its own way.
    if others.contains(&Clients::NAMES) {
        let resolvers = one_of_each_resolver(cluster).into_iter();
        let resolvers = resolvers.map(|pod| Client::Pod(pod.name.clone()));
        all.extend(resolvers.map(|client| (client.to_string(), client)));
    }
    all.retain(|(_, client)| *client != flow.from);
    all.into_iter().map(|(name, from)| (name, Flow { from, ..flow.clone() })).collect()
}

/// Returns whether a pod asks the cluster's name servers.
fn uses_cluster_dns(pod: &Pod) -> bool {
    let policies = [DnsPolicy::ClusterFirst, DnsPolicy::ClusterFirstWithHostNet];
    policies.contains(&pod.spec.dns_policy)
}

/// Returns the family of the address that a flow calls.
fn family_of(flow: &Flow) -> Family {
    match &flow.to {
        Destination::Address(address) => Family::of(address.ip()),
        _ => Family::V4,
    }
}

/// Returns a flow that shows a finding: if possible from a pod of the object's own namespace that
/// uses the cluster's DNS. Returns `None` if the finding was not seen in a flow.
pub fn failing_flow(calls: &FewCalls<'_, '_>, finding: &Finding) -> Option<Flow> {
    let flow = finding.example.flow()?;
    if !matches!(finding.example, Example::Scanned(_)) {
        return Some(flow);
    }
    let pods = &calls.engine().cluster().pods;
    let asks_cluster = |name: &&NamespacedName| pods.get(*name).is_some_and(uses_cluster_dns);
    let is_at_home =
        |name: &NamespacedName| Some(&name.namespace) == finding.subject.namespace.as_ref();
    let from = |pod: &NamespacedName| Flow { from: Client::Pod(pod.clone()), ..flow.clone() };
    // A finding of several targets has clients that do not fail at this one, or in another way.
    let fails_so = |verdict: &Verdict| match &finding.mechanism {
        Some(mechanism) => verdict.mechanisms.contains(mechanism),
        None => !verdict.is_fine(),
    };
    let fails =
        |pod: &&NamespacedName| calls.verdict(&from(pod)).is_ok_and(|verdict| fails_so(&verdict));
    let mut clients: Vec<&NamespacedName> = finding.clients.iter().filter(asks_cluster).collect();
    clients.sort_by_key(|name| (!is_at_home(name), *name));
    let failing = clients.into_iter().take(MAX_CLIENTS).find(fails);
    Some(failing.map_or_else(|| flow.clone(), from))
}
