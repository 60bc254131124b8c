//! Checklists: the questions of the cloud's troubleshooting pages, in their order, with answers.
//!
//! Each line is a question with its answer (ok, failed, or unknown), the evidence for the answer,
//! and what to ask next. Flows are walked and objects are read; where neither answers, the line
//! says how to find out.

mod cross_node;
mod dns;
mod ingress;
mod nodes;
mod service;
mod service_name;

use uturn_model::pod::DnsPolicy;
use uturn_model::shell::{Advice, Command};
use uturn_model::{
    Client, Destination, Flow, Mechanism, Name, NamespacedName, ObjectRef, Pod, Protocol, Text,
    Verdict,
};
use uturn_path::{Engine, WalkError, supposed_of_servers};

use crate::find::unwalked;
use crate::outcomes::outcomes_and_reasons;
use crate::{Finding, Severity, reason};

/// The questions about one subject, with answers.
#[derive(Clone, Debug)]
pub struct Checklist {
    /// The subject of the questions: `svc/shop/front`.
    pub subject: String,
    /// The questions, in the order in which they are asked.
    pub checks: Vec<Check>,
}

/// A question with its answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check {
    /// The question.
    pub what: String,
    /// The answer.
    pub state: State,
    /// The evidence for the answer.
    pub evidence: Vec<String>,
    /// What to ask or do next; if the answer is ok, how to see it live.
    pub next: Option<Advice>,
}

/// The answer to a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// The state is as it should be.
    Ok,
    /// The state is not as it should be.
    Failed,
    /// The input does not show the state.
    Unknown,
}

impl State {
    /// Returns the answer as the command line spells it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Failed => "failed",
            Self::Unknown => "unknown",
        }
    }
}

/// The subject of checklists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Topic {
    /// Services, called from outside and inside.
    Service,
    /// Ingresses.
    Ingress,
    /// The cluster's DNS.
    Dns,
    /// Each node by itself.
    Nodes,
    /// Connections between pods of different nodes.
    CrossNode,
}

/// Returns the checklists of a topic, for the Services or Ingresses that are wanted.
pub fn check(
    engine: &Engine<'_>,
    topic: Topic,
    wanted: impl Fn(&NamespacedName) -> bool,
) -> Vec<Checklist> {
    let cluster = engine.cluster();
    let unwalked = || -> Vec<Finding> {
        unwalked(engine).filter(|finding| finding.severity > Severity::Info).collect()
    };
    match topic {
        Topic::Service => {
            let found = unwalked();
            let all = cluster.services.iter().filter(|(name, _)| wanted(name));
            all.map(|(_, service)| {
                service::check(engine, service).with_faults(&found, &service.object())
            })
            .collect()
        }
        Topic::Ingress => {
            let found = unwalked();
            let all = cluster.ingresses.iter().filter(|(name, _)| wanted(name));
            all.map(|(_, ingress)| {
                ingress::check(engine, ingress).with_faults(&found, &ingress.object())
            })
            .collect()
        }
        Topic::Dns => vec![dns::check(engine)],
        Topic::Nodes => cluster.nodes.values().map(|node| nodes::check(engine, node)).collect(),
        Topic::CrossNode => vec![cross_node::check(engine)],
    }
}

impl Checklist {
    /// Adds what objects show and the walks above do not: they suppose that a condition does not hold,
    /// or do not know how calls end.
    fn with_faults(mut self, found: &[Finding], object: &ObjectRef) -> Self {
        let own: Vec<&Finding> = found.iter().filter(|own| own.subject == *object).collect();
        let Some(first) = own.first() else { return self };
        let is_certain = own
            .iter()
            .any(|finding| finding.conditions.is_empty() && finding.severity == Severity::Error);
        let state = if is_certain { State::Failed } else { State::Unknown };
        let mut check = Check::new("nothing that objects show makes its calls fail", state);
        for finding in &own {
            let condition = match &*finding.conditions {
                [] => String::new(),
                some => format!(" if {}", some.join(" and ")),
            };
            let why = finding.other_evidence.first().map(|seen| &*seen.what).unwrap_or_default();
            check
                .evidence
                .push(format!("{}{condition} ({}): {why}", finding.outcome, finding.code));
        }
        self.checks.push(check.next(first.code.explain()));
        self
    }
}

impl Check {
    fn new(what: impl Into<String>, state: State) -> Self {
        Self { what: what.into(), state, evidence: Vec::new(), next: None }
    }

    fn ok(what: impl Into<String>, evidence: impl Into<String>) -> Self {
        Self::new(what, State::Ok).because(evidence)
    }

    fn failed(what: impl Into<String>, evidence: impl Into<String>) -> Self {
        Self::new(what, State::Failed).because(evidence)
    }

    fn unknown(what: impl Into<String>, evidence: impl Into<String>) -> Self {
        Self::new(what, State::Unknown).because(evidence)
    }

    fn because(mut self, evidence: impl Into<String>) -> Self {
        self.evidence.push(evidence.into());
        self
    }

    fn next(mut self, next: impl Into<Advice>) -> Self {
        self.next = Some(next.into());
        self
    }
}

/// The maximum number of flows that are walked for one check.
const MAX: usize = 60;
/// The maximum number of failed flows that are named.
const NAMED: usize = 3;

/// Walks flows. The check is ok if each is answered at once.
fn walked(engine: &Engine<'_>, what: &str, flows: Vec<Flow>) -> Check {
    walked_until(engine, what, flows, ("answered at once", Verdict::is_fine))
}

/// Walks flows that only have to reach a server: a server that expects a PROXY header closes them.
fn walked_to_server(engine: &Engine<'_>, what: &str, flows: Vec<Flow>) -> Check {
    let is_reached = |verdict: &Verdict| {
        let mut why = verdict.mechanisms.iter();
        verdict.is_fine()
            || !verdict.mechanisms.is_empty() && why.all(|why| *why == Mechanism::ProxyHeader)
    };
    walked_until(engine, what, flows, ("arrive", is_reached))
}

/// Walks flows. The check is ok if `is_fine` accepts each verdict.
fn walked_until(
    engine: &Engine<'_>,
    what: &str,
    flows: Vec<Flow>,
    (word, is_fine): (&str, fn(&Verdict) -> bool),
) -> Check {
    if flows.is_empty() {
        return Check::unknown(what, "no client is known that could call it");
    }
    let all = flows.len();
    let mut check = Check::new(what, State::Ok);
    let (mut fine, mut lost, mut conditional, mut open, mut first) = (0, 0, 0, 0, None);
    let mut without = Vec::new();
    for flow in flows.into_iter().take(MAX) {
        let verdict = match engine.verdict(&flow) {
            Ok(verdict) => verdict,
            // A pod of another family does not call this address.
            Err(why @ WalkError::NoAddress(..)) => {
                without.push(format!("{} to {}: {why}", flow.from, flow.to));
                continue;
            }
            Err(why) => {
                check.state =
                    if check.state == State::Failed { State::Failed } else { State::Unknown };
                check.evidence.push(format!("{} to {}: {why}", flow.from, flow.to));
                continue;
            }
        };
        if is_fine(&verdict) {
            fine += 1;
            continue;
        }
        if !verdict.can_fail() {
            if check.state == State::Ok {
                check.state = State::Unknown;
            }
            if open == 0 {
                let line = in_a_line(&verdict);
                check.evidence.push(format!("{} to {}: {line}", flow.from, flow.to));
            }
            open += 1;
            continue;
        }
        if let Some(condition) = expected_header(&verdict) {
            // It is not known whether servers expect a header, so this is not a failure yet.
            if check.state == State::Ok {
                check.state = State::Unknown;
            }
            if conditional == 0 {
                let line = in_a_line(&verdict);
                check.evidence.push(format!("{} to {}: {line} if {condition}", flow.from, flow.to));
            }
            conditional += 1;
            first.get_or_insert(flow);
            continue;
        }
        check.state = State::Failed;
        lost += 1;
        if lost <= NAMED {
            check.evidence.push(format!("{} to {}: {}", flow.from, flow.to, in_a_line(&verdict)));
        }
        let why = reason::of_verdict(engine, &flow, &verdict).filter(|_| lost <= NAMED);
        let why = why.map(|why| format!("because {why}"));
        check.evidence.extend(why.filter(|why| !check.evidence.contains(why)));
        first.get_or_insert(flow);
    }
    if lost > NAMED {
        check.evidence.push(format!("and {} more", lost - NAMED));
    }
    if conditional > 1 {
        check.evidence.push(format!("and {} more under that condition", conditional - 1));
    }
    if without.len() == all.min(MAX) {
        check.state = State::Unknown;
        check.evidence.extend(without.first().cloned());
    }
    let (looked, all) = (all.min(MAX) - without.len(), all - without.len());
    if fine > 0 {
        let of =
            if looked < all { format!("{looked} (the first of {all})") } else { all.to_string() };
        check.evidence.insert(0, format!("walked: {fine} of {of} {word}"));
    }
    if open > 1 {
        check.evidence.push(format!("and {} more that are not known", open - 1));
    }
    if let Some(flow) = first {
        check.next = Some(trace_of(&flow).into());
    }
    check
}

/// Returns the command that shows a flow.
fn trace_of(flow: &Flow) -> Command {
    Command::new("uturn trace").with(&flow.arguments())
}

/// Returns what servers are assumed to expect, if calls fail because of a PROXY header and nothing
/// given states it.
fn expected_header(verdict: &Verdict) -> Option<Text> {
    let is_of_header = verdict.mechanisms.contains(&Mechanism::ProxyHeader);
    verdict.supposed.iter().filter(|_| is_of_header).find_map(supposed_of_servers)
}

/// Describes a verdict in a line.
fn in_a_line(verdict: &Verdict) -> String {
    outcomes_and_reasons(&verdict.outcomes, &verdict.mechanisms)
}

/// Returns a pod of each node that may be a client and is not on the host network, preferably one
/// that uses the cluster's DNS.
fn a_pod_on_each<'a>(engine: &Engine<'a>) -> Vec<&'a Pod> {
    let pods = engine.cluster().pods.values();
    let pods = pods.filter(|pod| pod.is_alive() && !pod.spec.host_network && !pod.ips.is_empty());
    let (asking, others): (Vec<&Pod>, Vec<&Pod>) = pods.partition(|pod| asks(pod));
    let mut seen: Vec<&Name> = Vec::new();
    let mut all: Vec<&Pod> = asking
        .into_iter()
        .chain(others)
        .filter(|pod| {
            let node = pod.node.as_ref().filter(|node| !seen.contains(node));
            seen.extend(node);
            node.is_some()
        })
        .collect();
    all.sort_by_key(|pod| &pod.name);
    all
}

/// Returns whether a pod uses the cluster's DNS.
fn asks(pod: &Pod) -> bool {
    pod.spec.dns_policy == DnsPolicy::ClusterFirst
}

fn flow(from: Client, to: Destination, protocol: Protocol) -> Flow {
    Flow { from, to, protocol }
}
