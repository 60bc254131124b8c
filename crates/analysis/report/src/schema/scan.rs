//! `scan -o json`.

use std::collections::BTreeMap;

use serde::Serialize;
use uturn_model as model;
use uturn_model::network;

mod group;
mod survive;

pub use group::{CureScope, Group, GroupCure};
pub use survive::Survive;

use super::common::{By, Outcome, Severity, Supposition};
use crate::scan::ScanReport;
use crate::words;
use uturn_diagnose::analysis::{InWords, Suppressed, Suppression};

/// What `uturn scan -o json` prints.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Scan<'a> {
    /// What was found, the worst first.
    pub findings: Vec<Finding<'a>>,
    /// The findings grouped by cause, the worst group first. Each finding is in one group.
    pub groups: Vec<Group<'a>>,
    /// What was found and an annotation ignores.
    pub ignored: Vec<Ignored<'a>>,
    /// What was found and the baseline knows.
    pub known: Vec<Known<'a>>,
    /// How many flows were walked: a class of clients and a target is one.
    pub flows: usize,
    /// How many of them are answered at once.
    pub fine: usize,
    /// How many of them cannot be judged.
    pub open: usize,
    /// How many of them NetworkPolicies stop.
    pub denied: usize,
    /// The pods on nodes that have no address yet, so that their calls are not judged.
    pub without_address: Vec<String>,
    /// The pod network; null where no cluster was read.
    pub network: Option<Network<'a>>,
    /// What keeps flows from being judged.
    pub not_judged: Vec<NotJudged<'a>>,
    /// What was supposed because nothing stated it.
    pub supposed: Vec<Supposition>,
    /// What was read and not needed.
    pub skipped: Vec<Skipped<'a>>,
    /// What an API server did not give.
    pub unread: Vec<Unread<'a>>,
    /// How many objects were read, by kind.
    pub seen: BTreeMap<&'a str, usize>,
    /// Which calls break when a node or a zone is lost; absent without --survive.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub survive: Option<Survive<'a>>,
    /// The state of a cluster that is watched; absent without --watch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub watch: Option<Watch>,
}

/// The state of a cluster that is watched.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Watch {
    /// When it was so, in UTC: `2026-11-23T06:00:00Z`.
    pub at: String,
    /// How many changes of objects there were since the watch began.
    pub changes: u64,
    /// The version up to which the objects of each kind are known, where the API server says it.
    pub versions: BTreeMap<String, String>,
    /// What may be otherwise by now.
    pub not_current: Vec<NotCurrent>,
    /// How many clients of targets were walked for it.
    pub walked: usize,
    /// For how many it was known from the state before how their calls end.
    pub reused: usize,
    /// How many walked targets are kept for the next state.
    pub kept: usize,
}

/// Objects that may be otherwise by now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct NotCurrent {
    /// Which objects.
    pub what: String,
    /// Since when, in UTC.
    pub since: String,
    /// Whether they are read again from time to time, since they may not be watched.
    pub read_again: bool,
    /// What the API server says, or what came instead of an answer.
    pub why: String,
}

impl<'a> From<&'a ScanReport> for Scan<'a> {
    fn from(report: &'a ScanReport) -> Self {
        let most_names = words::most_names(report.findings.len());
        let finding = |(at, finding)| {
            let evidence = report.evidence.get(at).map_or(&[][..], Vec::as_slice);
            let words = report.in_words.get(at);
            Finding::new(finding, words, evidence, most_names)
        };
        Self {
            findings: report.findings.iter().enumerate().map(finding).collect(),
            groups: report.groups.iter().map(|group| Group::new(group, &report.findings)).collect(),
            ignored: report.aside.iter().filter_map(Ignored::new).collect(),
            known: report.aside.iter().filter_map(Known::new).collect(),
            flows: report.flows,
            fine: report.fine,
            open: report.open,
            denied: report.denied,
            without_address: report
                .without_address
                .iter()
                .map(|pod| model::Client::Pod(pod.clone()).to_string())
                .collect(),
            network: report.network.as_ref().map(Network::from),
            not_judged: report.unjudged.iter().map(NotJudged::from).collect(),
            supposed: Supposition::all(&report.supposed),
            skipped: report.skipped.iter().map(Skipped::from).collect(),
            unread: report.unread.iter().map(Unread::from).collect(),
            seen: report.seen.iter().map(|(kind, count)| (&**kind, *count)).collect(),
            survive: report.survive.as_ref().map(Survive::from),
            watch: None,
        }
    }
}

/// Something that people have to act on.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Finding<'a> {
    /// Its code: `uturn explain CODE` prints its page.
    pub code: String,
    /// How bad it is.
    pub severity: Severity,
    /// What the code means, in a few words.
    pub title: &'a str,
    /// The object that cannot be reached as it should be, or that keeps others from it.
    pub subject: Subject<'a>,
    /// The ports, hosts and paths of the object that fail alike.
    pub targets: &'a [String],
    /// The clients that fail, by name; of very many only some.
    pub clients: Vec<String>,
    /// How many clients fail.
    pub client_count: usize,
    /// The nodes that these clients are on, by name; of very many only some.
    pub nodes: Vec<&'a str>,
    /// How many nodes these clients are on.
    pub node_count: usize,
    /// What has to hold for the finding, where that is not known; empty where it always holds.
    #[serde(rename = "if")]
    pub conditions: Vec<&'a str>,
    /// The share of the clients' calls that are not answered at once.
    pub share_failing: f64,
    /// Why they fail; null where nothing is lost on the way.
    pub mechanism: Option<&'static str>,
    /// Why they fail in words, beginning with the object that has to change; null where nothing
    /// shows it.
    pub because: Option<&'a str>,
    /// What the finding rests on.
    pub evidence: Vec<Evidence>,
    /// What helps, the least intrusive first.
    pub cures: Vec<&'a str>,
    /// What was not tried, so that nobody knows whether it helps; null where every cure was tried.
    pub untried: Option<Untried<'a>>,
    /// How a call that fails ends.
    #[serde(flatten)]
    pub outcome: Outcome,
}

impl<'a> Finding<'a> {
    /// With the names of at most `most_names` pods, and of as many nodes.
    fn new(
        finding: &'a uturn_diagnose::Finding,
        words: Option<&'a InWords>,
        evidence: &'a [uturn_diagnose::Observation],
        most_names: usize,
    ) -> Self {
        let nodes = finding.clients.nodes();
        let pods = words::pods(&finding.clients, most_names).into_iter();
        let others = finding.clients.others().iter();
        Self {
            code: finding.code.to_string(),
            severity: finding.severity.into(),
            title: finding.code.title(),
            subject: Subject::from(&finding.subject),
            targets: &finding.targets,
            clients: pods
                .map(|pod| model::Client::Pod(pod.clone()).to_string())
                .chain(others.map(ToString::to_string))
                .collect(),
            client_count: finding.clients.len(),
            nodes: nodes.iter().take(most_names).map(|name| name.as_str()).collect(),
            node_count: nodes.len(),
            conditions: finding.conditions.iter().map(|condition| &**condition).collect(),
            share_failing: finding.share_failing.get(),
            mechanism: finding.mechanism.map(model::Mechanism::as_str),
            because: words.and_then(|words| words.because.as_deref()),
            evidence: evidence.iter().map(Evidence::from).collect(),
            cures: finding.cures.iter().map(|cure| &*cure.text).collect(),
            untried: finding.untried.as_ref().map(Untried::from),
            outcome: finding.outcome.into(),
        }
    }
}

/// Cures that were not tried.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Untried<'a> {
    /// Which; empty where no cure was tried.
    pub cures: Vec<&'a str>,
    /// Why they were not tried.
    pub why: String,
}

impl<'a> From<&'a uturn_diagnose::Untried> for Untried<'a> {
    fn from(untried: &'a uturn_diagnose::Untried) -> Self {
        Self {
            cures: untried.cures.iter().map(|cure| &*cure.text).collect(),
            why: untried.why.to_string(),
        }
    }
}

/// An object of the cluster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Subject<'a> {
    /// Its kind, as manifests spell it.
    pub kind: &'a str,
    /// Its namespace; absent where the kind has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<&'a str>,
    /// Its name.
    pub name: &'a str,
}

impl<'a> From<&'a model::ObjectRef> for Subject<'a> {
    fn from(object: &'a model::ObjectRef) -> Self {
        Self {
            kind: object.kind.as_str(),
            namespace: object.namespace.as_ref().map(model::Name::as_str),
            name: &object.name,
        }
    }
}

/// One thing that a finding rests on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Evidence {
    /// Where it happens: `node/NAME`, `lb/NAME`; empty where it is no place on the way.
    pub place: String,
    /// What happens there.
    pub what: String,
    /// The rule or object that decides it.
    pub by: By,
    /// A command that shows it; null where there is none.
    pub see: Option<String>,
}

impl From<&uturn_diagnose::Observation> for Evidence {
    fn from(evidence: &uturn_diagnose::Observation) -> Self {
        Self {
            place: words::place(evidence),
            what: evidence.what.to_string(),
            by: By::from(&evidence.by),
            see: evidence.see().map(|see| see.to_string()),
        }
    }
}

/// A finding that an annotation of its object ignores.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Ignored<'a> {
    /// The finding.
    #[serde(flatten)]
    pub finding: SetAside<'a>,
    /// The reason that the annotation gives.
    pub reason: &'a str,
}

impl<'a> Ignored<'a> {
    fn new(aside: &'a Suppressed) -> Option<Self> {
        match &aside.why {
            Suppression::Ignored { reason } => {
                Some(Self { finding: SetAside::from(aside), reason })
            }
            Suppression::Known { .. } => None,
        }
    }
}

/// A finding that the baseline knows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Known<'a> {
    /// The finding.
    #[serde(flatten)]
    pub finding: SetAside<'a>,
    /// The file of the baseline.
    pub baseline: &'a str,
}

impl<'a> Known<'a> {
    fn new(aside: &'a Suppressed) -> Option<Self> {
        match &aside.why {
            Suppression::Known { baseline } => {
                Some(Self { finding: SetAside::from(aside), baseline })
            }
            Suppression::Ignored { .. } => None,
        }
    }
}

/// A finding that does not count.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SetAside<'a> {
    /// Its code.
    pub code: String,
    /// How bad it is.
    pub severity: Severity,
    /// The object that it is about.
    pub subject: Subject<'a>,
    /// The ports, hosts and paths of the object that fail alike.
    pub targets: &'a [String],
    /// Where the object is written: `FILE:LINE:COLUMN`.
    pub at: String,
}

impl<'a> From<&'a Suppressed> for SetAside<'a> {
    fn from(aside: &'a Suppressed) -> Self {
        Self {
            code: aside.finding.code.to_string(),
            severity: aside.finding.severity.into(),
            subject: Subject::from(&aside.finding.subject),
            targets: &aside.finding.targets,
            at: aside.origin.to_string(),
        }
    }
}

/// The pod network, as it was recognised.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Network<'a> {
    /// The network plugin.
    pub plugin: &'a str,
    /// How it was recognised.
    pub because: String,
    /// Where pods have their addresses from.
    pub mode: String,
    /// How packets cross from node to node.
    pub transport: String,
    /// The same for packets of IPv6, where it is another way.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub transport_v6: Option<String>,
    /// Whether nodes translate the source of what pods send out of the cluster.
    pub masquerade: bool,
}

impl<'a> From<&'a network::Network> for Network<'a> {
    fn from(network: &'a network::Network) -> Self {
        Self {
            plugin: network.plugin.value.word(),
            because: network.plugin.basis.to_string(),
            mode: network.mode.value.to_string(),
            transport: network.transport.value.to_string(),
            transport_v6: network.transport_v6.as_ref().map(|other| other.value.to_string()),
            masquerade: network.masquerades.value,
        }
    }
}

/// Something that keeps flows from being judged.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct NotJudged<'a> {
    /// What is not given or not modelled.
    pub what: String,
    /// The objects that it concerns.
    pub objects: Vec<String>,
    /// Why flows cannot be judged without it.
    pub because: &'a str,
    /// What would settle it; empty where nothing does.
    pub settle: &'a str,
}

impl<'a> From<&'a model::Unjudged> for NotJudged<'a> {
    fn from(unjudged: &'a model::Unjudged) -> Self {
        Self {
            what: unjudged.to_string(),
            objects: unjudged.objects.iter().map(model::ObjectRef::short).collect(),
            because: &unjudged.because,
            settle: &unjudged.settle,
        }
    }
}

/// Something that was read and not needed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Skipped<'a> {
    /// `apiVersion/kind`; in words, where it is no object.
    pub kind: &'a str,
    /// How many.
    pub count: usize,
    /// The files of what is no object; absent where there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<&'a str>,
}

impl<'a> From<&'a model::Skipped> for Skipped<'a> {
    fn from(skipped: &'a model::Skipped) -> Self {
        Self {
            kind: &skipped.kind,
            count: skipped.count,
            files: skipped.files.iter().map(|file| &**file).collect(),
        }
    }
}

/// Objects that an API server did not give.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Unread<'a> {
    /// Which objects.
    pub what: &'a str,
    /// What is known of them nevertheless.
    pub known: &'a str,
    /// Why they could not be read.
    pub why: &'a str,
}

impl<'a> From<&'a model::cluster::Unread> for Unread<'a> {
    fn from(unread: &'a model::cluster::Unread) -> Self {
        Self { what: &unread.what, known: &unread.known, why: &unread.why }
    }
}
