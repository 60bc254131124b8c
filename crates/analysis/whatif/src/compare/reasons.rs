//! Why calls change: the findings of both clusters.

use std::collections::HashSet;

use uturn_diagnose::analysis::AnalysisError;
use uturn_diagnose::{Analysis, Code, Finding, Severity};
use uturn_model::{Cluster, Flow, Mechanism, ObjectRef};
use uturn_path::Engine;

use super::State;
use super::difference::of_both;
use super::entries::who;
use crate::result::{Effect, Entry, List, Side, Subject};

/// Says of each entry which finding is about it: after the change for what gets worse, before it for
/// what gets better.
pub(super) fn explain(entries: &mut [Entry], old: Option<&Analysis>, new: Option<&Analysis>) {
    for entry in entries {
        let is_better = entry.effect.list() == List::Better;
        let (analysis, side) = if is_better { (old, &entry.before) } else { (new, &entry.after) };
        let Some(analysis) = analysis else { continue };
        let found = finding_of(analysis, entry, side);
        entry.origin = found.map(|at| analysis.origins[at].clone());
        entry.subjected = found.map(|at| subject(analysis, at));
        if entry.subjected.is_none()
            && let Some(mechanism) = side.mechanisms.first()
        {
            entry.subjected = Some(of_mechanism(*mechanism, entry, side));
        }
    }
}

/// Returns what the code of a mechanism says where no finding is about the calls.
fn of_mechanism(mechanism: Mechanism, entry: &Entry, side: &Side) -> Subject {
    let is_lost = side.outcomes.iter().any(|(outcome, _)| !outcome.is_answered());
    Subject {
        code: Code::of(mechanism, entry.subject.kind),
        severity: if is_lost { Severity::Error } else { Severity::Warning },
        object: entry.subject.clone(),
        because: None,
        evidence: Vec::new(),
        cures: Vec::new(),
        untried: None,
    }
}

fn subject(analysis: &Analysis, at: usize) -> Subject {
    let finding = &analysis.findings[at];
    Subject {
        code: finding.code,
        severity: finding.severity,
        object: finding.subject.clone(),
        because: analysis.in_words.get(at).and_then(|words| words.because.clone()),
        evidence: analysis.evidence.get(at).cloned().unwrap_or_default(),
        cures: finding.cures.clone(),
        untried: finding.untried.clone(),
    }
}

/// Returns the finding that says most about the calls of an entry.
fn finding_of(analysis: &Analysis, entry: &Entry, side: &Side) -> Option<usize> {
    if side.is_absent() || side.outcomes.iter().all(|(outcome, _)| outcome.is_fine()) {
        return None;
    }
    let pods: HashSet<_> = entry.who.pods.iter().collect();
    let score = |finding: &Finding| {
        if !is_about(finding, &entry.subject) {
            return None;
        }
        let by_mechanism = finding.mechanism.map(|own| side.mechanisms.contains(&own));
        if by_mechanism == Some(false) {
            return None;
        }
        let named =
            |target: &String| entry.targets.iter().any(|own| target.ends_with(own.as_str()));
        let has_target = finding.targets.iter().any(named);
        let shared = finding.clients.iter().take(MAX_PODS).filter(|pod| pods.contains(pod)).count();
        Some((by_mechanism == Some(true), has_target, shared > 0, finding.severity))
    };
    let scored = analysis
        .findings
        .iter()
        .enumerate()
        .filter_map(|(at, finding)| Some((score(finding)?, std::cmp::Reverse(at))));
    scored.max().map(|(_, std::cmp::Reverse(at))| at)
}

/// The maximum number of pods of a finding that are looked at.
const MAX_PODS: usize = 10_000;

fn is_about(finding: &Finding, object: &ObjectRef) -> bool {
    let short = object.short();
    let names = |target: &String| target.split(' ').next() == Some(short.as_str());
    finding.subject == *object || finding.targets.iter().any(names)
}

/// Returns entries for findings that are on one side only and that no compared call shows: of clients
/// outside, of health checks, of names, of what objects state.
pub(super) fn unseen(
    entries: &[Entry],
    (before, old): (State<'_>, Option<&Analysis>),
    (after, new): (State<'_>, Option<&Analysis>),
) -> Result<Vec<Entry>, AnalysisError> {
    let mut found = Vec::new();
    let sides = [(new, old, Effect::Found), (old, new, Effect::Cured)];
    let mut walker = Walker::new(before.cluster, after.cluster);
    for (own, other, effect) in sides {
        let Some(own) = own else { continue };
        for (at, finding) in own.findings.iter().enumerate() {
            let is_known = other.is_some_and(|other| {
                other.findings.iter().any(|known| {
                    known.code == finding.code
                        && known.subject == finding.subject
                        && known.conditions == finding.conditions
                })
            });
            let has_pods = finding.clients.pod_count() > 0;
            let is_told = entries.iter().any(|entry| {
                let is_same = entry.subjected.as_ref().is_some_and(|told| {
                    told.code == finding.code && told.object == finding.subject
                });
                let is_alike = has_pods
                    || entry.effect.list() == effect.list()
                    || matches!(entry.effect, Effect::NotJudged | Effect::Judged);
                is_same || is_alike && is_about(finding, &entry.subject)
            });
            if is_known || is_told || finding.severity == Severity::Info {
                continue;
            }
            if let Some(entry) = walker.entry(own, at, effect)? {
                found.push(entry);
            }
        }
    }
    Ok(found)
}

/// Walks the flows that show findings, in both clusters.
struct Walker<'c> {
    before: &'c Cluster,
    after: &'c Cluster,
    /// Prepared once there is a flow.
    engines: Option<[Engine<'c>; 2]>,
}

impl<'c> Walker<'c> {
    fn new(before: &'c Cluster, after: &'c Cluster) -> Self {
        Self { before, after, engines: None }
    }

    /// Returns how a flow ends before and after; `None` if its client or target does not exist there.
    fn ends(&mut self, flow: &Flow) -> Result<[Option<Side>; 2], AnalysisError> {
        if self.engines.is_none() {
            let engine = |cluster| Engine::new(cluster).map_err(AnalysisError::Walk);
            self.engines = Some([engine(self.before)?, engine(self.after)?]);
        }
        let Some(engines) = &self.engines else { return Ok([None, None]) };
        Ok([&engines[0], &engines[1]].map(|engine| {
            let verdict = engine.with_met_services().verdict(flow).ok()?;
            Some(Side { outcomes: verdict.outcomes, mechanisms: verdict.mechanisms, way: None })
        }))
    }

    fn entry(
        &mut self,
        analysis: &Analysis,
        at: usize,
        effect: Effect,
    ) -> Result<Option<Entry>, AnalysisError> {
        let finding = &analysis.findings[at];
        let (mut before, mut after) = (Side::default(), Side::default());
        let mut effect = effect;
        if let Some(flow) = finding.example.flow() {
            let [old, new] = self.ends(&flow)?;
            if let (Some(old), Some(new)) = (&old, &new) {
                let both = of_both(std::slice::from_ref(old), std::slice::from_ref(new));
                // That a fault is gone tells nothing where the call gets worse, nor the reverse.
                match (effect, both.map(Effect::list)) {
                    (Effect::Cured, Some(List::Worse)) | (Effect::Found, Some(List::Better)) => {
                        return Ok(None);
                    }
                    _ => effect = both.unwrap_or(effect),
                }
            }
            (before, after) = (old.unwrap_or_default(), new.unwrap_or_default());
        }
        // A warning rests on a condition, or is about what works for most.
        effect = match effect {
            Effect::Found if finding.severity < Severity::Error => Effect::Warned,
            Effect::Cured if finding.severity < Severity::Error => Effect::Unwarned,
            other => other,
        };
        if before.is_absent() && after.is_absent() {
            let fault = Side {
                outcomes: vec![(finding.outcome, finding.share_failing)],
                mechanisms: finding.mechanism.into_iter().collect(),
                way: None,
            };
            let is_before = matches!(effect, Effect::Cured | Effect::Unwarned);
            let side = if is_before { &mut before } else { &mut after };
            if !finding.share_failing.is_none() {
                *side = fault;
            }
        }
        let others = finding.clients.others().iter().map(ToString::to_string).collect();
        let pods = finding.clients.iter().cloned().collect();
        let is_before = matches!(effect, Effect::Cured | Effect::Unwarned);
        let cluster = if is_before { self.before } else { self.after };
        Ok(Some(Entry {
            effect,
            subject: finding.subject.clone(),
            targets: finding.targets.clone(),
            who: who(cluster, pods, others),
            before,
            after,
            conditions: finding.conditions.clone(),
            origin: analysis.origins.get(at).cloned(),
            subjected: Some(subject(analysis, at)),
        }))
    }
}
