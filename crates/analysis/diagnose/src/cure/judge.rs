//! Tries a proposal on a copy of the cluster.

use std::cell::{Cell, OnceCell, RefCell};
use std::collections::VecDeque;
use std::net::IpAddr;
use std::rc::Rc;
use std::sync::Arc;

use uturn_document::edit::{Change, Tree};
use uturn_model::{Cluster, Flow, ObjectRef};
use uturn_path::{Engine, KernelCounts, WalkError};
use uturn_scan::{FewCalls, KnownWalks, ScanResult};
use uturn_snapshot::manifests::{Draft, Edit};
use uturn_snapshot::{Fault, Manifests};

use super::case::{OtherClient, case_state};
use super::comparison::{AllFlows, Footprints, GivenUp};
use super::diff::{AROUND, of_excerpt};
use super::facts::{document, facts};
use super::{Case, CaseState, Cure, Proposal, Subject, fault, way};
use crate::find::written;
use crate::{Code, Finding, Severity};

/// The cluster without edits. Cures are tried on edited copies of it and compared with it.
pub struct TrialBase<'a> {
    manifests: &'a Manifests,
    calls: FewCalls<'a, 'a>,
    footprints: OnceCell<Footprints>,
    /// The results of a scan of all targets in the first reading of unknown facts.
    scanned: OnceCell<Vec<ScanResult>>,
    all_flows: OnceCell<Result<Vec<AllFlows>, WalkError>>,
    /// The faults that objects show without a call.
    faults: OnceCell<Result<Vec<Finding>, WalkError>>,
    /// The copies made so far, since many findings are cured by the same edits.
    copies: RefCell<Vec<Rc<Edited>>>,
    /// The results of walks of former scans. Most calls meet nothing that a trial has edited.
    known: Arc<KnownWalks>,
    /// The work that trials have taken so far, as [`Self::work_of_a_trial`] counts it.
    work: Cell<usize>,
    /// The number of trials that were begun.
    trials: Cell<usize>,
    /// The kernels of the trial whose kernels had the most entries.
    kernels: Cell<KernelCounts>,
    max_work: usize,
}

/// The maximum work of all trials of one cluster together, in bytes of texts that are read again.
/// The first trial is made in any case.
const MAX_WORK: usize = 1 << 30;

/// The work of editing and reading a text, in readings of the text.
const READINGS: usize = 2;

/// The part of the work of reading a text that is left if its objects are decoded already.
const DECODED: usize = 16;

/// The work of walking a class of clients to a target, in bytes that could be read in that time.
const WALK: usize = 16 << 10;

/// The work of evaluating a rule, in bytes that could be read in that time.
const RULE: usize = 16;

/// The maximum number of faults of objects that are taken for the cause of one failure.
const MAX_FAULTS: usize = 5;

/// The maximum size of a trial's texts that are kept with the cure, in bytes.
const MAX_TRIED: usize = 4 << 20;

/// The approximate maximum memory of the kept copies, in bytes.
const MAX_KEPT: usize = 32 << 20;

/// The approximate memory of a walk's result, in bytes.
const KEPT_OF_WALK: usize = 1 << 10;

/// A copy of the cluster with edits.
struct Edited {
    /// The proposal that makes the edits.
    proposal: Proposal,
    diffs: Vec<String>,
    objects: Vec<(ObjectRef, Tree)>,
    /// The texts; `None` if they are too long to be kept.
    manifests: Option<Manifests>,
    cluster: Cluster,
    all_flows: OnceCell<Result<Vec<AllFlows>, WalkError>>,
}

impl Edited {
    fn of(manifests: &Manifests, proposal: &Proposal) -> Result<Self, String> {
        let mut draft = Draft::new(manifests);
        let mut objects = Vec::new();
        for (file, object, tree) in &proposal.objects {
            draft.add(file, tree);
            objects.push((object.clone(), tree.clone()));
        }
        draft.edit(&proposal.edits).map_err(|why| format!("not written here: {why}"))?;
        for edit in &proposal.edits {
            if objects.iter().all(|(object, _)| *object != edit.object)
                && let Some(tree) = draft.object(&edit.object)
            {
                objects.push((edit.object.clone(), tree));
            }
        }
        let excerpts = draft.excerpts(AROUND);
        let diffs = excerpts.iter().map(of_excerpt).filter(|diff| !diff.is_empty()).collect();
        draft.edit(&proposal.follows).map_err(|why| why.to_string())?;
        // What an outside name leads to is among Facts, which all texts may have.
        let reading = manifests.reading().filter(|_| proposal.resolves.is_empty());
        let decoded = reading.map(|reading| reading.cluster(&draft)).transpose();
        let decoded = decoded.map_err(|why| unreadable(&[why]))?.flatten();
        let (manifests, cluster) = match decoded {
            Some(cluster) => {
                let is_kept = manifests.bytes() <= MAX_TRIED;
                (is_kept.then(|| draft.into_manifests()), cluster)
            }
            None => {
                let mut all = draft.into_manifests();
                for (name, address) in &proposal.resolves {
                    all = leads_to(&all, name, *address)?;
                }
                let kept = (all.bytes() <= MAX_TRIED).then(|| all.clone());
                (kept, all.into_cluster().map_err(|faults| unreadable(&faults))?)
            }
        };
        let proposal = proposal.clone();
        Ok(Self { proposal, diffs, objects, manifests, cluster, all_flows: OnceCell::new() })
    }
}

fn unreadable(faults: &[Fault]) -> String {
    let first = faults.first().map_or_else(String::new, ToString::to_string);
    format!("the edited manifests cannot be read: {first}")
}

/// Returns the texts with Facts that a name resolves to an address.
fn leads_to(all: &Manifests, name: &str, address: IpAddr) -> Result<Manifests, String> {
    let address = Tree::text(address.to_string());
    if all.has(&facts()) {
        let path = way!["dns", "outside", name];
        let edit = Edit { object: facts(), path, change: Change::Set(address) };
        return all.edited(&[edit]).map_err(|why| why.to_string());
    }
    let outside = Tree::Map(vec![(name.to_owned(), address)]);
    let stated = document(Tree::map([("dns", Tree::map([("outside", outside)]))]));
    Ok(all.with_object("names.yaml", &stated))
}

impl<'a> TrialBase<'a> {
    /// Creates the base from a cluster and the texts from which it was read.
    pub fn new(manifests: &'a Manifests, engine: &'a Engine<'a>) -> Self {
        Self {
            manifests,
            calls: FewCalls::new(engine),
            footprints: OnceCell::new(),
            scanned: OnceCell::new(),
            all_flows: OnceCell::new(),
            faults: OnceCell::new(),
            copies: RefCell::default(),
            known: Arc::default(),
            work: Cell::new(0),
            trials: Cell::new(0),
            kernels: Cell::default(),
            max_work: MAX_WORK,
        }
    }

    /// Sets the results of walks of former scans.
    #[must_use]
    pub fn knowing(self, known: Option<&Arc<KnownWalks>>) -> Self {
        let known = known.cloned().unwrap_or(self.known);
        Self { calls: FewCalls::new(self.calls.engine()).knowing(Some(&known)), known, ..self }
    }

    /// Returns the results of walks that trials share.
    pub fn known(&self) -> &Arc<KnownWalks> {
        &self.known
    }

    /// Keeps the results of a scan of all targets of the cluster, so that it is not scanned again.
    pub fn keep_scan(&self, scanned: Vec<ScanResult>) {
        // Other scans of the cluster have the same results.
        let _ = self.scanned.set(scanned);
    }

    /// Sets another limit of the work that all trials may take together, as
    /// [`Self::work_of_a_trial`] counts it.
    #[must_use]
    pub fn limited_to(self, max_work: usize) -> Self {
        Self { max_work, ..self }
    }

    /// Returns the texts from which the cluster was read.
    pub fn manifests(&self) -> &'a Manifests {
        self.manifests
    }

    /// Returns the engine over the cluster.
    pub fn engine(&self) -> &'a Engine<'a> {
        self.calls.engine()
    }

    /// Returns what walks single calls of the cluster.
    pub fn calls(&self) -> &FewCalls<'a, 'a> {
        &self.calls
    }

    /// Returns the kernels of the trial whose kernels had the most entries.
    pub fn kernels(&self) -> KernelCounts {
        self.kernels.get()
    }

    fn note_kernels(&self, of: KernelCounts) {
        if of.entries > self.kernels.get().entries {
            self.kernels.set(of);
        }
    }

    /// Returns the state of a case, which takes a few calls that meet the rules of a few Services.
    fn state_of(&self, calls: &FewCalls<'_, '_>, subject: &Subject) -> Result<CaseState, NotCured> {
        self.count(0)?;
        let done = calls.work_done();
        let state = state_of(calls, subject);
        self.note_kernels(calls.kernels());
        let rules = usize::try_from(calls.work_done() - done).unwrap_or(usize::MAX);
        self.work.set(self.work.get().saturating_add(rules.saturating_mul(RULE)));
        Ok(state?)
    }

    fn faults(&self) -> Result<&[Finding], String> {
        let all = self.faults.get_or_init(|| written(self.calls.met()));
        all.as_deref().map_err(ToString::to_string)
    }

    /// Returns the faults of objects that a case is about, or that may be the cause of its failure.
    pub(super) fn faults_of(&self, case: &Case<'_>) -> Vec<&Finding> {
        let all = self.faults().unwrap_or_default();
        let own = all.iter().filter(|finding| fault::is_of_case(case, finding));
        own.take(MAX_FAULTS).collect()
    }

    fn all_flows(&self) -> Result<&[AllFlows], String> {
        let all = self.all_flows.get_or_init(|| {
            AllFlows::of_readings(&self.calls, self.scanned.get().cloned(), &self.known)
        });
        all.as_deref().map_err(ToString::to_string)
    }

    /// Returns the work of a trial: it reads all texts again, and walks all calls in each reading
    /// of unknown facts.
    pub fn work_of_a_trial(&self) -> usize {
        self.work_of_reading() + self.work_of_walks()
    }

    /// Returns how often a trial reads and walks. With captures of nodes, it also does so without
    /// them.
    fn times(&self) -> usize {
        if self.manifests.has_captures() { 2 } else { 1 }
    }

    fn work_of_reading(&self) -> usize {
        let readings = self.times() * READINGS * self.manifests.bytes();
        if self.manifests.reading().is_some() { readings / DECODED } else { readings }
    }

    fn work_of_walks(&self) -> usize {
        self.times() * WALK * self.walks()
    }

    fn walks(&self) -> usize {
        self.all_flows().map_or(0, |all| all.iter().map(AllFlows::walks).sum())
    }

    /// Returns the approximate memory of a kept copy.
    fn kept_bytes(&self) -> usize {
        self.manifests.bytes() + KEPT_OF_WALK * self.walks()
    }

    /// Counts work of a trial. Returns an error if the work would exceed the limit.
    fn count(&self, more: usize) -> Result<(), NotCured> {
        let used = self.work.get();
        if self.trials.get() > 1 && used.saturating_add(more) > self.max_work {
            return Err(NotCured::Untried(format!(
                "a trial reads all {} bytes of the manifests again and walks all their calls, and \
                 earlier trials used up all the work that trials may take: give uturn cure fewer \
                 manifests",
                self.manifests.bytes()
            )));
        }
        self.work.set(used.saturating_add(more));
        Ok(())
    }

    /// Counts walks that were made.
    fn count_walks(&self, walks: usize) {
        let more = self.times().saturating_mul(WALK).saturating_mul(walks);
        self.work.set(self.work.get().saturating_add(more));
    }

    /// Returns a copy of the cluster with the proposed edits.
    fn copy(&self, proposal: &Proposal) -> Result<Rc<Edited>, NotCured> {
        let known =
            self.copies.borrow().iter().find(|copy| copy.proposal.has_edits_of(proposal)).cloned();
        if let Some(known) = known {
            return Ok(known);
        }
        self.trials.set(self.trials.get() + 1);
        self.count(self.work_of_reading())?;
        let new = Rc::new(Edited::of(self.manifests, proposal).map_err(NotCured::Refused)?);
        let mut copies = self.copies.borrow_mut();
        if (copies.len() + 1) * self.kept_bytes() <= MAX_KEPT {
            copies.push(Rc::clone(&new));
        }
        Ok(new)
    }
}

/// The reason why a proposal is not offered.
#[derive(Clone)]
enum NotCured {
    /// The proposal does not help here, or harms.
    Refused(String),
    /// There is no work left to try the proposal.
    Untried(String),
}

impl From<String> for NotCured {
    fn from(why: String) -> Self {
        Self::Refused(why)
    }
}

/// A copy of the cluster with edits, and what walks its calls.
struct Copied<'t> {
    edited: &'t Edited,
    calls: FewCalls<'t, 't>,
}

/// Tries proposals, each for the case with its number, in the given order. Proposals with the same
/// edits are tried one after the other on one copy. When `enough` cures of a case work, the others
/// are not tried. Returns the cures of each case, without guesses that do not help.
pub(super) fn judge_each(
    base: &TrialBase<'_>,
    cases: &[&Case<'_>],
    proposals: Vec<(usize, Proposal)>,
    enough: usize,
) -> Vec<Vec<Cure>> {
    let mut all: Vec<Vec<Cure>> = cases.iter().map(|_| Vec::new()).collect();
    let mut left = VecDeque::from(proposals);
    while let Some(first) = left.pop_front() {
        let works = all[first.0].iter().filter(|cure| cure.is_offered()).count();
        if works >= enough && first.1.failing().is_none() {
            if !first.1.is_trial {
                let mut cure = untried(cases[first.0], &first.1);
                cure.refused = Some("not tried: another one works".to_owned());
                cure.is_untried = true;
                all[first.0].push(cure);
            }
            continue;
        }
        let is_same = |(_, other): &(usize, Proposal)| {
            first.1.changes_objects() && first.1.has_edits_of(other)
        };
        let (same, others): (Vec<_>, Vec<_>) = left.into_iter().partition(is_same);
        left = others.into();
        let group: Vec<(usize, Proposal)> = std::iter::once(first).chain(same).collect();
        let mut judge = |on: &Result<Option<Copied<'_>>, NotCured>| {
            for (number, proposal) in &group {
                all[*number].extend(judge(base, on, cases[*number], proposal));
            }
        };
        let (_, proposal) = &group[0];
        if !proposal.changes_objects() || group.iter().all(|(_, own)| own.failing().is_some()) {
            judge(&Ok(None));
            continue;
        }
        let edited = match base.copy(proposal) {
            Ok(edited) => edited,
            Err(why) => {
                judge(&Err(why));
                continue;
            }
        };
        match Engine::new(&edited.cluster) {
            Ok(engine) => {
                let calls = FewCalls::new(&engine).knowing(Some(&base.known));
                judge(&Ok(Some(Copied { edited: &edited, calls })));
            }
            Err(why) => {
                let first = why.first().map_or_else(String::new, ToString::to_string);
                judge(&Err(NotCured::Refused(first)));
            }
        }
    }
    all
}

/// Returns a proposal as a cure, before it is tried.
fn untried(case: &Case<'_>, proposal: &Proposal) -> Cure {
    Cure {
        name: proposal.name,
        title: proposal.title.clone(),
        rank: proposal.rank,
        conditions: proposal.conditions.clone(),
        effects: proposal.effects.clone(),
        commands: proposal.commands.clone(),
        diffs: Vec::new(),
        objects: Vec::new(),
        tried: None,
        before: case.before.clone(),
        after: None,
        unhelped: Vec::new(),
        refused: None,
        is_untried: false,
    }
}

/// Tries a proposal. Returns `None` if it is a guess that does not help.
fn judge(
    base: &TrialBase<'_>,
    on: &Result<Option<Copied<'_>>, NotCured>,
    case: &Case<'_>,
    proposal: &Proposal,
) -> Option<Cure> {
    let is_trial = proposal.is_trial;
    let mut cure = untried(case, proposal);
    cure.refused = match proposal.failing() {
        Some(condition) => Some(format!("needs: {}; {}", condition.what, condition.because)),
        None => match attempt(base, on, (case, proposal), &mut cure) {
            Ok(()) => None,
            Err(NotCured::Refused(why)) => Some(why),
            Err(NotCured::Untried(why)) => {
                // A proposal that helps one call may still harm others, so it is not offered.
                (cure.after, cure.tried) = (None, None);
                (cure.diffs, cure.objects) = (Vec::new(), Vec::new());
                cure.is_untried = true;
                Some(format!("not tried: {why}"))
            }
        },
    };
    let helps = cure.after.as_ref().is_some_and(|after| after.is_better_than(&cure.before));
    (cure.is_offered() || cure.is_untried || !is_trial || helps).then_some(cure)
}

fn attempt(
    base: &TrialBase<'_>,
    on: &Result<Option<Copied<'_>>, NotCured>,
    (case, proposal): (&Case<'_>, &Proposal),
    cure: &mut Cure,
) -> Result<(), NotCured> {
    let wanted = match (&proposal.then, proposal.then_checks, &case.subject) {
        (Some(_), _, subject @ Subject::Object(..)) if !proposal.edits.is_empty() => {
            subject.clone()
        }
        (Some(flow), ..) => Subject::Flow(flow.clone()),
        (None, Some(listener), Subject::Probes(_, protocol)) => {
            Subject::Probes(listener, *protocol)
        }
        (None, _, subject) => subject.clone(),
    };
    let Some(Copied { edited: copy, calls }) = on.as_ref().map_err(Clone::clone)? else {
        let after = base.state_of(&base.calls, &wanted)?;
        confirm(case, proposal, cure, after)?;
        cure.unhelped = unhelped(base, case, proposal, &base.calls);
        return Ok(());
    };
    cure.diffs.clone_from(&copy.diffs);
    cure.objects.clone_from(&copy.objects);
    cure.tried.clone_from(&copy.manifests);
    let after = match &wanted {
        Subject::Object(code, object) => without_new_faults(base, calls, (*code, object))?,
        Subject::Flow(_) | Subject::Probes(..) => base.state_of(calls, &wanted)?,
    };
    confirm(case, proposal, cure, after)?;
    if let (Subject::Object(..), Some(flow)) = (&wanted, &proposal.then) {
        let then = base.state_of(calls, &Subject::Flow(flow.clone()))?;
        if !then.is_fine() {
            return Err(NotCured::Refused(format!(
                "then {} → {}: {}",
                flow.from,
                flow.to,
                then.summary()
            )));
        }
    }
    let is_new = copy.all_flows.get().is_none();
    if is_new {
        base.count(0)?;
    }
    let flows = if base.manifests.has_captures() { &[] } else { base.all_flows()? };
    let after = copy.all_flows.get_or_init(|| {
        if base.manifests.has_captures() {
            return AllFlows::of_readings(calls, None, &base.known);
        }
        let before = base.footprints.get_or_init(|| Footprints::of(&base.calls));
        AllFlows::of_edited(calls, (base.engine().cluster(), before, flows), &base.known)
    });
    base.note_kernels(calls.engine().kernels());
    let after = after.as_deref().map_err(ToString::to_string)?;
    if is_new {
        base.count_walks(after.iter().map(AllFlows::walks).sum());
    }
    let cluster = base.engine().cluster();
    let given_up = match (&proposal.gives_up, proposal.gives_up_addresses.as_slice()) {
        _ if let Some(alias) = &proposal.leads_out => Some(GivenUp::leading_out(cluster, alias)),
        (Some(name), _) => Some(GivenUp::of(cluster, name)),
        (None, []) => None,
        (None, addresses) => Some(GivenUp::at(cluster, addresses)),
    };
    let worse = |before: &[AllFlows]| {
        let mut pairs = after.iter().zip(before);
        pairs.find_map(|(after, before)| after.worse_than(before, given_up.as_ref()))
    };
    let worse = if base.manifests.has_captures() {
        let plain = base.manifests.without_captures().cluster().map_err(|_| String::new())?;
        let engine = Engine::new(&plain).map_err(|_| String::new())?;
        let calls = FewCalls::new(&engine).knowing(Some(&base.known));
        let as_written = base.state_of(&calls, &case.subject)?;
        if !cure.after.as_ref().is_some_and(|after| after.is_better_than(&as_written)) {
            return Err(NotCured::Refused(format!(
                "with the rules that kube-proxy would write it is as good already ({}): the nodes \
                 have other rules",
                as_written.summary()
            )));
        }
        worse(&AllFlows::of_readings(&calls, None, &base.known).map_err(|why| why.to_string())?)
    } else {
        worse(base.all_flows()?)
    };
    match worse {
        Some(worse) => Err(NotCured::Refused(worse)),
        None => {
            cure.unhelped = unhelped(base, case, proposal, calls);
            Ok(())
        }
    }
}

/// Returns the clients of other kinds whose calls are not better in the edited cluster, as far as
/// there is work left to see it.
fn unhelped(
    base: &TrialBase<'_>,
    case: &Case<'_>,
    proposal: &Proposal,
    calls: &FewCalls<'_, '_>,
) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    for OtherClient { name, flow, before } in case.also() {
        // Who calls something else then does so from everywhere.
        let to = proposal.then.as_ref().map_or(&flow.to, |then| &then.to).clone();
        let subject = Subject::Flow(Flow { to, ..flow.clone() });
        let is_helped = match base.state_of(calls, &subject) {
            Ok(after) => {
                let is_open = proposal.leads_out.is_some() && after.is_fine_or_open();
                is_open || after.is_better_than(before)
            }
            Err(NotCured::Refused(_)) => false,
            Err(NotCured::Untried(_)) => break,
        };
        if !is_helped && !all.contains(name) {
            all.push(name.clone());
        }
    }
    all
}

/// Returns the faults that an object still has in the edited cluster. Returns an error if another
/// object has a new one.
fn without_new_faults(
    base: &TrialBase<'_>,
    calls: &FewCalls<'_, '_>,
    (code, object): (Code, &ObjectRef),
) -> Result<CaseState, NotCured> {
    base.count(0)?;
    let now = written(calls.met()).map_err(|why| why.to_string())?;
    let before = base.faults()?;
    let is_waiting = |new: &Finding| new.subject == *object && new.code == Code::Pending;
    let is_new = |new: &&Finding| {
        let is_known = |known: &Finding| known.code == new.code && known.subject == new.subject;
        // What is made after an edit is not there at once.
        new.severity > Severity::Info && !is_waiting(new) && !before.iter().any(is_known)
    };
    if let Some(new) = now.iter().find(is_new) {
        let said = new.other_evidence.first().map(|observed| &*observed.what).unwrap_or_default();
        return Err(NotCured::Refused(format!("then {} of {}: {said}", new.code, new.subject)));
    }
    Ok(CaseState::of_findings(code, object, &now))
}

fn confirm(
    case: &Case<'_>,
    proposal: &Proposal,
    cure: &mut Cure,
    after: CaseState,
) -> Result<(), String> {
    let is_better = match (&after, &case.subject) {
        _ if proposal.leads_out.is_some() && after.is_fine_or_open() => true,
        // The call stands for the object.
        (CaseState::Flow { .. }, Subject::Object(..)) => after.is_fine(),
        _ => after.is_better_than(&case.before),
    };
    let summary = after.summary();
    cure.after = Some(after);
    if is_better {
        Ok(())
    } else {
        Err(format!("a walk of the edited cluster is not better: {summary}"))
    }
}

fn state_of(calls: &FewCalls<'_, '_>, subject: &Subject) -> Result<CaseState, String> {
    match subject {
        Subject::Flow(flow) => {
            let verdicts = calls.cases(flow).map_err(|why| why.to_string())?;
            Ok(case_state(calls.engine(), flow, &verdicts))
        }
        Subject::Probes(listener, protocol) => {
            let health = calls.health(*listener, *protocol).map_err(|why| why.to_string())?;
            let health = health.unwrap_or_default();
            let alive = health.iter().filter(|target| target.alive).count();
            let (listener, protocol) = (*listener, *protocol);
            Ok(CaseState::Probes { listener, protocol, alive, of: health.len() })
        }
        Subject::Object(code, object) => {
            let now = written(calls.met()).map_err(|why| why.to_string())?;
            Ok(CaseState::of_findings(*code, object, &now))
        }
    }
}
