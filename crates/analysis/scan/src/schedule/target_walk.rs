//! The walk of one target: a client of each class calls it.

use std::cell::LazyCell;
use std::ops::Deref;
use std::rc::Rc;
use std::sync::Arc;

use uturn_model::route::Route;
use uturn_model::{Client, Cluster, Flow, Outcome, Share, Verdict};
use uturn_netfilter::hash::FastMap;
use uturn_path::{Options, Walk, WalkError};

use crate::clients::without_details;
use crate::failover::outcome_reuse::ReusableOutcome;
use crate::failover::split_by_targets::split_by_targets;
use crate::failover::target_list::TargetList;
use crate::inventory::Inventory;
use crate::known::KnownWalks;
use crate::known::found::FoundForClient;
use crate::known::inputs::{
    AskedKey, Standings, WalkInputs, WalkedClient, WeightsKey, without_versions,
};
use crate::known::memory::TargetMemory;
use crate::partition::target_classes::{ClientSet, Granularity, TargetClasses};
use crate::reduced::reduced_cluster::reduced_cluster;
use crate::reduced::representatives::Representatives;
use crate::targets::ScanTarget;

/// Classes of clients, each with its verdicts: none if its clients have no address of the target's
/// family.
pub(crate) type Answered<'a> = Vec<(ClientSet<'a>, Arc<[Verdict]>)>;

/// The result for a class of clients that holds whatever the number of equal objects.
#[derive(Clone, Debug)]
pub(crate) enum KnownAnswer {
    Nothing,
    Verdicts(Arc<[Verdict]>),
    Reusable(Arc<ReusableOutcome>),
}

/// The known answers of a target's classes of clients, in their order.
pub(crate) type KnownAnswers = Vec<KnownAnswer>;

/// The result of walking a target.
pub(crate) struct Walked<'a> {
    pub(crate) answered: Answered<'a>,
    /// The results that hold whatever the number of equal objects, by class of clients.
    pub(crate) sure: KnownAnswers,
    /// Whether all targets of the same shape and sizes have the same verdicts.
    pub(crate) is_common: bool,
}

/// A target that has to be walked.
pub(crate) struct TargetJob<'a> {
    pub(crate) target: Arc<ScanTarget>,
    pub(crate) target_classes: TargetClasses<'a>,
    pub(crate) granularity: Granularity,
}

impl<'a> TargetJob<'a> {
    /// Returns each class of clients with its verdicts.
    pub(crate) fn answered(&self, verdicts: Vec<Arc<[Verdict]>>) -> Answered<'a> {
        self.target_classes.partition.client_sets.iter().cloned().zip(verdicts).collect()
    }
}

/// Walks jobs. Several threads share one walker.
pub(crate) struct Walker<'a> {
    pub(crate) inventory: Arc<Inventory<'a>>,
    pub(crate) options: Options,
    /// The number of targets that are walked in all.
    pub(crate) among: usize,
    /// The results of walks of former scans.
    pub(crate) known: Option<Arc<KnownWalks>>,
}

/// A class's result that is known without a walk, and whether it holds for all equal targets.
type Settled<'a> = Option<(Answered<'a>, bool)>;

/// The largest number of nodes of a cluster that is kept beside a walk's result: the cluster is
/// kept once for each target.
const MAX_KEPT_NODES: usize = 500;

/// The same limit for ports of Services.
const MAX_KEPT_PORTS: usize = 500;

impl<'a> Walker<'a> {
    /// Walks a client of each class whose verdict is not known yet, in a reduced cluster. Returns
    /// `None` if the reduced cluster is not enough.
    pub(crate) fn walk(
        &self,
        job: &TargetJob<'a>,
        sure: &[KnownAnswer],
    ) -> Result<Option<Walked<'a>>, WalkError> {
        self.walk_each(&[job], sure).pop().unwrap_or(Ok(None))
    }

    /// Walks several targets that have the same reduced cluster.
    pub(crate) fn walk_each(
        &self,
        jobs: &[&TargetJob<'a>],
        sure: &[KnownAnswer],
    ) -> Vec<Result<Option<Walked<'a>>, WalkError>> {
        let known: Vec<_> = jobs.iter().map(|job| self.known_answers(job, sure)).collect();
        let is_open = |(job, known): (_, &Option<_>)| known.is_none().then_some(job);
        let Some(first) = jobs.iter().zip(&known).find_map(is_open) else {
            return known.into_iter().map(Ok).collect();
        };
        let (mut cluster, weights) = reduced_cluster(&self.inventory, &first.target_classes);
        without_versions(&mut cluster);
        let weights = (first.granularity == Granularity::Classes).then_some(weights);
        let representatives = Representatives::new(&self.inventory, &cluster, weights);
        let engine = LazyCell::new(|| representatives.engine(jobs.len(), self.among));
        let walk = LazyCell::new(|| engine.walk(self.options, &representatives));
        let line = representatives.list();
        let one = |(job, known): (&&TargetJob<'a>, Option<Walked<'a>>)| {
            if known.is_some() {
                return Ok(known);
            }
            let settled = self.settled(line, job, sure);
            let memory = self.known.as_deref().filter(|_| self.is_kept(&cluster));
            let memory = memory.map(|known| {
                let inputs = WalkInputs {
                    clients: self.walked_clients(line, job, &settled),
                    cluster: cluster.clone(),
                    weights: representatives.weights().map(WeightsKey::of),
                    asked: AskedKey::of(&job.target_classes.scope.asked),
                    options: self.options,
                };
                TargetMemory::new(known, &job.target, inputs)
            });
            self.walk_in(&walk, line, job, (sure, settled), memory)
        };
        jobs.iter().zip(known).map(one).collect()
    }

    /// Returns whether a reduced cluster is small enough to be kept beside the result of each walk.
    fn is_kept(&self, cluster: &Cluster) -> bool {
        let ports: usize = cluster.services.values().map(|service| service.ports.len()).sum();
        !self.inventory.has_captures()
            && cluster.nodes.len() <= MAX_KEPT_NODES
            && ports <= MAX_KEPT_PORTS
    }

    /// Walks a target in the whole cluster, where each object represents only itself.
    pub(crate) fn walk_whole(
        &self,
        walk: &Walk<'_, '_>,
        job: &TargetJob<'a>,
    ) -> Result<Option<Walked<'a>>, WalkError> {
        let settled = self.settled(None, job, &[]);
        self.walk_in(&walk, None, job, (&[], settled), None)
    }

    /// Returns the results of the classes that are known without a walk.
    fn settled(
        &self,
        line: Option<&TargetList>,
        job: &TargetJob<'a>,
        known: &[KnownAnswer],
    ) -> Vec<Settled<'a>> {
        let client_sets = job.target_classes.partition.client_sets.iter().enumerate();
        client_sets
            .map(|(at, client_set)| self.known_answer(client_set, line, known.get(at)?))
            .collect()
    }

    /// Returns the clients that have to be walked.
    fn walked_clients(
        &self,
        line: Option<&TargetList>,
        job: &TargetJob<'a>,
        settled: &[Settled<'a>],
    ) -> Vec<WalkedClient> {
        let standings = line.map(Standings::of);
        let client_sets = job.target_classes.partition.client_sets.iter().zip(settled);
        let open = client_sets.filter(|(_, settled)| settled.is_none());
        open.map(|(client_set, _)| WalkedClient {
            pod: client_set.pod.name.clone(),
            standing: standings
                .as_ref()
                .map(|standings| standings.at(client_set.walked(&self.inventory)))
                .unwrap_or_default(),
        })
        .collect()
    }

    /// Walks the classes that are not settled.
    fn walk_in<'x, 'y: 'x>(
        &self,
        walk: &impl Deref<Target = Walk<'x, 'y>>,
        line: Option<&TargetList>,
        job: &TargetJob<'a>,
        (known, settled): (&[KnownAnswer], Vec<Settled<'a>>),
        mut memory: Option<TargetMemory<'_>>,
    ) -> Result<Option<Walked<'a>>, WalkError> {
        let TargetJob { target, target_classes, .. } = job;
        let asked = target_classes.scope.asked.target();
        let mut answered = Vec::with_capacity(target_classes.partition.client_sets.len());
        let mut sure = KnownAnswers::with_capacity(target_classes.partition.client_sets.len());
        let mut is_common = true;
        let classes = target_classes.partition.client_sets.iter().enumerate().zip(settled);
        for ((at, client_set), settled) in classes {
            if let Some((answers, is_of_all)) = settled {
                answered.extend(answers);
                is_common &= is_of_all;
                sure.push(known[at].clone());
                continue;
            }
            let flow = Flow {
                from: Client::Pod(client_set.pod.name.clone()),
                to: target.to.clone(),
                protocol: target.protocol,
            };
            let walk_client = || -> Result<Option<Arc<[Verdict]>>, WalkError> {
                let mut verdict = match walk.verdict_at(&flow, &asked) {
                    Err(WalkError::NeedsWhole) => return Ok(None),
                    // No client of the class can call the target.
                    Err(WalkError::NoAddress(..)) => return Ok(Some([].into())),
                    verdict => verdict?,
                };
                without_details(&mut verdict);
                Ok(Some([verdict].into()))
            };
            let caller = client_set.walked(&self.inventory);
            if let Some(line) = line {
                line.begin(caller);
            }
            let found = match memory.as_mut().and_then(TargetMemory::next) {
                Some(found) => {
                    let rounds = found.rounds(line, caller);
                    (found.verdicts, rounds, found.are_probes_certain)
                }
                None => {
                    let Some(verdicts) = walk_client()? else { return Ok(None) };
                    let rounds = line.map(|line| line.met.take()).unwrap_or_default();
                    let is_certain = line.is_some() && walk.are_probes_certain();
                    if let Some(memory) = &mut memory {
                        memory.add(FoundForClient::of(&verdicts, &rounds, line, is_certain));
                    }
                    (verdicts, rounds, is_certain)
                }
            };
            let (verdicts, rounds, is_certain) = found;
            let is_sure = verdicts.iter().all(regardless_of_numbers);
            let reusable = || line.and_then(|line| ReusableOutcome::of(is_certain, line, &rounds));
            let Some(line) = line.filter(|_| !rounds.iter().all(|round| round.ring.is_even()))
            else {
                sure.push(if is_sure {
                    KnownAnswer::Verdicts(Arc::clone(&verdicts))
                } else {
                    KnownAnswer::from_outcome(reusable())
                });
                answered.push((client_set.clone(), verdicts));
                continue;
            };
            is_common = false;
            sure.push(KnownAnswer::from_outcome(reusable()));
            let mut parts = Vec::new();
            for (first, part) in split_by_targets(client_set, &self.inventory, &rounds) {
                let verdicts = match rounds.as_slice() {
                    _ if first == caller => Arc::clone(&verdicts),
                    [round] if round.is_all.get() => [round.verdict(first)].into(),
                    _ => {
                        line.speaks_for.set(first);
                        let part = (at, Standings::of(line).at(first));
                        match memory.as_ref().and_then(|memory| memory.part(part)) {
                            Some(known) => known,
                            None => {
                                let Some(verdicts) = walk_client()? else { return Ok(None) };
                                if let Some(memory) = &mut memory {
                                    memory.add_part(part, &verdicts);
                                }
                                verdicts
                            }
                        }
                    }
                };
                parts.push((part, verdicts));
            }
            answered.extend(together(&self.inventory, parts));
        }
        if let Some(memory) = memory {
            memory.keep();
        }
        Ok(Some(Walked { answered, sure, is_common }))
    }

    /// Returns the results of all classes, if no client has to be walked.
    fn known_answers(&self, job: &TargetJob<'a>, known: &[KnownAnswer]) -> Option<Walked<'a>> {
        let client_sets = &job.target_classes.partition.client_sets;
        let is_known = |answer: &KnownAnswer| !matches!(answer, KnownAnswer::Nothing);
        if known.len() != client_sets.len() || !known.iter().all(is_known) {
            return None;
        }
        let behind = job.target_classes.scope.tries_again();
        let line =
            behind.map(|behind| TargetList::new(&self.inventory, &job.target_classes, behind));
        let mut answered = Vec::with_capacity(client_sets.len());
        let mut is_common = true;
        for (client_set, known) in client_sets.iter().zip(known) {
            let (answers, is_of_all) = self.known_answer(client_set, line.as_ref(), known)?;
            answered.extend(answers);
            is_common &= is_of_all;
        }
        Some(Walked { answered, sure: known.to_vec(), is_common })
    }

    /// Returns the known result of a class, and whether it holds for all equal targets.
    fn known_answer(
        &self,
        client_set: &ClientSet<'a>,
        line: Option<&TargetList>,
        known: &KnownAnswer,
    ) -> Option<(Answered<'a>, bool)> {
        let reusable = match known {
            KnownAnswer::Nothing => return None,
            KnownAnswer::Verdicts(verdicts) => {
                return Some((vec![(client_set.clone(), Arc::clone(verdicts))], true));
            }
            KnownAnswer::Reusable(reusable) => reusable,
        };
        let caller = client_set.walked(&self.inventory);
        let round = reusable.round(line?, caller)?;
        if round.ring.is_even() {
            return Some((vec![(client_set.clone(), [round.verdict(caller)].into())], true));
        }
        let rounds = [Rc::new(round)];
        let parts = split_by_targets(client_set, &self.inventory, &rounds).into_iter();
        let parts = parts.map(|(first, part)| (part, [rounds[0].verdict(first)].into()));
        Some((together(&self.inventory, parts.collect()), false))
    }
}

impl KnownAnswer {
    fn from_outcome(reusable: Option<ReusableOutcome>) -> Self {
        reusable.map_or(Self::Nothing, |reusable| Self::Reusable(Arc::new(reusable)))
    }
}

/// Merges clients with equal verdicts into one class, whatever their order.
fn together<'a>(inventory: &Inventory<'a>, parts: Answered<'a>) -> Answered<'a> {
    let mut places: FastMap<_, usize> = FastMap::default();
    let mut kept: Vec<(Vec<ClientSet<'a>>, Arc<[Verdict]>)> = Vec::new();
    for (part, verdicts) in parts {
        let all = verdicts.iter().map(|verdict| {
            let rounded =
                |(end, share): &(Outcome, Share)| (*end, (share.get() * 1e10).round() as u64);
            let mut outcomes: Vec<_> = verdict.outcomes.iter().map(rounded).collect();
            outcomes.sort_unstable();
            (outcomes, verdict.mechanisms.clone())
        });
        let at = *places.entry(all.collect::<Vec<_>>()).or_insert(kept.len());
        match kept.get_mut(at) {
            Some((known, _)) => known.push(part),
            None => kept.push((vec![part], verdicts)),
        }
    }
    let all = kept.into_iter();
    all.filter_map(|(parts, verdicts)| Some((ClientSet::together(inventory, parts)?, verdicts)))
        .collect()
}

/// Returns whether a verdict holds whatever the number of equal objects: all its ways end alike,
/// without delay.
fn regardless_of_numbers(verdict: &Verdict) -> bool {
    let [(outcome, _)] = verdict.outcomes.as_slice() else { return false };
    let same = |route: &Route| route.mechanisms == verdict.mechanisms;
    outcome.after().is_none_or(|after| after.is_zero()) && verdict.routes.iter().all(same)
}
