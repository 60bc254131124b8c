//! One target: its sketch is walked, a client of each class.

use std::sync::Arc;

use uturn_model::route::Route;
use uturn_model::{Client, Flow, Outcome, Verdict};
use uturn_netfilter::hash::FastMap;

use crate::census::Census;
use crate::engine::{Cannot, Engine, Fault};
use crate::mini::mini;
use crate::scan::ScanTarget;
use crate::sketch::{Callers, Care, Sketch};

/// Classes of clients, each with its verdicts.
pub(crate) type Answered<'a> = Vec<(Callers<'a>, Arc<[Verdict]>)>;

/// For classes of clients in a sketch's order: the verdicts where numbers of equals make no
/// difference.
pub(crate) type Sure = Vec<Option<Arc<[Verdict]>>>;

/// What came of walking a sketch.
pub(crate) struct Walked<'a> {
    pub(crate) answered: Answered<'a>,
    /// The verdicts of each class of clients that are the same however many equals there are.
    pub(crate) sure: Sure,
    /// Whether every target of the same shape and sizes has the same verdicts.
    pub(crate) is_common: bool,
}

/// A target that is to be walked.
pub(crate) struct Errand<'a> {
    pub(crate) target: Arc<ScanTarget>,
    pub(crate) sketch: Sketch<'a>,
    pub(crate) care: Care,
}

/// Walks errands; many do at a time.
pub(crate) struct Walker<'a> {
    pub(crate) census: Arc<Census<'a>>,
    pub(crate) keeps_every_way: bool,
}

impl<'a> Walker<'a> {
    /// Walks a client of each class of which nothing is sure yet, in a small cluster; nothing
    /// where that does not settle it.
    pub(crate) fn walk(
        &self,
        errand: &Errand<'a>,
        sure: &[Option<Arc<[Verdict]>>],
    ) -> Result<Option<Walked<'a>>, Cannot> {
        let (cluster, weights) = mini(&self.census, &errand.sketch);
        let mut engine = Engine::of(&cluster, (errand.care == Care::Classes).then_some(weights));
        engine.adopt(&self.census);
        engine.keeps_every_way = self.keeps_every_way;
        engine.is_brief = true;
        self.walk_in(&engine, errand, sure)
    }

    /// The same, where what is walked is known already.
    pub(crate) fn walk_in(
        &self,
        engine: &Engine<'_>,
        errand: &Errand<'a>,
        known: &[Option<Arc<[Verdict]>>],
    ) -> Result<Option<Walked<'a>>, Cannot> {
        let Errand { target, sketch, .. } = errand;
        let asked = sketch.scope.asked.target();
        let line = engine.weights.as_ref().and_then(|weights| weights.line.as_ref());
        let mut answered = Vec::with_capacity(sketch.drawn.callers.len());
        let mut sure = Sure::with_capacity(sketch.drawn.callers.len());
        let mut is_common = true;
        for (at, callers) in sketch.drawn.callers.iter().enumerate() {
            if let Some(Some(verdicts)) = known.get(at) {
                answered.push((callers.clone(), Arc::clone(verdicts)));
                sure.push(Some(Arc::clone(verdicts)));
                continue;
            }
            let flow = Flow {
                from: Client::Pod(callers.pod.name.clone()),
                to: target.to.clone(),
                protocol: target.protocol,
            };
            let walk = || -> Result<Option<Arc<[Verdict]>>, Cannot> {
                let mut verdict = engine.verdict_at(&flow, &asked)?;
                match engine.fault.take() {
                    Some(Fault::Cannot(why)) => return Err(why),
                    Some(Fault::NeedsAll) => return Ok(None),
                    None => {}
                }
                verdict.supposed = Vec::new();
                verdict.routes.iter_mut().for_each(|route| route.hops = Vec::new());
                Ok(Some([verdict].into()))
            };
            if let Some(line) = line {
                line.begin(callers.caller(&self.census));
            }
            let Some(verdicts) = walk()? else { return Ok(None) };
            let rounds = line.map(|line| line.met.take()).unwrap_or_default();
            let Some(line) = line.filter(|_| !rounds.iter().all(|one| one.ring.is_even())) else {
                let is_sure = verdicts.iter().all(regardless_of_numbers);
                sure.push(is_sure.then(|| Arc::clone(&verdicts)));
                answered.push((callers.clone(), verdicts));
                continue;
            };
            is_common = false;
            sure.push(None);
            let mut parts = Vec::new();
            for (first, part) in callers.told_apart(&self.census, &rounds) {
                let verdicts = match rounds.as_slice() {
                    _ if first == line.walked.get() => Arc::clone(&verdicts),
                    [round] if round.is_all.get() => [round.verdict(first)].into(),
                    _ => {
                        line.speaks_for.set(first);
                        let Some(verdicts) = walk()? else { return Ok(None) };
                        verdicts
                    }
                };
                parts.push((part, verdicts));
            }
            answered.extend(together(&self.census, parts));
        }
        Ok(Some(Walked { answered, sure, is_common }))
    }
}

/// Clients with equal verdicts are one class, wherever they stand in line.
fn together<'a>(census: &Census<'a>, parts: Answered<'a>) -> Answered<'a> {
    let mut places: FastMap<_, usize> = FastMap::default();
    let mut kept: Vec<(Vec<Callers<'a>>, Arc<[Verdict]>)> = Vec::new();
    for (part, verdicts) in parts {
        let all = verdicts.iter().map(|one| {
            let rounded = |(end, share): &(Outcome, f64)| (*end, (share * 1e10).round() as u64);
            let mut outcomes: Vec<_> = one.outcomes.iter().map(rounded).collect();
            outcomes.sort_unstable();
            (outcomes, one.mechanisms.clone())
        });
        let at = *places.entry(all.collect::<Vec<_>>()).or_insert(kept.len());
        match kept.get_mut(at) {
            Some((known, _)) => known.push(part),
            None => kept.push((vec![part], verdicts)),
        }
    }
    let all = kept.into_iter();
    all.filter_map(|(parts, verdicts)| Some((Callers::together(census, parts)?, verdicts)))
        .collect()
}

/// Whether a verdict is the same however many equals there are: all its ways end alike, and
/// at once.
fn regardless_of_numbers(verdict: &Verdict) -> bool {
    let [(outcome, _)] = verdict.outcomes.as_slice() else { return false };
    let same = |route: &Route| route.mechanisms == verdict.mechanisms;
    outcome.after().is_none_or(|after| after.is_zero()) && verdict.routes.iter().all(same)
}
