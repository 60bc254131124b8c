//! What is done for a group.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use futures_util::future::join_all;
use kube::core::DynamicObject;
use kube::{Api, Client, Error};
use serde_json::Value;
use uturn_cloud::client::CallError;
use uturn_cloud::unserved::Unserved;
use uturn_model::{Cluster, NamespacedName, ObjectRef};
use uturn_operator::api::Api as CloudApi;
use uturn_operator::clb::Certificate;
use uturn_operator::environment::{CertificateSecret, Environment, Unread};
use uturn_operator::event::Event;
use uturn_operator::failure;
use uturn_operator::ledger::Record;
use uturn_operator::observed::{Balancer, Observed, complete_all, look};
use uturn_operator::plan::{BalancerPlan, Call, Plan, adopt, apply, plan};
use uturn_operator::run::{Done, Failed, RunError, refuses_everything, run_balancer};
use uturn_operator::wanted::{self, OwnerNote, Wanted};

use super::divide::Members;
use super::refusal::lasting;
use super::{Settings, Synced};
use crate::cluster::Live;
use crate::kinds::SECRET;
use crate::metrics::{self, Metrics};
use crate::queue::Work;
use crate::records::Records;
use crate::write;

/// The keys of a Secret with the ids of a certificate and of the authority of clients'.
const SECRET_KEYS: [&str; 2] = ["qcloud_cert_id", "qcloud_ca_cert_id"];
/// How often a plan is made at most until nothing is left to be done.
const PASSES: usize = 3;

/// A group that waits for its turn.
pub(super) struct Group {
    pub(super) members: Members,
    pub(super) live: Live,
    /// What of it could not be read.
    pub(super) fault: Option<String>,
}

impl Group {
    pub(super) fn works(&self) -> BTreeSet<Work> {
        self.members.works()
    }
}

/// What was seen of load balancers before, and whether that is all of them.
pub(super) type Known = BTreeMap<String, (Arc<Balancer>, bool)>;

/// What was done for a group.
#[derive(Default)]
pub(super) struct Ended {
    pub(super) members: Members,
    /// The load balancers as they are now, `None` for those that do not exist, and whether they
    /// were looked at.
    pub(super) seen: BTreeMap<String, (Option<Balancer>, bool)>,
    /// Whether its load balancers may be otherwise than they were seen.
    pub(super) is_doubtful: bool,
    /// The objects that were written, as they are after it.
    pub(super) objects: BTreeMap<ObjectRef, Value>,
    /// What users were told.
    pub(super) told: BTreeSet<Event>,
    /// The objects that are not served although the cloud has what they want; `None` if that is
    /// not known.
    pub(super) unserved: Option<BTreeMap<ObjectRef, Unserved>>,
    /// The objects that have to be tried again, and load balancers of which what no object wants
    /// could not be taken away.
    pub(super) failed: BTreeSet<Work>,
    /// How the cloud's API refused everything.
    pub(super) refusal: Option<CallError>,
    pub(super) synced: Synced,
}

/// What is known of a group.
pub(super) struct Round {
    pub(super) live: Live,
    pub(super) environment: Environment,
    pub(super) wanted: Wanted,
    pub(super) observed: Observed,
    pub(super) plan: Plan,
    /// What failed.
    pub(super) failures: Vec<Event>,
    /// Whether what the cloud has is known.
    pub(super) is_known: bool,
    /// The objects of which it is not known which ports they have.
    withheld: BTreeSet<ObjectRef>,
}

/// What the groups are dealt with by.
pub(super) struct Hands<A> {
    pub(super) client: Client,
    pub(super) api: A,
    pub(super) settings: Settings,
    pub(super) metrics: Arc<Metrics>,
    pub(super) records: Arc<Records>,
}

impl<A: CloudApi> Hands<A> {
    /// Does what is to be done for a group.
    pub(super) async fn settle(&self, group: Group, known: Known, told: BTreeSet<Event>) -> Ended {
        let Group { members, live, fault } = group;
        let mut ended = Ended { members, ..Ended::default() };
        let mut round = self.begin(live, &ended.members).await;
        match fault {
            Some(fault) => {
                let message = format!("it cannot be read: {fault}");
                round.fail(ended.members.objects.iter(), "E5009", &message);
                ended.fail_all();
            }
            None => {
                if let Err(error) = self.reconcile(&mut round, known, &mut ended).await {
                    let message = format!("what is there cannot be asked: {}", lasting(&error));
                    let owners: Vec<ObjectRef> =
                        owners(&round.wanted).map(|owner| owner.object.clone()).collect();
                    round.fail(owners.iter(), "E5003", &message);
                    round.is_known = false;
                    ended.fail_all();
                    ended.note(&error);
                }
            }
        }
        let written = self.write_back(&round, &told).await;
        ended.synced.writes += written.writes;
        ended.told = written.told;
        ended.objects.extend(written.objects);
        // An object that cannot be read is looked at again when it changes.
        ended.fail(written.failed.iter().chain(&round.withheld));
        let unreadable = &round.environment.unreadable;
        let objects = round.live.objects.keys();
        ended.fail(objects.filter(|object| {
            unreadable.keys().any(|secret| Some(&secret.namespace) == object.namespace.as_ref())
        }));
        ended
    }

    /// What a group wants.
    async fn begin(&self, live: Live, members: &Members) -> Round {
        let mut environment = live.environment(&self.settings.cluster, &self.settings.network);
        environment.shares = self.settings.shares.clone();
        let fault = self.records.load().await.err();
        let of_objects = environment.uids.values().flat_map(|uid| self.records.of_uid(uid));
        let ids = members.balancers.iter().cloned().chain(of_objects).collect();
        environment.ledger = self.records.part(&ids);
        let is_meant = |object: &ObjectRef| members.objects.contains(object);
        let (mut wanted, mut withheld) = (Wanted::default(), BTreeSet::new());
        if let Some(cluster) = &live.cluster {
            let names = wanted::secrets_for(cluster, is_meant);
            for (name, found) in join_all(names.into_iter().map(|name| self.secret(name))).await {
                match found {
                    Ok(Some(secret)) => drop(environment.secrets.insert(name, secret)),
                    Ok(None) => {}
                    Err(error) => drop(environment.unreadable.insert(name, metrics::why(&error))),
                }
            }
            wanted = wants(cluster, &environment, members);
            withheld = self.withhold(&wanted, fault.as_deref(), &mut environment);
            if !withheld.is_empty() {
                wanted = wants(cluster, &environment, members);
            }
        }
        Round {
            live,
            environment,
            wanted,
            observed: Observed::default(),
            plan: Plan::default(),
            failures: Vec::new(),
            is_known: false,
            withheld,
        }
    }

    /// Leaves objects as they are that use load balancers of which it cannot be read who has which
    /// port. Returns these objects.
    fn withhold(
        &self,
        wanted: &Wanted,
        fault: Option<&str>,
        environment: &mut Environment,
    ) -> BTreeSet<ObjectRef> {
        let mut withheld = BTreeSet::new();
        for (id, claims) in &wanted.claims {
            let why = self.records.unreadable(id).map(|why| format!("it says {why}"));
            let Some(why) = why.or_else(|| fault.map(str::to_owned)) else { continue };
            let why = format!("who has which port of {id} is not known: {why}");
            for claim in claims {
                let unread = Unread { why: why.clone(), existing: [id.clone()].into() };
                environment.unread.insert(claim.note.object.clone(), unread);
                withheld.insert(claim.note.object.clone());
            }
        }
        withheld
    }

    /// Reads a Secret. One that does not exist is left out.
    async fn secret(
        &self,
        name: NamespacedName,
    ) -> (NamespacedName, Result<Option<CertificateSecret>, Error>) {
        let namespace = name.namespace.as_str();
        let api: Api<DynamicObject> =
            Api::namespaced_with(self.client.clone(), namespace, &SECRET.resource());
        let found = api.get_opt(name.name.as_str()).await;
        self.metrics.note("get", "secrets", found.as_ref().err());
        (name, found.map(|secret| secret.map(|secret| certificate(&secret.data))))
    }

    /// Makes what is there into what is wanted.
    ///
    /// # Errors
    ///
    /// Returns why it is not known what is there.
    async fn reconcile(
        &self,
        round: &mut Round,
        known: Known,
        ended: &mut Ended,
    ) -> Result<(), CallError> {
        let mut fresh = self.observe(round, known, ended).await?;
        if let Err(why) = self.adopt(round, &ended.members).await {
            self.cannot_record(round, ended, &why);
            return Ok(());
        }
        let mut blocked = self.hold(round, ended).await;
        for _ in 0..PASSES {
            round.plan = plan(&round.wanted, &round.observed, &round.environment);
            let stale: BTreeSet<String> = structural(&round.plan)
                .filter_map(|balancer| balancer.id.clone())
                .filter(|id| !fresh.contains(id))
                .collect();
            if !stale.is_empty() {
                self.look(round, &stale, ended).await?;
                fresh.extend(stale);
                round.plan = plan(&round.wanted, &round.observed, &round.environment);
            }
            self.record(round, ended).await;
            if !round.plan.can_go_on_without(&blocked) {
                break;
            }
            let before = ended.synced.calls;
            let changed = self.perform(round, &mut blocked, ended).await;
            if ended.refusal.is_some() {
                ended.fail_all();
                round.is_known = false;
                return Ok(());
            }
            self.look(round, &changed, ended).await?;
            fresh.extend(changed);
            round.plan = plan(&round.wanted, &round.observed, &round.environment);
            if ended.synced.calls == before {
                break;
            }
        }
        round.is_known = true;
        // It is looked at again soon: nothing else tells that it is served.
        ended.is_doubtful |= !round.plan.unserved.is_empty();
        ended.fail(round.plan.unserved.keys());
        ended.unserved = Some(round.plan.unserved.clone());
        ended.fail(round.failures.iter().map(|event| &event.object));
        for balancer in &round.plan.balancers {
            for place in 0..balancer.calls.len() {
                ended.fail_call(&balancer.objects_of(place), balancer.id.as_ref());
            }
        }
        Ok(())
    }

    /// Begins the records of load balancers that have none.
    ///
    /// # Errors
    ///
    /// Returns why they cannot be written.
    async fn adopt(&self, round: &mut Round, members: &Members) -> Result<(), String> {
        let Some(cluster) = round.live.cluster.clone() else { return Ok(()) };
        let adopted = adopt(&round.wanted, &round.observed, &round.environment);
        let Some(adopted) = adopted else { return Ok(()) };
        let before = &round.environment.ledger;
        let changed = adopted.records().filter(|(id, record)| before.of(id) != Some(record));
        let changed = changed.map(|(id, record)| (id.clone(), record.clone())).collect();
        self.records.save(&changed).await?;
        round.environment.ledger = adopted;
        round.wanted = wants(&cluster, &round.environment, members);
        Ok(())
    }

    /// Records what the plan needs recorded. If that fails, the calls on these load balancers are
    /// not made.
    async fn record(&self, round: &mut Round, ended: &mut Ended) {
        if round.plan.records.is_empty() {
            return;
        }
        let records = std::mem::take(&mut round.plan.records);
        if let Err(why) = self.records.save(&records).await {
            self.cannot_record(round, ended, &why);
            let is_recorded = |balancer: &BalancerPlan| {
                balancer.id.as_ref().is_none_or(|id| !records.contains_key(id))
            };
            round.plan.balancers.retain(is_recorded);
            return;
        }
        for (id, record) in records {
            round.environment.ledger.set(&id, record);
        }
    }

    fn cannot_record(&self, round: &mut Round, ended: &mut Ended, why: &str) {
        Metrics::add(&self.metrics.failed_writes, 1);
        let message = format!("who has which port cannot be recorded: {why}");
        let users = round.wanted.claims.values().flatten();
        let users: Vec<ObjectRef> = users.map(|claim| claim.note.object.clone()).collect();
        ended.fail(users.iter());
        round.fail(users.iter(), "E5009", &message);
    }

    /// Records the ids of listeners that were created.
    async fn record_created(&self, round: &mut Round, done: &Done, ended: &mut Ended) {
        for (id, listeners) in &done.listeners {
            round.environment.ledger.created(id, listeners);
            let record = round.environment.ledger.of(id).cloned();
            let record = record.map(|record| (id.clone(), record));
            let records: BTreeMap<String, Record> = record.into_iter().collect();
            if !records.is_empty()
                && let Err(why) = self.records.save(&records).await
            {
                self.cannot_record(round, ended, &why);
            }
        }
    }

    /// Asks for what is not known of the group's load balancers. Returns those that were looked
    /// at.
    async fn observe(
        &self,
        round: &mut Round,
        known: Known,
        ended: &mut Ended,
    ) -> Result<BTreeSet<String>, CallError> {
        let (mut heads, mut unknown) = (Vec::new(), BTreeSet::new());
        let named = round.wanted.balancers.iter().filter_map(|balancer| match &balancer.place {
            wanted::Place::Existing(id) => Some(id),
            wanted::Place::Own(_) => None,
        });
        let ids: BTreeSet<&String> =
            named.chain(round.environment.ledger.ids()).chain(&ended.members.balancers).collect();
        for id in ids {
            match known.get(id) {
                Some((balancer, true)) => {
                    round.observed.balancers.insert(id.clone(), (**balancer).clone());
                }
                Some((balancer, false)) if balancer.is_own() => heads.push((**balancer).clone()),
                _ => drop(unknown.insert(id.clone())),
            }
        }
        let mut fresh: BTreeSet<String> = heads.iter().map(|head| head.id.clone()).collect();
        let found = complete_all(&self.api, heads).await?;
        for id in &fresh {
            ended.seen.insert(id.clone(), (found.balancers.get(id).cloned(), true));
        }
        round.observed.balancers.extend(found.balancers);
        self.look(round, &unknown, ended).await?;
        fresh.extend(unknown);
        Ok(fresh)
    }

    /// Looks at load balancers anew.
    async fn look(
        &self,
        round: &mut Round,
        ids: &BTreeSet<String>,
        ended: &mut Ended,
    ) -> Result<(), CallError> {
        let found = look(&self.api, ids).await?;
        for id in ids {
            let balancer = found.balancers.get(id).cloned();
            match &balancer {
                Some(balancer) => {
                    round.observed.balancers.insert(id.clone(), balancer.clone());
                }
                None => drop(round.observed.balancers.remove(id)),
            }
            ended.seen.insert(id.clone(), (balancer, true));
        }
        Ok(())
    }

    /// Puts the finalizer on the objects that have a load balancer or get one. Returns the objects
    /// that do not have it: nothing is called for them.
    async fn hold(&self, round: &mut Round, ended: &mut Ended) -> BTreeSet<ObjectRef> {
        let mut without = BTreeSet::new();
        let owners: Vec<ObjectRef> =
            owners(&round.wanted).map(|owner| owner.object.clone()).collect();
        for object in owners {
            let Some(live) = round.live.objects.get_mut(&object) else {
                without.insert(object);
                continue;
            };
            let Some(patch) = write::hold(live) else { continue };
            match self.patch(&object, &patch).await {
                Ok(value) => {
                    ended.synced.writes += 1;
                    live.value = value.clone();
                    ended.objects.insert(object.clone(), value);
                }
                Err(error) => {
                    ended.fail([&object].into_iter());
                    // One that changed meanwhile is tried again as it is then.
                    if !matches!(&error, Error::Api(status) if status.code == 409) {
                        let message =
                            format!("the finalizer cannot be written: {}", metrics::why(&error));
                        round.failures.push(Event::new(&object, "E5009", message));
                    }
                    without.insert(object);
                }
            }
        }
        without
    }

    /// Performs the plan but for the calls of blocked objects. Those whose calls fail are blocked
    /// from then on. Returns the load balancers that have to be looked at again.
    async fn perform(
        &self,
        round: &mut Round,
        blocked: &mut BTreeSet<ObjectRef>,
        ended: &mut Ended,
    ) -> BTreeSet<String> {
        let mut changed = BTreeSet::new();
        for balancer in std::mem::take(&mut round.plan.balancers) {
            let mut done = Done::default();
            let failed = run_balancer(&self.api, &balancer, blocked, &mut done).await;
            ended.synced.calls += done.calls;
            self.record_created(round, &done, ended).await;
            changed.extend(done.created);
            let is_whole = failed.is_empty() && done.calls == balancer.calls.len();
            match &balancer.id {
                Some(id) if is_whole && balancer.calls.iter().all(Call::is_on_targets) => {
                    if let Some(found) = round.observed.balancers.get_mut(id) {
                        balancer.calls.iter().for_each(|call| apply(found, call));
                        let is_fresh = ended.seen.get(id).is_some_and(|(_, is_fresh)| *is_fresh);
                        ended.seen.insert(id.clone(), (Some(found.clone()), is_fresh));
                    }
                }
                Some(id) if done.calls > 0 || !failed.is_empty() => {
                    changed.insert(id.clone());
                }
                _ => {}
            }
            if !failed.is_empty() {
                Metrics::add(&self.metrics.failed_calls, 1);
            }
            for Failed { objects, error } in failed {
                let events = objects.iter().map(|object| failure::event(object, &error));
                round.failures.extend(events);
                ended.fail_call(&objects.iter().collect(), balancer.id.as_ref());
                blocked.extend(objects);
                if let RunError::Call { error, .. } = &error {
                    ended.note(error);
                }
            }
        }
        changed
    }
}

impl Ended {
    /// Objects have to be tried again.
    fn fail<'o>(&mut self, objects: impl Iterator<Item = &'o ObjectRef>) {
        self.failed.extend(objects.cloned().map(Work::Object));
    }

    /// A call on a load balancer that is for these objects has to be tried again.
    fn fail_call(&mut self, objects: &BTreeSet<&ObjectRef>, balancer: Option<&String>) {
        match objects.is_empty() {
            true => self.failed.extend(balancer.cloned().map(Work::Balancer)),
            false => self.fail(objects.iter().copied()),
        }
    }

    /// The whole group has to be tried again.
    fn fail_all(&mut self) {
        match self.members.objects.is_empty() {
            true => self.failed.extend(self.members.works()),
            false => self.failed.extend(self.members.objects.iter().cloned().map(Work::Object)),
        }
    }

    /// Notes that a call failed.
    fn note(&mut self, error: &CallError) {
        self.is_doubtful = true;
        if refuses_everything(error) {
            self.refusal = Some(error.clone());
        }
    }
}

impl Round {
    fn fail<'o>(
        &mut self,
        objects: impl Iterator<Item = &'o ObjectRef>,
        code: &'static str,
        message: &str,
    ) {
        self.failures.extend(objects.map(|object| Event::new(object, code, message)));
    }
}

/// Load balancers on which more is changed than targets.
fn structural(plan: &Plan) -> impl Iterator<Item = &BalancerPlan> {
    let balancers = plan.balancers.iter();
    balancers.filter(|balancer| !balancer.calls.iter().all(|call| call.is_on_targets()))
}

pub(super) fn owners(wanted: &Wanted) -> impl Iterator<Item = &OwnerNote> {
    wanted.balancers.iter().flat_map(|balancer| &balancer.owners)
}

/// What a group's objects want. Facts say that the cluster is one of this cloud.
fn wants(cluster: &Cluster, environment: &Environment, members: &Members) -> Wanted {
    let is_meant = |object: &ObjectRef| members.objects.contains(object);
    wanted::wanted_for(cluster, environment, is_meant).unwrap_or_default()
}

/// What a Secret holds for TLS. The API server has its values in base64.
fn certificate(secret: &Value) -> CertificateSecret {
    let [server, authority] = SECRET_KEYS.map(|key| {
        let text = uturn_snapshot::base64_text(secret["data"][key].as_str()?)?;
        Some(text.trim().to_owned()).filter(|id| !id.is_empty())
    });
    match server {
        Some(server) => CertificateSecret::Certificate(Certificate { server, authority }),
        None => CertificateSecret::WithoutId,
    }
}
