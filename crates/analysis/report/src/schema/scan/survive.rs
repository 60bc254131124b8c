//! `survive` of `scan --survive -o json`.

use serde::Serialize;
use uturn_whatif::survive;

use super::super::common::{OutcomeShare, Severity};
use super::Subject;
use crate::words;

/// Which calls break when a node or a zone is lost.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Survive<'a> {
    /// What is lost at a time: `node` or `zone`.
    pub unit: &'a str,
    /// How many losses were judged, each by itself.
    pub count: usize,
    /// How many of them break nothing.
    pub harmless: usize,
    /// The losses that break calls, the worst first.
    pub losses: Vec<LossClass<'a>>,
    /// What is assumed of a loss.
    pub assumed: Vec<&'a str>,
}

/// Losses that break the same calls.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LossClass<'a> {
    /// The zone that is lost; absent where single nodes are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub zone: Option<&'a str>,
    /// The nodes: of a zone all at a time, else each by itself.
    pub nodes: Vec<&'a str>,
    /// The worst of what breaks: `warning` where calls stay broken or stop altogether, `info` where
    /// some fail or wait until the loss is noticed.
    pub severity: Severity,
    /// The calls that are worse off, the worst first; of several nodes, those of the first.
    pub breaks: Vec<Break<'a>>,
}

/// Calls of an object that end alike.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Break<'a> {
    /// How bad it is.
    pub severity: Severity,
    /// The object that is called.
    pub subject: Subject<'a>,
    /// Its ports, hosts and paths.
    pub targets: &'a [String],
    /// The clients that are worse off and not lost themselves, by name; of very many only some.
    pub clients: Vec<String>,
    /// How many clients are worse off.
    pub client_count: usize,
    /// The workloads of the clients.
    pub workloads: &'a [String],
    /// How the calls end before the loss.
    pub before: End,
    /// How they end while nothing has noticed the loss.
    pub at_once: End,
    /// How they end after health checks and endpoints have followed.
    pub after_notice: End,
}

/// How calls end.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct End {
    /// The share that is not answered.
    pub share_failing: f64,
    /// Each outcome with its share.
    pub outcomes: Vec<OutcomeShare>,
    /// Why some are not answered at once.
    pub mechanisms: Vec<&'static str>,
}

impl<'a> From<&'a survive::Survival> for Survive<'a> {
    fn from(own: &'a survive::Survival) -> Self {
        let all: usize = own.losses.iter().map(|class| class.breaks.len()).sum();
        let most_names = words::most_names(all);
        Self {
            unit: own.unit.word(),
            count: own.count,
            harmless: own.harmless(),
            losses: own.losses.iter().map(|class| LossClass::new(class, most_names)).collect(),
            assumed: own.assumed.iter().map(|text| &**text).collect(),
        }
    }
}

impl<'a> LossClass<'a> {
    fn new(class: &'a survive::LossClass, most_names: usize) -> Self {
        Self {
            zone: class.zone.as_deref(),
            nodes: class.nodes.iter().map(uturn_model::Name::as_str).collect(),
            severity: class.severity().into(),
            breaks: class.breaks.iter().map(|own| Break::new(own, most_names)).collect(),
        }
    }
}

impl<'a> Break<'a> {
    fn new(own: &'a survive::Break, most_names: usize) -> Self {
        let pods = own.pods.iter().take(most_names);
        let pods = pods.map(|pod| uturn_model::Client::Pod(pod.clone()).to_string());
        let outside = own.outside.then(|| "outside".to_owned());
        Self {
            severity: own.severity.into(),
            subject: (&own.subject).into(),
            targets: &own.targets,
            clients: pods.chain(outside).collect(),
            client_count: own.pods.len() + usize::from(own.outside),
            workloads: &own.workloads,
            before: (&own.ends.before).into(),
            at_once: (&own.ends.at_once).into(),
            after_notice: (&own.ends.noticed).into(),
        }
    }
}

impl From<&survive::End> for End {
    fn from(end: &survive::End) -> Self {
        Self {
            share_failing: end.unanswered().get(),
            outcomes: OutcomeShare::all(&end.outcomes),
            mechanisms: end.mechanisms.iter().map(|own| own.as_str()).collect(),
        }
    }
}
