//! Classifies all targets of a scan one after the other, and walks them in parallel.
//!
//! The first target of each shape is walked as soon as it is classified. Its result also holds for
//! the others of that shape, as far as it does not depend on how many nodes and pods are equal. For
//! the rest, targets of the same sizes are walked once.

mod batches;
pub(crate) mod target_walk;

use std::sync::Arc;

use uturn_model::Verdict;
use uturn_netfilter::hash::FastMap;
use uturn_path::{Detail, Engine, Individuals, Options, WalkError};

use crate::known::KnownWalks;
use crate::parallel::side_by_side;
use crate::partition::target_classes::Granularity;
use crate::prepared::PreparedScan;
use crate::schedule::batches::Batches;
use crate::schedule::target_walk::{
    Answered, KnownAnswer, KnownAnswers, TargetJob, Walked, Walker,
};
use crate::targets::ScanTarget;

/// The result of a job.
type Answer<'a> = Result<Answered<'a>, WalkError>;

/// A job and its place among the targets.
type Placed<'a> = (usize, TargetJob<'a>);

/// The first job of a shape, and the number of the shape; `None` for a job without equals.
type First<'a> = (Option<usize>, Placed<'a>);

/// The result of walking a job; `None` if classes do not settle it.
type Found<'a> = Result<Option<Walked<'a>>, WalkError>;

/// The results of all targets so far.
struct TargetJobs<'a> {
    answers: Vec<Option<Answer<'a>>>,
    alike: Vec<AlikeTargets<'a>>,
    /// The jobs that classes do not settle.
    unsettled: Vec<Placed<'a>>,
}

/// Targets of one shape, the first of which is being walked.
#[derive(Default)]
struct AlikeTargets<'a> {
    others: Vec<Placed<'a>>,
    /// The sizes of the first.
    sizes: Vec<u64>,
    sure: KnownAnswers,
    /// The verdicts of each class of the first, if all targets of the same sizes have them.
    common: Option<Vec<Arc<[Verdict]>>>,
    needs_all: bool,
}

/// Returns the classes of clients of each target, with their verdicts.
///
/// # Errors
/// Returns an error if a target does not exist, or a flow towards it cannot be walked.
pub(crate) fn walk_all<'a>(
    engine: &Engine<'a>,
    prepared: &mut PreparedScan<'a>,
    targets: &[Arc<ScanTarget>],
    known: Option<&Arc<KnownWalks>>,
) -> Result<Vec<Answered<'a>>, WalkError> {
    let walker = Walker {
        inventory: Arc::clone(&prepared.classifier.inventory),
        options: Options { detail: Detail::Brief, ..engine.options() },
        among: targets.len(),
        known: known.cloned(),
    };
    let mut jobs = TargetJobs {
        answers: targets.iter().map(|_| None).collect(),
        alike: Vec::new(),
        unsettled: Vec::new(),
    };
    jobs.walk_firsts(engine, prepared, &walker, targets);
    jobs.walk_others(&walker);
    jobs.walk_unsettled(engine, prepared, &walker);
    prepared.forget();
    // The targets after the first that cannot be walked are not walked.
    jobs.answers.into_iter().flatten().collect()
}

fn job<'a>(
    engine: &Engine<'a>,
    prepared: &mut PreparedScan<'a>,
    target: &Arc<ScanTarget>,
) -> Result<TargetJob<'a>, WalkError> {
    let scope = prepared.scope(engine, target.called())?;
    let granularity = prepared.granularity(&scope);
    let target_classes = prepared.classifier.classify(scope, granularity, None);
    Ok(TargetJob { target: Arc::clone(target), target_classes, granularity })
}

/// Walks a target in the whole cluster, where each object represents only itself.
fn walk_whole<'a>(
    engine: &Engine<'a>,
    walker: &Walker<'a>,
    job: &TargetJob<'a>,
) -> Result<Answered<'a>, WalkError> {
    let walk = engine.walk(walker.options, &Individuals);
    walker.walk_whole(&walk, job).map(all_of)
}

impl<'a> TargetJobs<'a> {
    /// Classifies all targets. Meanwhile, walks the first of each shape and those without equals.
    fn walk_firsts(
        &mut self,
        engine: &Engine<'a>,
        prepared: &mut PreparedScan<'a>,
        walker: &Walker<'a>,
        targets: &[Arc<ScanTarget>],
    ) {
        let mut shapes: FastMap<Vec<u64>, usize> = FastMap::default();
        let mut batches = Batches::default();
        let classify_all = |walk: &mut dyn FnMut(Vec<First<'a>>)| {
            for (at, target) in targets.iter().enumerate() {
                let mut job = match job(engine, prepared, target) {
                    Ok(job) => job,
                    Err(why) => {
                        self.answers[at] = Some(Err(why));
                        break;
                    }
                };
                if prepared.walks_whole(&job.target_classes.scope, job.granularity) {
                    self.answers[at] = Some(walk_whole(engine, walker, &job));
                } else if job.granularity != Granularity::Classes {
                    walk(vec![(None, (at, job))]);
                } else {
                    let shape = std::mem::take(&mut job.target_classes.shape);
                    let number = *shapes.entry(shape).or_insert(self.alike.len());
                    match self.alike.get_mut(number) {
                        Some(known) => known.others.push((at, job)),
                        None => {
                            let sizes = job.target_classes.partition.sizes.clone();
                            self.alike.push(AlikeTargets { sizes, ..AlikeTargets::default() });
                            batches.add((Some(number), (at, job)), walk);
                        }
                    }
                }
            }
            batches.hand_out(walk);
        };
        let firsts = side_by_side(classify_all, |batch: Vec<First<'a>>| {
            let jobs: Vec<&TargetJob<'a>> = batch.iter().map(|(_, (_, job))| job).collect();
            let found = walker.walk_each(&jobs, &[]);
            batch.into_iter().zip(found).collect::<Vec<_>>()
        });
        for ((number, (at, job)), found) in firsts.into_iter().flatten() {
            match (found, number) {
                (Err(why), _) => self.answers[at] = Some(Err(why)),
                (Ok(walked), None) => self.answers[at] = Some(Ok(all_of(walked))),
                (Ok(None), Some(number)) => {
                    self.alike[number].needs_all = true;
                    self.unsettled.push((at, job));
                }
                (Ok(Some(walked)), Some(number)) => {
                    self.alike[number].learn(&walked);
                    self.answers[at] = Some(Ok(walked.answered));
                }
            }
        }
    }

    /// Answers the other jobs of each shape with known results, and walks the rest.
    fn walk_others(&mut self, walker: &Walker<'a>) {
        let mut batches: Vec<(usize, Vec<Placed<'a>>)> = Vec::new();
        for (number, shape) in self.alike.iter_mut().enumerate() {
            let others = std::mem::take(&mut shape.others);
            if shape.needs_all {
                self.unsettled.extend(others);
                continue;
            }
            let mut sized: FastMap<Vec<u64>, usize> = FastMap::default();
            for (at, job) in others {
                if let Some(known) = shape.known(&job) {
                    self.answers[at] = Some(Ok(job.answered(known)));
                    continue;
                }
                let sizes = job.target_classes.partition.sizes.clone();
                let batch = *sized.entry(sizes).or_insert(batches.len());
                match batches.get_mut(batch) {
                    Some((_, batch)) => batch.push((at, job)),
                    None => batches.push((number, vec![(at, job)])),
                }
            }
        }
        let alike = &self.alike;
        let found = side_by_side(
            |walk| batches.into_iter().for_each(walk),
            |(number, batch)| walker.walk_alike(&alike[number].sure, batch),
        );
        for ((at, job), found) in found.into_iter().flatten() {
            match found {
                Err(why) => self.answers[at] = Some(Err(why)),
                Ok(Some(answered)) => self.answers[at] = Some(Ok(answered)),
                Ok(None) => self.unsettled.push((at, job)),
            }
        }
    }

    /// Walks targets that classes do not settle, with every node by itself.
    fn walk_unsettled(
        &mut self,
        engine: &Engine<'a>,
        prepared: &mut PreparedScan<'a>,
        walker: &Walker<'a>,
    ) {
        let unsettled = std::mem::take(&mut self.unsettled);
        let classify_again = |walk: &mut dyn FnMut(Placed<'a>)| {
            for (at, TargetJob { target, target_classes, .. }) in unsettled {
                // Captured rules may lead to endpoints of any Service, so any pod may be one.
                let granularity = if prepared.classifier.inventory.has_captures() {
                    Granularity::EveryPod
                } else {
                    Granularity::EveryNode
                };
                let target_classes =
                    prepared.classifier.classify(target_classes.scope, granularity, None);
                let job = TargetJob { target, target_classes, granularity };
                if prepared.walks_whole(&job.target_classes.scope, job.granularity) {
                    self.answers[at] = Some(walk_whole(engine, walker, &job));
                } else {
                    walk((at, job));
                }
            }
        };
        let walk = |(at, job): Placed<'a>| (at, walker.walk(&job, &[]));
        for (at, found) in side_by_side(classify_again, walk) {
            self.answers[at] = Some(found.map(all_of));
        }
    }
}

impl<'a> AlikeTargets<'a> {
    /// Learns from the walk of the first target what holds for all others.
    fn learn(&mut self, first: &Walked<'a>) {
        let all = || first.answered.iter().map(|(_, verdict)| Arc::clone(verdict)).collect();
        self.common = first.is_common.then(all);
        self.sure.clone_from(&first.sure);
    }

    /// Returns the verdicts of another target's classes, if they are known without a walk.
    fn known(&self, other: &TargetJob<'a>) -> Option<Vec<Arc<[Verdict]>>> {
        let of_first =
            self.common.as_ref().filter(|_| other.target_classes.partition.sizes == self.sizes);
        let verdicts = |known: &KnownAnswer| match known {
            KnownAnswer::Verdicts(verdicts) => Some(Arc::clone(verdicts)),
            KnownAnswer::Nothing | KnownAnswer::Reusable(_) => None,
        };
        of_first.cloned().or_else(|| self.sure.iter().map(verdicts).collect())
    }
}

impl<'a> Walker<'a> {
    /// Walks targets of one shape and the same sizes.
    fn walk_alike(
        &self,
        sure: &KnownAnswers,
        batch: Vec<Placed<'a>>,
    ) -> Vec<(Placed<'a>, Result<Option<Answered<'a>>, WalkError>)> {
        let mut common: Option<Vec<Arc<[Verdict]>>> = None;
        let walk = |(at, job): Placed<'a>| {
            if let Some(known) = &common {
                let answered = job.answered(known.clone());
                return ((at, job), Ok(Some(answered)));
            }
            let found: Found<'a> = self.walk(&job, sure);
            if let Ok(Some(walked)) = &found
                && walked.is_common
            {
                common =
                    Some(walked.answered.iter().map(|(_, verdict)| Arc::clone(verdict)).collect());
            }
            ((at, job), found.map(|walked| walked.map(|walked| walked.answered)))
        };
        batch.into_iter().map(walk).collect()
    }
}

fn all_of(walked: Option<Walked<'_>>) -> Answered<'_> {
    walked.map(|walked| walked.answered).unwrap_or_default()
}
