//! One target: its sketch is walked, a client of each class, or what was found of another
//! target of the same shape is said again.

use std::sync::Arc;

use uturn_model::route::Route;
use uturn_model::{Client, Flow, Outcome, Verdict};
use uturn_netfilter::hash::FastMap;

use crate::census::Census;
use crate::engine::{Cannot, Engine, Fault};
use crate::mini::mini;
use crate::scan::{Atlas, ScanTarget};
use crate::sketch::{Callers, Care, Sketch};

/// The verdicts of each class of clients of a sketch, in its order.
type Answers = Arc<[Arc<[Verdict]>]>;

/// Classes of clients, each with its verdicts.
pub(crate) type Answered<'a> = Vec<(Callers<'a>, Arc<[Verdict]>)>;

/// What came of walking a sketch.
struct Walked<'a> {
    answered: Answered<'a>,
    /// The verdicts of each class of clients that are the same however many equals there are.
    sure: Sure,
    /// Whether every target of the same shape and sizes has the same verdicts.
    is_common: bool,
}

/// For classes of clients in a sketch's order: the verdicts where numbers of equals make no
/// difference.
type Sure = Vec<Option<Arc<[Verdict]>>>;

/// What is known of shapes.
#[derive(Default)]
pub(crate) struct Shapes(FastMap<Vec<u64>, Shape>);

/// What is known of a shape.
enum Shape {
    Known {
        sure: Sure,
        /// By numbers of equals: what is known of all classes.
        sized: FastMap<Vec<u64>, Answers>,
    },
    /// It takes everybody to know.
    NeedsAll,
}

impl<'a> Engine<'a> {
    /// Each class of clients with what becomes of its calls to a target.
    pub(crate) fn answers(
        &self,
        atlas: &mut Atlas<'a>,
        shapes: &mut Shapes,
        target: &ScanTarget,
    ) -> Result<Answered<'a>, Cannot> {
        let scope = self.scope(atlas, target)?;
        let mut care = self.care(atlas, &scope);
        let mut sketch = atlas.sketcher.sketch(scope, care, None);
        if care == Care::Classes {
            let sure = match shapes.0.get(&sketch.shape) {
                Some(Shape::Known { sure, sized }) => {
                    if let Some(known) = sized.get(&sketch.sizes) {
                        return Ok(sketch.callers.into_iter().zip(known.iter().cloned()).collect());
                    }
                    if let Some(known) = sure.iter().cloned().collect::<Option<Vec<_>>>() {
                        return Ok(sketch.callers.into_iter().zip(known).collect());
                    }
                    Some(sure.as_slice())
                }
                Some(Shape::NeedsAll) => None,
                None => Some([].as_slice()),
            };
            if let Some(sure) = sure {
                if let Some(walked) = self.walk(atlas, &sketch, target, care, sure)? {
                    remember(&mut shapes.0, &sketch, &walked);
                    return Ok(walked.answered);
                }
                shapes.0.insert(sketch.shape, Shape::NeedsAll);
            }
            care = Care::EveryNode;
            sketch = atlas.sketcher.sketch(sketch.scope, care, None);
        }
        let walked = self.walk(atlas, &sketch, target, care, &[])?;
        Ok(walked.map(|walked| walked.answered).unwrap_or_default())
    }

    /// Walks a client of each class of which nothing is sure yet; nothing where that does not
    /// settle it.
    fn walk(
        &self,
        atlas: &Atlas<'a>,
        sketch: &Sketch<'a>,
        target: &ScanTarget,
        care: Care,
        sure: &[Option<Arc<[Verdict]>>],
    ) -> Result<Option<Walked<'a>>, Cannot> {
        let census = &atlas.sketcher.census;
        let to = sketch.scope.asked.to.ip();
        let has_captures = census.marks.has_captures;
        if (has_captures && care != Care::Classes) || self.takes_any_source(to) {
            return self.walk_all(self, census, sketch, target, sure);
        }
        let (cluster, weights) = mini(census, sketch);
        let mut engine = Engine::of(&cluster, (care == Care::Classes).then_some(weights));
        if has_captures {
            engine.adopt(self, census);
        }
        engine.keeps_every_way = self.keeps_every_way;
        engine.is_brief = true;
        self.walk_all(&engine, census, sketch, target, sure)
    }

    fn walk_all(
        &self,
        engine: &Engine<'_>,
        census: &Census<'a>,
        sketch: &Sketch<'a>,
        target: &ScanTarget,
        known: &[Option<Arc<[Verdict]>>],
    ) -> Result<Option<Walked<'a>>, Cannot> {
        let asked = sketch.scope.asked.target();
        let line = engine.weights.as_ref().and_then(|weights| weights.line.as_ref());
        let mut answered = Vec::with_capacity(sketch.callers.len());
        let mut sure = Sure::with_capacity(sketch.callers.len());
        let mut is_common = true;
        for (at, callers) in sketch.callers.iter().enumerate() {
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
                line.begin(callers.caller(census));
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
            for (first, part) in callers.told_apart(census, &rounds) {
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
            answered.extend(together(census, parts));
        }
        Ok(Some(Walked { answered, sure, is_common }))
    }
}

fn remember(shapes: &mut FastMap<Vec<u64>, Shape>, sketch: &Sketch<'_>, walked: &Walked<'_>) {
    let shape = shapes.entry(sketch.shape.clone());
    let sure = || walked.sure.clone();
    let shape = shape.or_insert_with(|| Shape::Known { sure: sure(), sized: FastMap::default() });
    if let (Shape::Known { sized, .. }, true) = (shape, walked.is_common) {
        let all = walked.answered.iter().map(|(_, one)| Arc::clone(one));
        sized.insert(sketch.sizes.clone(), all.collect());
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
