//! Compares two clusters, call by call.
//!
//! 1. Each cluster is scanned in each reading of what is not known (`flows`).
//! 2. The calls of each pod to each target are compared (`difference`); classes differ between the
//!    two clusters, pods do not.
//! 3. Calls that change alike at one object are one entry (`entries`); the findings of the two
//!    clusters say why, and what helps (`reasons`).

mod difference;
mod entries;
mod flows;
mod objects;
mod readings;
mod reasons;
mod ways;

use std::sync::Arc;

use uturn_diagnose::analysis::{AnalysisError, Detail, MAX_BYTES, Options};
use uturn_diagnose::{Analysis, analyze_knowing};
use uturn_model::{Cluster, ObjectRef, Unjudged};
use uturn_scan::KnownWalks;
use uturn_snapshot::Manifests;

use crate::result::{Comparison, List, NotJudged};
use entries::Found;
use flows::Walked;
use ways::WayWalker;

pub use flows::Flows;
pub use objects::differing;

/// One side of a comparison.
#[derive(Clone, Copy, Debug)]
pub struct State<'s> {
    /// The texts of the cluster, in which cures are tried; empty texts if they do not show the
    /// cluster as it is.
    pub manifests: &'s Manifests,
    /// The cluster.
    pub cluster: &'s Cluster,
}

/// What is compared, and how thoroughly.
#[derive(Clone, Copy, Debug, Default)]
pub struct Scope<'s> {
    /// The only namespace whose targets are compared.
    pub namespace: Option<&'s str>,
    /// The objects that the change deletes on purpose: their callers are not worse off.
    pub deleted: &'s [ObjectRef],
    /// Whether the evidence of findings is computed.
    pub with_evidence: bool,
}

/// Compares two clusters.
///
/// # Errors
/// Returns an error if one of the clusters cannot be analysed.
pub fn compare(
    before: State<'_>,
    after: State<'_>,
    scope: Scope<'_>,
) -> Result<Comparison, AnalysisError> {
    let known = Arc::new(KnownWalks::default());
    let walked = Walked::of(before.cluster, after.cluster, scope.namespace, &known)?;
    let mut ways = WayWalker::new(before.cluster, after.cluster)?;
    let found = Found::of(&walked, before.cluster, after.cluster, scope.deleted, &mut ways);
    let calls = found.calls;
    let mut entries = found.entries();
    let of = |state: State<'_>, tries_cures: bool| {
        let empty = Manifests::default();
        let may_try = tries_cures && state.manifests.bytes() <= MAX_BYTES;
        let manifests = if may_try { state.manifests } else { &empty };
        let detail = if scope.with_evidence { Detail::Evidence } else { Detail::Findings };
        let options = Options { namespace: scope.namespace, detail, ..Options::default() };
        match analyze_knowing(manifests, state.cluster, &options, Some(&known)) {
            // A namespace that has nothing to call on one side has calls on the other.
            Err(AnalysisError::NothingIn { .. }) => Ok(None),
            other => other.map(Some),
        }
    };
    let needs_cures =
        !entries.is_empty() || before.manifests.sources() != after.manifests.sources();
    let (old, new) = (of(before, false)?, of(after, needs_cures)?);
    reasons::explain(&mut entries, old.as_ref(), new.as_ref());
    entries.extend(reasons::unseen(&entries, (before, old.as_ref()), (after, new.as_ref()))?);
    let mut comparison = Comparison {
        not_judged: not_judged(
            unjudged(before.cluster, old.as_ref()),
            unjudged(after.cluster, new.as_ref()),
        ),
        supposed: new.map(|new| new.supposed).unwrap_or_default(),
        calls,
        notes: ways.left_some().then(|| LEFT.to_owned()).into_iter().collect(),
        ..Comparison::default()
    };
    entries::sort(&mut entries);
    for entry in entries {
        match entry.effect.list() {
            List::Worse => comparison.worse.push(entry),
            List::Better => comparison.better.push(entry),
            List::Other => comparison.other.push(entry),
        }
    }
    Ok(comparison)
}

/// Says that calls which end as before were not compared hop by hop.
const LEFT: &str = "of calls that end as before, not all were compared by the way that they take: \
                    there are too many";

fn unjudged(cluster: &Cluster, analysis: Option<&Analysis>) -> Vec<Unjudged> {
    let more = analysis.map(|analysis| analysis.unjudged.as_slice()).unwrap_or_default();
    cluster.unjudged.iter().chain(more).cloned().collect()
}

fn not_judged(before: Vec<Unjudged>, after: Vec<Unjudged>) -> Vec<NotJudged> {
    let mut all: Vec<NotJudged> = after
        .into_iter()
        .map(|unjudged| NotJudged { unjudged, before: false, after: true })
        .collect();
    for old in before {
        match all.iter_mut().find(|own| own.unjudged == old) {
            Some(own) => own.before = true,
            None => all.push(NotJudged { unjudged: old, before: true, after: false }),
        }
    }
    all
}
