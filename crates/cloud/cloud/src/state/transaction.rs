//! A request's view of its account, and the changes that it makes.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::net::IpAddr;
use std::time::Duration;

use jiff::Timestamp;
use uturn_cloud_api::wire::error::{ApiError, ErrorCode};

use super::{
    Account, Certificate, CustomConfig, Listener, LoadBalancer, Place, Record, RecordKey,
    RecordKind, Task, TaskStatus,
};
use crate::health::HealthView;
use crate::ids::IdSource;
use crate::inventory::Inventory;
use crate::quotas::Quotas;
use crate::refused_targets::RefusedTargets;

/// The environment of a request, beside its account.
#[derive(Debug)]
pub struct Context<'a> {
    /// The time.
    pub now: Timestamp,
    /// The request's own id.
    pub request_id: &'a str,
    /// The account whose credential signed the request.
    pub account: &'a str,
    /// The request's region.
    pub region: &'a str,
    /// The networks, instances and addresses that requests can use.
    pub inventory: &'a Inventory,
    /// The most resources that an account may have.
    pub quotas: &'a Quotas,
    /// The data plane's view of targets.
    pub health: &'a dyn HealthView,
    /// The duration of a task; `None` for as long as the data plane needs.
    pub task_time: Option<Duration>,
    /// The targets that are refused.
    pub refused_targets: &'a RefusedTargets,
    /// The source of ids of new resources.
    pub ids: &'a IdSource,
}

/// The region of records that belong to no region.
const NO_REGION: &str = "";

/// The resources of all accounts.
pub type Accounts = HashMap<Place, Account>;

/// A request's view of its account, and the changes that it makes.
#[derive(Debug)]
pub struct Transaction<'a> {
    /// The environment of the request.
    pub context: Context<'a>,
    accounts: &'a Accounts,
    account: &'a Account,
    changed: Changes,
    /// Changes in regions other than the request's.
    elsewhere: BTreeMap<String, Changes>,
}

/// The records that a request changed; `None` for a record that it removed.
pub type Changes = BTreeMap<RecordKey, Option<Record>>;

/// Changes in several places, which are stored together.
pub type Batch = BTreeMap<Place, Changes>;

impl<'a> Transaction<'a> {
    /// Returns a transaction without changes.
    pub fn new(accounts: &'a Accounts, context: Context<'a>) -> Self {
        let account = at(accounts, context.account, context.region);
        let (changed, elsewhere) = (Changes::new(), BTreeMap::new());
        Self { context, accounts, account, changed, elsewhere }
    }

    /// Returns the request's changes, with the task that it leaves.
    pub fn into_changes(mut self) -> Batch {
        let load_balancers = self.changed_load_balancers();
        let listeners = self.changed_listeners(&load_balancers);
        let has_tasks = !self.context.region.is_empty();
        if has_tasks && !self.changed.is_empty() && self.task(self.context.request_id).is_none() {
            self.put_task(load_balancers, listeners);
        }
        let mut batch = Batch::new();
        for (key, record) in self.changed {
            let is_of_region = key.kind != RecordKind::Certificate;
            let region = if is_of_region { self.context.region } else { NO_REGION };
            batch.entry(place(self.context.account, region)).or_default().insert(key, record);
        }
        for (region, changes) in self.elsewhere {
            batch.entry(place(self.context.account, &region)).or_default().extend(changes);
        }
        batch
    }

    /// Returns the load balancers that the request changes, also through a custom configuration.
    fn changed_load_balancers(&self) -> Vec<String> {
        let changed = |kind, id: &str| self.changed(kind, id).is_some();
        let mut ids: BTreeSet<String> = self
            .changed
            .keys()
            .filter(|key| key.kind == RecordKind::LoadBalancer)
            .map(|key| key.id.clone())
            .collect();
        if self.changed.keys().any(|key| key.kind == RecordKind::CustomConfig) {
            let load_balancers = self.load_balancers().into_iter();
            let bound = load_balancers.filter(|(_, load_balancer)| {
                let config = load_balancer.custom_config.as_deref();
                config.is_some_and(|id| changed(RecordKind::CustomConfig, id))
            });
            ids.extend(bound.map(|(id, _)| id.to_owned()));
        }
        ids.into_iter().collect()
    }

    /// Returns the listeners that the request changes, adds or removes. If a setting of the load
    /// balancer as a whole changes how it is served, these are all of its listeners.
    fn changed_listeners(&self, load_balancers: &[String]) -> Vec<String> {
        let mut ids = BTreeSet::new();
        for id in load_balancers {
            let before = self.account.load_balancers.get(id);
            let Some(after) = self.load_balancer(id) else { continue };
            let is_configured = after
                .custom_config
                .as_deref()
                .is_some_and(|id| self.changed(RecordKind::CustomConfig, id).is_some());
            let same = before.filter(|before| !is_configured && after.is_served_as(before));
            let others = |all: &LoadBalancer, of: Option<&LoadBalancer>| -> Vec<String> {
                let is_other = |listener: &&Listener| {
                    of.and_then(|of| of.listener(&listener.id)) != Some(*listener)
                };
                let others = all.listeners.iter().filter(is_other);
                others.map(|listener| listener.id.clone()).collect()
            };
            ids.extend(others(after, same));
            ids.extend(before.map(|before| others(before, Some(after))).unwrap_or_default());
        }
        ids.into_iter().collect()
    }

    /// Leaves a task although nothing changed, as batch calls do.
    pub fn leave_task(&mut self) {
        if self.changed.is_empty() {
            self.put_task(Vec::new(), Vec::new());
        }
    }

    fn put_task(&mut self, load_balancers: Vec<String>, listeners: Vec<String>) {
        let status = match self.context.task_time {
            _ if load_balancers.is_empty() => TaskStatus::Done,
            None => TaskStatus::Serving,
            Some(Duration::ZERO) => TaskStatus::Done,
            Some(time) => TaskStatus::DoneAt(self.context.now + time),
        };
        let task = Task { load_balancers, listeners, began: self.context.now, status };
        self.put(RecordKind::Task, self.context.request_id.to_owned(), Record::Task(task));
    }

    /// Returns the load balancer with this id.
    pub fn load_balancer(&self, id: &str) -> Option<&LoadBalancer> {
        match self.changed(RecordKind::LoadBalancer, id) {
            Some(Some(Record::LoadBalancer(load_balancer))) => Some(load_balancer),
            Some(_) => None,
            None => self.account.load_balancers.get(id),
        }
    }

    /// Returns all load balancers, in any order.
    pub fn each_load_balancer(&self) -> impl Iterator<Item = &LoadBalancer> {
        let has_changed = self.changed.keys().any(|key| key.kind == RecordKind::LoadBalancer);
        let is_changed =
            move |id: &str| has_changed && self.changed(RecordKind::LoadBalancer, id).is_some();
        let stored = self.account.load_balancers.values();
        let changed = self.changed.values().filter_map(|record| match record {
            Some(Record::LoadBalancer(load_balancer)) => Some(load_balancer),
            _ => None,
        });
        stored.filter(move |found| !is_changed(&found.id)).chain(changed)
    }

    /// Returns all load balancers by their ids.
    pub fn load_balancers(&self) -> BTreeMap<&str, &LoadBalancer> {
        let stored = self.account.load_balancers.keys();
        let changed = self.changed.keys().filter(|key| key.kind == RecordKind::LoadBalancer);
        stored
            .chain(changed.map(|key| &key.id))
            .filter_map(|id| Some((id.as_str(), self.load_balancer(id)?)))
            .collect()
    }

    /// Returns the account's load balancers of all regions, with their regions, as they were before
    /// the request.
    pub fn load_balancers_of_all_regions(
        &self,
    ) -> impl Iterator<Item = (&'a str, &'a LoadBalancer)> + use<'a> {
        let mut own: Vec<(&Place, &Account)> = self
            .accounts
            .iter()
            .filter(|(place, _)| place.account == self.context.account)
            .collect();
        own.sort_by_key(|(place, _)| *place);
        own.into_iter().flat_map(|(place, account)| {
            account.load_balancers.values().map(|found| (place.region.as_str(), found))
        })
    }

    /// Returns the load balancer of a region with this id, for requests that belong to no region.
    pub fn load_balancer_in(&self, region: &str, id: &str) -> Option<&LoadBalancer> {
        let key = RecordKey { kind: RecordKind::LoadBalancer, id: id.to_owned() };
        match self.elsewhere.get(region).and_then(|changes| changes.get(&key)) {
            Some(Some(Record::LoadBalancer(load_balancer))) => Some(load_balancer),
            Some(_) => None,
            None => at(self.accounts, self.context.account, region).load_balancers.get(id),
        }
    }

    /// Replaces the load balancer of a region that has the same id. Leaves no task, so it is only
    /// for changes that the data plane does not serve.
    pub fn put_load_balancer_in(&mut self, region: &str, load_balancer: LoadBalancer) {
        let key = RecordKey { kind: RecordKind::LoadBalancer, id: load_balancer.id.clone() };
        let changes = self.elsewhere.entry(region.to_owned()).or_default();
        changes.insert(key, Some(Record::LoadBalancer(load_balancer)));
    }

    /// Returns the addresses of all load balancers, also of other accounts: one data plane serves
    /// them all.
    pub fn addresses_in_use(&self) -> BTreeSet<IpAddr> {
        let all = self.accounts.values().flat_map(|account| account.load_balancers.values());
        let changed = self.changed.values().filter_map(|record| match record {
            Some(Record::LoadBalancer(load_balancer)) => Some(load_balancer),
            _ => None,
        });
        let addresses = all.chain(changed).flat_map(|load_balancer| {
            let snat = load_balancer.snat_addresses.iter().map(|address| address.ip);
            load_balancer.addresses.iter().copied().chain(snat)
        });
        addresses.collect()
    }

    /// Returns those of the given addresses that load balancers of any account have.
    pub fn addresses_among(&self, addresses: &BTreeSet<IpAddr>) -> BTreeSet<IpAddr> {
        let all = self.accounts.values().flat_map(|account| account.load_balancers.values());
        let used = all.flat_map(|load_balancer| &load_balancer.addresses);
        used.filter(|address| addresses.contains(*address)).copied().collect()
    }

    /// Returns the load balancer with this id, to be changed. `missing` is the error code for an
    /// unknown id, which differs between actions.
    ///
    /// # Errors
    ///
    /// Returns `missing` for an unknown id, and `FailedOperation.ResourceInOperating` while an
    /// earlier request's task still changes it.
    pub fn load_balancer_mut(
        &mut self,
        id: &str,
        missing: ErrorCode,
    ) -> Result<&mut LoadBalancer, ApiError> {
        let current = self.load_balancer(id).ok_or_else(|| {
            ApiError::new(missing, format!("the load balancer {id} does not exist"))
        })?;
        let task = self.task(&current.last_task);
        if current.last_task != self.context.request_id
            && task.is_some_and(|task| task.is_running(self.context.now))
        {
            let message = format!("the load balancer {id} is busy with {}", current.last_task);
            return Err(ApiError::new(ErrorCode::ResourceInOperating, message));
        }
        let mut copy = current.clone();
        copy.last_task = self.context.request_id.to_owned();
        let key = RecordKey { kind: RecordKind::LoadBalancer, id: id.to_owned() };
        let record = match self.changed.entry(key) {
            Entry::Occupied(entry) => entry.into_mut(),
            Entry::Vacant(entry) => entry.insert(Some(Record::LoadBalancer(copy))),
        };
        match record {
            Some(Record::LoadBalancer(load_balancer)) => Ok(load_balancer),
            _ => Err(ApiError::new(missing, format!("the load balancer {id} does not exist"))),
        }
    }

    /// Adds a load balancer. The request's task becomes its last task.
    pub fn insert_load_balancer(&mut self, mut load_balancer: LoadBalancer) {
        load_balancer.last_task = self.context.request_id.to_owned();
        let id = load_balancer.id.clone();
        self.put(RecordKind::LoadBalancer, id, Record::LoadBalancer(load_balancer));
    }

    /// Removes a load balancer.
    pub fn remove_load_balancer(&mut self, id: &str) {
        self.remove(RecordKind::LoadBalancer, id);
    }

    /// Returns the task of the request with this id.
    pub fn task(&self, id: &str) -> Option<&Task> {
        match self.changed(RecordKind::Task, id) {
            Some(Some(Record::Task(task))) => Some(task),
            Some(_) => None,
            None => self.account.tasks.get(id),
        }
    }

    /// Returns the tasks of earlier requests, by the requests' ids.
    pub fn tasks(&self) -> &'a BTreeMap<String, Task> {
        &self.account.tasks
    }

    /// Leaves a task with the status of the one that last changed these load balancers, for a
    /// request that repeats an earlier one.
    pub fn leave_task_like(&mut self, load_balancers: &[String]) {
        let last = load_balancers.iter().filter_map(|id| self.load_balancer(id)).next_back();
        let earlier = last.and_then(|load_balancer| self.task(&load_balancer.last_task));
        let status = earlier.map_or(TaskStatus::Done, |task| task.status.clone());
        let began = self.context.now;
        let (load_balancers, listeners) = (load_balancers.to_vec(), Vec::new());
        let task = Task { load_balancers, listeners, began, status };
        self.put(RecordKind::Task, self.context.request_id.to_owned(), Record::Task(task));
    }

    /// Returns the load balancers that were created with this client token.
    pub fn client_token(&self, token: &str) -> Option<&[String]> {
        self.account.client_tokens.get(token).map(Vec::as_slice)
    }

    /// Stores the ids of the load balancers that were created with a client token.
    pub fn put_client_token(&mut self, token: String, load_balancers: Vec<String>) {
        self.put(RecordKind::ClientToken, token, Record::ClientToken(load_balancers));
    }

    /// Returns the certificate with this id.
    pub fn certificate(&self, id: &str) -> Option<&Certificate> {
        match self.changed(RecordKind::Certificate, id) {
            Some(Some(Record::Certificate(certificate))) => Some(certificate),
            Some(_) => None,
            None => self.without_region().certificates.get(id),
        }
    }

    /// Returns all certificates that existed before the request.
    pub fn certificates(&self) -> impl Iterator<Item = &Certificate> {
        self.without_region().certificates.values()
    }

    /// Returns the number of certificates, with those that the request adds.
    pub fn certificate_count(&self) -> usize {
        let is_new = |(key, record): &(&RecordKey, &Option<Record>)| {
            key.kind == RecordKind::Certificate
                && record.is_some()
                && !self.without_region().certificates.contains_key(&key.id)
        };
        self.without_region().certificates.len() + self.changed.iter().filter(is_new).count()
    }

    /// Adds a certificate.
    pub fn put_certificate(&mut self, certificate: Certificate) {
        let id = certificate.id.clone();
        self.put(RecordKind::Certificate, id, Record::Certificate(certificate));
    }

    /// Removes a certificate.
    pub fn remove_certificate(&mut self, id: &str) {
        self.remove(RecordKind::Certificate, id);
    }

    /// Returns the custom configuration with this id.
    pub fn custom_config(&self, id: &str) -> Option<&CustomConfig> {
        match self.changed(RecordKind::CustomConfig, id) {
            Some(Some(Record::CustomConfig(config))) => Some(config),
            Some(_) => None,
            None => self.account.custom_configs.get(id),
        }
    }

    /// Returns all custom configurations that existed before the request.
    pub fn custom_configs(&self) -> impl Iterator<Item = &CustomConfig> {
        self.account.custom_configs.values()
    }

    /// Adds a custom configuration, or replaces the one with its id.
    pub fn put_custom_config(&mut self, config: CustomConfig) {
        let id = config.id.clone();
        self.put(RecordKind::CustomConfig, id, Record::CustomConfig(config));
    }

    /// Removes a custom configuration.
    pub fn remove_custom_config(&mut self, id: &str) {
        self.remove(RecordKind::CustomConfig, id);
    }

    /// Returns the account's resources that belong to no region.
    fn without_region(&self) -> &'a Account {
        at(self.accounts, self.context.account, NO_REGION)
    }

    fn changed(&self, kind: RecordKind, id: &str) -> Option<&Option<Record>> {
        self.changed.get(&RecordKey { kind, id: id.to_owned() })
    }

    fn put(&mut self, kind: RecordKind, id: String, record: Record) {
        self.changed.insert(RecordKey { kind, id }, Some(record));
    }

    fn remove(&mut self, kind: RecordKind, id: &str) {
        self.changed.insert(RecordKey { kind, id: id.to_owned() }, None);
    }
}

/// Returns the resources of an account in a region.
fn at<'a>(accounts: &'a Accounts, account: &str, region: &str) -> &'a Account {
    static NONE: Account = Account::EMPTY;
    accounts.get(&place(account, region)).unwrap_or(&NONE)
}

fn place(account: &str, region: &str) -> Place {
    Place { account: account.to_owned(), region: region.to_owned() }
}
