//! The analysis of a whole cluster in one call: from its objects to findings with cures.
//!
//! [`Input`] reads manifests; a live source builds a [`Cluster`] itself and passes empty
//! [`Manifests`]. [`analyze`] does the rest:
//!
//! 1. An engine for each reading of what is not known (a mode of kube-proxy, say).
//! 2. With each engine: the targets, a scan of all clients against them, findings.
//! 3. The findings of all readings together, each with the conditions under which it holds.
//! 4. Findings that are ignored by an annotation or known from before are set apart.
//! 5. The rest is grouped by cause; cures are tried on the findings that are shown in full.
//! 6. Evidence, as far as [`Detail`] asks for it.
//!
//! This module neither reads the environment nor prints: the result has everything worth telling.

mod cures;
mod error;
mod ignore;
mod in_words;
mod input;
mod notes;
mod options;
mod prepared;
mod result;
mod unjudged_calls;

use std::collections::{BTreeMap, HashMap};
use std::iter;
use std::sync::Arc;

use uturn_model::{Assumption, Cluster, ObjectKind, ObjectRef, Origin, Verdict};
use uturn_path::{Engine, WalkError, add_missing, what_if};
use uturn_scan::{FewCalls, KnownWalks, ScanResult, ScanTarget, Scanner, ToExplain};
use uturn_snapshot::Manifests;

use crate::cases::together;
use crate::cure::TrialBase;
use crate::group::{group, shown_in_full};
use crate::{Cure, Example, Finding, Observation, diagnose, doubts};

pub use cures::{case_of, cures_of_finding, cures_of_flow, failing_flow, titles};
pub use error::AnalysisError;
pub use ignore::{IgnoreError, IgnoreRules};
pub use in_words::InWords;
pub use input::{Input, MAX_BYTES, MAX_SCANNED_BYTES};
pub use notes::Note;
pub use options::{Detail, KnownFindings, Options};
pub use prepared::PreparedCluster;
pub use result::{Analysis, FlowCounts, InFull, Suppressed, Suppression};

/// Analyses a cluster. Cures are tried as edits of the manifests that it was read from; without
/// manifests, findings keep the cures that need no edit.
///
/// # Errors
/// Returns an error if rules of a node can be neither read nor compiled, if an annotation that
/// ignores findings is malformed, or if [`Options::namespace`] has nothing to call.
pub fn analyze(
    manifests: &Manifests,
    cluster: &Cluster,
    options: &Options<'_>,
) -> Result<Analysis, AnalysisError> {
    analyze_knowing(manifests, cluster, options, None)
}

/// Analyses a cluster as [`analyze`] does, with the results of walks of former analyses.
///
/// # Errors
/// Returns the same errors as [`analyze`].
pub fn analyze_knowing(
    manifests: &Manifests,
    cluster: &Cluster,
    options: &Options<'_>,
    known: Option<&Arc<KnownWalks>>,
) -> Result<Analysis, AnalysisError> {
    let ignore = IgnoreRules::read(cluster).map_err(AnalysisError::Ignore)?;
    let others = what_if::others(cluster);
    let clusters = iter::once(cluster).chain(&others);
    let engines: Vec<Engine<'_>> =
        clusters.map(Engine::new).collect::<Result<_, _>>().map_err(AnalysisError::Walk)?;
    let engine = &engines[0];
    let scanners: Vec<Scanner<'_, '_>> =
        engines.iter().map(|engine| Scanner::new(engine).knowing(known)).collect();
    let (scanned, found) = find(&scanners, options)?;
    let notes = notes::of(cluster, &scanned, &ignore, found.iter().map(|(_, finding)| finding));
    let why = |finding: &Finding| ignore.reason(finding).or_else(|| options.known(finding));
    let mut suppressed = Vec::new();
    let mut counted = Vec::new();
    for (reading, finding) in found {
        match why(&finding) {
            Some(why) => {
                let origin = origin_of(engine, &finding.subject);
                suppressed.push(Suppressed { finding, origin, why });
            }
            None => counted.push((reading, finding)),
        }
    }
    // Cures are tried later and on some findings only, so they must not affect the groups.
    let groups = group(counted.iter().map(|(_, finding)| finding));
    let in_full = shown_in_full(&groups);
    let base = TrialBase::new(manifests, engine).knowing(known);
    let is_whole = options.namespace.is_none() && !options.is_exhaustive;
    if is_whole && cures::is_tried(manifests) {
        base.keep_scan(scanned.clone());
    }
    let cures = cures::try_all(&base, &mut counted, &in_full);
    let evidence = evidence(&scanners, &counted, &in_full, options.detail)?;
    let in_words = in_words::all(&scanners, &counted, &in_full, &evidence)?;
    let in_full = match options.detail {
        Detail::InFull => flows_in_full(&scanners, &counted, &in_full, cures)?,
        Detail::Findings | Detail::Evidence => BTreeMap::new(),
    };
    let findings: Vec<Finding> = counted.into_iter().map(|(_, finding)| finding).collect();
    Ok(Analysis {
        groups,
        evidence,
        in_words,
        origins: findings.iter().map(|finding| origin_of(engine, &finding.subject)).collect(),
        findings,
        in_full,
        suppressed,
        flows: FlowCounts::of(&scanned),
        without_address: scanners[0].without_address().map(|pod| pod.name.clone()).collect(),
        supposed: supposed(engine, &scanned),
        unjudged: unjudged_calls::of(&scanners[0], &scanned)?,
        notes,
    })
}

/// Returns the assumptions about the cluster, and those on the routes of failed flows.
fn supposed(engine: &Engine<'_>, scanned: &[ScanResult]) -> Vec<Assumption> {
    let mut all = engine.supposed().to_vec();
    let verdicts = scanned.iter().flat_map(|met| &*met.verdicts);
    for verdict in verdicts.filter(|verdict| verdict.can_fail()) {
        add_missing(&mut all, verdict.supposed.clone());
    }
    all
}

impl Options<'_> {
    fn known(&self, finding: &Finding) -> Option<Suppression> {
        let known = self.known.filter(|known| (known.contains)(finding))?;
        Some(Suppression::Known { baseline: known.list.into() })
    }
}

/// The results of the first reading, and the findings of all readings, each with the index of the
/// first reading in which it holds.
type Found = (Vec<ScanResult>, Vec<(usize, Finding)>);

fn find(scanners: &[Scanner<'_, '_>], options: &Options<'_>) -> Result<Found, AnalysisError> {
    let mut first = None;
    let mut all = Vec::new();
    for scanner in scanners {
        let scanned = walk(scanner, options)?;
        let mut findings = diagnose(scanner, &scanned)?;
        // Each reading has its own engine, and only a few findings are walked again.
        if scanners.len() > 1 {
            scanner.engine().forget_kernels();
        }
        if let Some(wanted) = options.namespace {
            findings.retain(|finding| {
                finding.subject.namespace.as_ref().is_none_or(|name| name.as_str() == wanted)
            });
        }
        first.get_or_insert(scanned);
        all.push(findings);
    }
    Ok((first.unwrap_or_default(), together(scanners[0].engine().cluster(), all)))
}

/// The maximum number of flows that are walked one by one.
const MAX_FLOWS: usize = 200_000;

/// Walks the requested flows, by class or each flow by itself.
fn walk(
    scanner: &Scanner<'_, '_>,
    options: &Options<'_>,
) -> Result<Vec<ScanResult>, AnalysisError> {
    let targets = targets(scanner, options.namespace)?;
    if !options.is_exhaustive {
        return Ok(scanner.scan(&targets)?);
    }
    match scanner.flows(targets.len()) {
        flows if flows > MAX_FLOWS => Err(AnalysisError::TooManyFlows(flows)),
        _ => Ok(scanner.scan_exhaustively(&targets)?),
    }
}

/// Returns the targets in a namespace, or all targets.
fn targets(
    scanner: &Scanner<'_, '_>,
    namespace: Option<&str>,
) -> Result<Vec<ScanTarget>, AnalysisError> {
    let mut targets = scanner.targets();
    if let Some(wanted) = namespace {
        targets.retain(|target| {
            target.object.namespace.as_ref().is_some_and(|name| name.as_str() == wanted)
        });
        if targets.is_empty() && notes::has_targets(scanner.engine().cluster()) {
            let all = scanner.targets().into_iter().filter_map(|target| target.object.namespace);
            let mut others: Vec<String> = all.map(|name| name.to_string()).collect();
            others.sort_unstable();
            others.dedup();
            return Err(AnalysisError::NothingIn { namespace: wanted.to_owned(), others });
        }
    }
    Ok(targets)
}

/// Returns the evidence of the findings, in their order, as far as `detail` asks for it.
fn evidence(
    scanners: &[Scanner<'_, '_>],
    findings: &[(usize, Finding)],
    in_full: &[usize],
    detail: Detail,
) -> Result<Vec<Vec<Observation>>, WalkError> {
    let of = |index: usize| {
        let (reading, finding) = &findings[index];
        finding.evidence(&scanners[*reading])
    };
    match detail {
        Detail::Findings => Ok(Vec::new()),
        Detail::Evidence => {
            let mut walked = walked_together(scanners, findings);
            let mut of = |index| walked.remove(&index).unwrap_or_else(|| of(index));
            (0..findings.len()).map(&mut of).collect()
        }
        Detail::InFull => {
            let mut all = vec![Vec::new(); findings.len()];
            for index in in_full {
                all[*index] = of(*index)?;
            }
            Ok(all)
        }
    }
}

/// Returns the evidence of the findings whose examples come from a scan of a large cluster, by
/// their indices.
fn walked_together(
    scanners: &[Scanner<'_, '_>],
    findings: &[(usize, Finding)],
) -> HashMap<usize, Result<Vec<Observation>, WalkError>> {
    let mut all = HashMap::new();
    for (number, scanner) in scanners.iter().enumerate().filter(|(_, scanner)| scanner.is_large()) {
        let scanned = findings.iter().enumerate().filter_map(|(index, (reading, finding))| {
            match &finding.example {
                Example::Scanned(result) if *reading == number => {
                    Some((index, ToExplain { result, shown: finding.failure.as_ref() }))
                }
                _ => None,
            }
        });
        let (indices, results): (Vec<usize>, Vec<ToExplain<'_>>) = scanned.unzip();
        let of = |at: usize, verdicts: &[Verdict]| findings[indices[at]].1.observations(verdicts);
        let observed = scanner.explain_each_worst(&results, of);
        all.extend(indices.iter().copied().zip(observed));
    }
    all
}

fn flows_in_full(
    scanners: &[Scanner<'_, '_>],
    findings: &[(usize, Finding)],
    in_full: &[usize],
    cures: Vec<Vec<Cure>>,
) -> Result<BTreeMap<usize, InFull>, WalkError> {
    let of = |(index, cures): (&usize, Vec<Cure>)| {
        let (reading, finding) = &findings[*index];
        let (scanner, engine) = (&scanners[*reading], scanners[*reading].engine());
        let (flow, verdicts) = match &finding.example {
            // The rules of a large cluster are not written in full for a single flow.
            Example::Scanned(result) if scanner.is_large() => {
                let asked = ToExplain { result, shown: finding.failure.as_ref() };
                (Some(result.flow()), scanner.explain(asked)?)
            }
            _ => match failing_flow(&FewCalls::new(engine), finding) {
                Some(flow) => {
                    let verdict = engine.verdict_showing(&flow, finding.failure.as_ref())?;
                    // A walk alone does not show what rests on a condition.
                    let verdicts = if verdict.can_fail() {
                        vec![verdict]
                    } else {
                        doubts::cases(engine, &flow)?.verdicts()
                    };
                    (Some(flow), verdicts)
                }
                None => (None, Vec::new()),
            },
        };
        Ok((*index, InFull { flow, verdicts, cures }))
    };
    in_full.iter().zip(cures).map(of).collect()
}

/// Returns the origin of an object.
fn origin_of(engine: &Engine<'_>, object: &ObjectRef) -> Origin {
    let cluster = engine.cluster();
    let found = match object.kind {
        ObjectKind::Node => cluster.nodes.get(&*object.name).map(|node| &node.origin),
        ObjectKind::SecurityGroup => {
            cluster.security_groups.get(&object.name).map(|group| &group.origin)
        }
        _ => None,
    };
    found.cloned().unwrap_or_else(|| engine.origin_of(object))
}
