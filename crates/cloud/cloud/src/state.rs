//! The resources of each account in each region, and how a request changes them.
//!
//! A request runs in a [`Transaction`]: it reads the account as it stands and collects changed
//! records. Either all of them are kept, or, after an error, none.

mod certificate;
mod custom_config;
mod health_check;
mod listener;
mod load_balancer;
mod record;
mod task;
mod transaction;

use std::collections::BTreeMap;

pub use self::certificate::{Certificate, ListenerCertificate};
pub use self::custom_config::CustomConfig;
pub use self::health_check::{CheckType, HealthCheck, ProbeSourceType};
pub use self::listener::{
    Listener, Protocol, Redirection, Rescheduling, Rule, Scheduler, Target, TargetHolder, TargetsOf,
};
pub use self::load_balancer::{Attributes, IpVersion, LoadBalancer, SnatAddress};
pub use self::record::{Place, Record, RecordKey, RecordKind};
pub use self::task::{Task, TaskStatus};
pub use self::transaction::{Accounts, Batch, Changes, Context, Transaction};

/// The resources of one account in one region.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Account {
    /// Load balancers by their ids.
    pub load_balancers: BTreeMap<String, LoadBalancer>,
    /// Tasks by the ids of the requests that began them.
    pub tasks: BTreeMap<String, Task>,
    /// The load balancers that were created with a client token.
    pub client_tokens: BTreeMap<String, Vec<String>>,
    /// Certificates by their ids. Only the account without a region has any.
    pub certificates: BTreeMap<String, Certificate>,
    /// Custom configurations by their ids.
    pub custom_configs: BTreeMap<String, CustomConfig>,
}

impl Account {
    /// An account without any resource.
    pub const EMPTY: Self = Self {
        load_balancers: BTreeMap::new(),
        tasks: BTreeMap::new(),
        client_tokens: BTreeMap::new(),
        certificates: BTreeMap::new(),
        custom_configs: BTreeMap::new(),
    };

    /// Applies a change that a transaction made, or a record that was stored. `None` removes the
    /// record.
    pub fn apply(&mut self, key: RecordKey, record: Option<Record>) {
        let RecordKey { kind, id } = key;
        match record {
            Some(Record::LoadBalancer(record)) => drop(self.load_balancers.insert(id, record)),
            Some(Record::Task(record)) => drop(self.tasks.insert(id, record)),
            Some(Record::ClientToken(record)) => drop(self.client_tokens.insert(id, record)),
            Some(Record::Certificate(record)) => drop(self.certificates.insert(id, record)),
            Some(Record::CustomConfig(record)) => drop(self.custom_configs.insert(id, record)),
            None => match kind {
                RecordKind::LoadBalancer => drop(self.load_balancers.remove(&id)),
                RecordKind::Task => drop(self.tasks.remove(&id)),
                RecordKind::ClientToken => drop(self.client_tokens.remove(&id)),
                RecordKind::Certificate => drop(self.certificates.remove(&id)),
                RecordKind::CustomConfig => drop(self.custom_configs.remove(&id)),
            },
        }
    }
}
