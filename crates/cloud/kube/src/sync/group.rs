//! Processes a group: reads its state, performs its plan, and writes the results.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use futures_util::future::join_all;
use kube::core::DynamicObject;
use kube::{Api, Client, Error};
use serde_json::Value;
use uturn_cloud_api::client::CallError;
use uturn_cloud_api::unserved::Unserved;
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

/// The keys of a Secret for the id of a certificate and the id of the authority of clients'
/// certificates.
const SECRET_KEYS: [&str; 2] = ["qcloud_cert_id", "qcloud_ca_cert_id"];
/// The most plans that are made and performed in one round of a group.
const PASSES: usize = 3;

/// A group that waits for its turn.
pub(super) struct Group {
    pub(super) members: Members,
    pub(super) live: Live,
    /// The reason why the group cannot be read.
    pub(super) fault: Option<String>,
}

impl Group {
    pub(super) fn works(&self) -> BTreeSet<Work> {
        self.members.works()
    }
}

/// Load balancers as they were seen before, each with whether all of its parts were seen.
pub(super) type Known = BTreeMap<String, (Arc<Balancer>, bool)>;

/// The result of processing a group.
#[derive(Default)]
pub(super) struct Ended {
    pub(super) members: Members,
    /// The load balancers as they are now, `None` for those that do not exist, each with whether it
    /// was read from the cloud.
    pub(super) seen: BTreeMap<String, (Option<Balancer>, bool)>,
    /// Whether the load balancers may differ from how they were seen.
    pub(super) is_doubtful: bool,
    /// The objects that were written, in their new state.
    pub(super) objects: BTreeMap<ObjectRef, Value>,
    /// The events that were reported on the objects.
    pub(super) told: BTreeSet<Event>,
    /// The objects that the data plane does not serve although the cloud has their settings; `None`
    /// if that is not known.
    pub(super) unserved: Option<BTreeMap<ObjectRef, Unserved>>,
    /// The objects that have to be tried again, and the load balancers from which parts that no
    /// object wants could not be removed.
    pub(super) failed: BTreeSet<Work>,
    /// The error with which the cloud's API refused all calls.
    pub(super) refusal: Option<CallError>,
    pub(super) synced: Synced,
}

/// The state of a group during a round.
pub(super) struct Round {
    pub(super) live: Live,
    pub(super) environment: Environment,
    pub(super) wanted: Wanted,
    pub(super) observed: Observed,
    pub(super) plan: Plan,
    /// Events for the failures.
    pub(super) failures: Vec<Event>,
    /// Whether the state of the cloud is known.
    pub(super) is_known: bool,
    /// The objects whose ports in the ledger are not known.
    withheld: BTreeSet<ObjectRef>,
}

/// The clients and settings with which groups are processed.
pub(super) struct Hands<A> {
    pub(super) client: Client,
    pub(super) api: A,
    pub(super) settings: Settings,
    pub(super) metrics: Arc<Metrics>,
    pub(super) records: Arc<Records>,
}

impl<A: CloudApi> Hands<A> {
    /// Processes a group.
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
                    let message =
                        format!("the existing load balancers cannot be read: {}", lasting(&error));
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
        // An object that cannot be read is not tried again until it changes.
        ended.fail(written.failed.iter().chain(&round.withheld));
        let unreadable = &round.environment.unreadable;
        let objects = round.live.objects.keys();
        ended.fail(objects.filter(|object| {
            unreadable.keys().any(|secret| Some(&secret.namespace) == object.namespace.as_ref())
        }));
        ended
    }

    /// Reads the Secrets and the ledger of a group, and returns the round with the wanted state.
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

    /// Marks the objects as unread that use load balancers whose record in the ledger cannot be
    /// read, so that nothing is changed for them. Returns these objects.
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
            let why =
                format!("the record of which object has which port of {id} cannot be read: {why}");
            for claim in claims {
                let unread = Unread { why: why.clone(), existing: [id.clone()].into() };
                environment.unread.insert(claim.note.object.clone(), unread);
                withheld.insert(claim.note.object.clone());
            }
        }
        withheld
    }

    /// Reads a Secret. Returns `None` for one that does not exist.
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

    /// Brings the cloud's state to the wanted state.
    ///
    /// # Errors
    ///
    /// Returns why the cloud's state is not known.
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
        // The group is looked at again soon, because nothing else tells when its objects are
        // served.
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

    /// Begins the records of load balancers that have no record.
    ///
    /// # Errors
    ///
    /// Returns why the records cannot be written.
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

    /// Saves the records that the plan needs. If that fails, the calls on these load balancers are
    /// dropped.
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
        let message = format!("which object has which port cannot be recorded: {why}");
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

    /// Reads the unknown parts of the group's load balancers. Returns the load balancers that were
    /// read.
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

    /// Reads load balancers from the cloud again.
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

    /// Adds the finalizer to the objects that have a load balancer or get one. Returns the objects
    /// that lack it, for which no calls are made.
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
                    // An object that changed meanwhile is tried again in its new state.
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

    /// Performs the plan without the calls of blocked objects. Objects whose calls fail are added
    /// to `blocked`. Returns the load balancers that have to be read again.
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
    /// Notes that objects have to be tried again.
    fn fail<'o>(&mut self, objects: impl Iterator<Item = &'o ObjectRef>) {
        self.failed.extend(objects.cloned().map(Work::Object));
    }

    /// Notes that a call on a load balancer has to be tried again: for these objects or, if there
    /// are none, for the load balancer itself.
    fn fail_call(&mut self, objects: &BTreeSet<&ObjectRef>, balancer: Option<&String>) {
        if objects.is_empty() {
            self.failed.extend(balancer.cloned().map(Work::Balancer));
        } else {
            self.fail(objects.iter().copied());
        }
    }

    /// Notes that the whole group has to be tried again.
    fn fail_all(&mut self) {
        if self.members.objects.is_empty() {
            self.failed.extend(self.members.works());
        } else {
            self.failed.extend(self.members.objects.iter().cloned().map(Work::Object));
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

/// Returns the load balancers with calls other than changes of targets.
fn structural(plan: &Plan) -> impl Iterator<Item = &BalancerPlan> {
    let balancers = plan.balancers.iter();
    balancers.filter(|balancer| !balancer.calls.iter().all(|call| call.is_on_targets()))
}

pub(super) fn owners(wanted: &Wanted) -> impl Iterator<Item = &OwnerNote> {
    wanted.balancers.iter().flat_map(|balancer| &balancer.owners)
}

/// Returns the wanted state of a group's objects. It cannot fail, since the facts state that the
/// cluster is one of this cloud.
fn wants(cluster: &Cluster, environment: &Environment, members: &Members) -> Wanted {
    let is_meant = |object: &ObjectRef| members.objects.contains(object);
    wanted::wanted_for(cluster, environment, is_meant).unwrap_or_default()
}

/// Reads the certificate that a Secret has for TLS. The API server encodes its values in base64.
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
