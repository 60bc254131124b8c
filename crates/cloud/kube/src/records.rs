//! The ledger of ports, stored in ConfigMaps of the controllers' own namespace, where tenants
//! cannot write.
//!
//! Only the process with the lease writes. Each write states the version that it is based on, so
//! that a process that has lost the lease without knowing it changes nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use kube::api::PostParams;
use kube::core::DynamicObject;
use kube::{Api, Client, Error};
use serde_json::{Value, json};
use tokio::time::Instant;
use uturn_operator::ledger::{Ledger, Record};

use crate::kinds::CONFIG_MAP;
use crate::metrics::{Metrics, why};

/// The number of ConfigMaps. Each may have a mebibyte.
const SHARDS: usize = 16;
/// The prefix of the names of the ConfigMaps.
const NAME: &str = "uturn-operator-ledger";
/// The most attempts of a write that conflicts with others.
const ATTEMPTS: usize = 4;
/// The pause before a failed read is repeated.
const AGAIN: Duration = Duration::from_secs(2);

/// The ledger as it is stored.
pub struct Records {
    api: Api<DynamicObject>,
    namespace: String,
    cluster: String,
    metrics: Arc<Metrics>,
    known: Mutex<Known>,
    /// Locked while records are read or written. Holds the time and the reason of the last failed
    /// read.
    turn: tokio::sync::Mutex<Option<(Instant, String)>>,
}

/// The known content of the ConfigMaps.
#[derive(Default)]
struct Known {
    shards: BTreeMap<usize, Shard>,
    ledger: Ledger,
    /// The ids of records that cannot be read, and why.
    unreadable: BTreeMap<String, String>,
    by_uid: BTreeMap<String, BTreeSet<String>>,
}

/// A ConfigMap with a part of the records.
#[derive(Clone, Default)]
struct Shard {
    /// The version of the ConfigMap; `None` if it does not exist.
    version: Option<String>,
    /// The texts of the records, by the ids of the load balancers.
    texts: BTreeMap<String, String>,
}

impl Records {
    /// Returns the ledger in a namespace, without reading it yet.
    pub fn new(client: Client, namespace: &str, cluster: &str, metrics: Arc<Metrics>) -> Self {
        Self {
            api: Api::namespaced_with(client, namespace, &CONFIG_MAP.resource()),
            namespace: namespace.to_owned(),
            cluster: cluster.to_owned(),
            metrics,
            known: Mutex::default(),
            turn: tokio::sync::Mutex::new(None),
        }
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the records of some load balancers.
    pub fn part(&self, ids: &BTreeSet<String>) -> Ledger {
        let known = self.known();
        let mut part = Ledger::default();
        for id in ids {
            if let Some(record) = known.ledger.of(id) {
                part.set(id, record.clone());
            }
        }
        part
    }

    /// Returns why the record of a load balancer cannot be read.
    pub fn unreadable(&self, id: &str) -> Option<String> {
        self.known().unreadable.get(id).cloned()
    }

    /// Returns the ids of the load balancers that have a record.
    pub fn ids(&self) -> BTreeSet<String> {
        self.known().ledger.ids().cloned().collect()
    }

    /// Returns the load balancers in whose records the object with this UID occurs.
    pub fn of_uid(&self, uid: &str) -> BTreeSet<String> {
        self.known().by_uid.get(uid).cloned().unwrap_or_default()
    }

    /// Returns the UIDs of the objects in the record of a load balancer.
    pub fn uids(&self, id: &str) -> BTreeSet<String> {
        let known = self.known();
        let record = known.ledger.of(id);
        record
            .map(|record| record.uids().into_iter().map(str::to_owned).collect())
            .unwrap_or_default()
    }

    /// Reads the ConfigMaps that are not known yet.
    ///
    /// # Errors
    ///
    /// Returns which ConfigMap cannot be read, and why.
    pub async fn load(&self) -> Result<(), String> {
        if self.known().shards.len() == SHARDS {
            return Ok(());
        }
        let mut turn = self.turn.lock().await;
        if let Some((at, why)) = turn.as_ref().filter(|(at, _)| at.elapsed() < AGAIN) {
            let _ = at;
            return Err(why.clone());
        }
        for number in 0..SHARDS {
            if self.known().shards.contains_key(&number) {
                continue;
            }
            match self.read(number).await {
                Ok(shard) => self.known().take(&self.cluster, number, shard),
                Err(error) => {
                    let message = format!(
                        "the ConfigMap {} cannot be read: {}",
                        self.name(number),
                        why(&error)
                    );
                    *turn = Some((Instant::now(), message.clone()));
                    return Err(message);
                }
            }
        }
        *turn = None;
        Ok(())
    }

    /// Replaces the known records by these.
    ///
    /// # Errors
    ///
    /// Returns which ConfigMap cannot be written, or that another process wrote one of the records.
    pub async fn save(&self, records: &BTreeMap<String, Record>) -> Result<(), String> {
        let mut by_shard: BTreeMap<usize, BTreeMap<&String, &Record>> = BTreeMap::new();
        for (id, record) in records {
            by_shard.entry(shard_of(id)).or_default().insert(id, record);
        }
        let _turn = self.turn.lock().await;
        for (number, records) in by_shard {
            self.write(number, &records).await?;
        }
        Ok(())
    }

    async fn write(
        &self,
        number: usize,
        records: &BTreeMap<&String, &Record>,
    ) -> Result<(), String> {
        let name = self.name(number);
        let failed =
            |error: &Error| format!("the ConfigMap {name} cannot be written: {}", why(error));
        for _ in 0..ATTEMPTS {
            let mut shard = self.known().shards.get(&number).cloned().unwrap_or_default();
            for (id, record) in records {
                if record.is_empty() {
                    drop(shard.texts.remove(*id));
                } else {
                    drop(shard.texts.insert((*id).clone(), record.to_text(&self.cluster)));
                }
            }
            let error = match self.put(number, &shard).await {
                Ok(version) => {
                    shard.version = version;
                    self.known().take(&self.cluster, number, shard);
                    return Ok(());
                }
                Err(error) => error,
            };
            let code = match &error {
                Error::Api(status) => status.code,
                _ => 0,
            };
            match code {
                // Somebody deleted the ConfigMap: the known records are written again.
                404 if shard.version.is_some() => {
                    if let Some(shard) = self.known().shards.get_mut(&number) {
                        shard.version = None;
                    }
                }
                409 => {
                    let found = self.read(number).await.map_err(|error| failed(&error))?;
                    let mut known = self.known();
                    let before = known.shards.get(&number).cloned().unwrap_or_default();
                    let is_other = |id: &&String| before.texts.get(*id) != found.texts.get(*id);
                    let other = records.keys().copied().find(is_other).cloned();
                    known.take(&self.cluster, number, found);
                    if let Some(id) = other {
                        return Err(format!("another process wrote the record of {id} meanwhile"));
                    }
                }
                _ => return Err(failed(&error)),
            }
        }
        Err(format!("the ConfigMap {name} cannot be written: other processes keep writing it"))
    }

    async fn read(&self, number: usize) -> Result<Shard, Error> {
        let found = self.api.get_opt(&self.name(number)).await;
        self.metrics.note("get", CONFIG_MAP.plural, found.as_ref().err());
        let Some(found) = found? else { return Ok(Shard::default()) };
        let texts = found.data["data"].as_object().into_iter().flatten();
        let texts = texts.filter_map(|(id, text)| Some((id.clone(), text.as_str()?.to_owned())));
        let texts = texts.collect();
        Ok(Shard { version: found.metadata.resource_version, texts })
    }

    /// Writes a ConfigMap. Returns its new version.
    async fn put(&self, number: usize, shard: &Shard) -> Result<Option<String>, Error> {
        let name = self.name(number);
        let mut value: Value = json!({
            "apiVersion": CONFIG_MAP.api_version(),
            "kind": CONFIG_MAP.kind,
            "metadata": { "name": name, "namespace": self.namespace },
            "data": shard.texts,
        });
        let parameters = PostParams::default();
        let (verb, result) = match &shard.version {
            None => {
                let value = serde_json::from_value(value).map_err(Error::SerdeError)?;
                ("create", self.api.create(&parameters, &value).await)
            }
            Some(version) => {
                value["metadata"]["resourceVersion"] = version.as_str().into();
                let value = serde_json::from_value(value).map_err(Error::SerdeError)?;
                ("update", self.api.replace(&name, &parameters, &value).await)
            }
        };
        self.metrics.note(verb, CONFIG_MAP.plural, result.as_ref().err());
        Ok(result?.metadata.resource_version)
    }

    fn name(&self, number: usize) -> String {
        format!("{NAME}-{number:x}")
    }
}

impl Known {
    /// Replaces the known state of a ConfigMap.
    fn take(&mut self, cluster: &str, number: usize, shard: Shard) {
        let before = self.shards.get(&number).map(|shard| shard.texts.clone()).unwrap_or_default();
        let ids: BTreeSet<&String> = before.keys().chain(shard.texts.keys()).collect();
        for id in ids {
            let text = shard.texts.get(id);
            if text == before.get(id) {
                continue;
            }
            for uid in self.ledger.of(id).map(Record::uids).unwrap_or_default() {
                if let Some(ids) = self.by_uid.get_mut(uid) {
                    ids.remove(id);
                }
            }
            self.unreadable.remove(id);
            let record = match text.map(|text| Record::from_text(text, cluster)) {
                None | Some(Ok(None)) => Record::default(),
                Some(Ok(Some(record))) => record,
                Some(Err(error)) => {
                    self.unreadable.insert(id.clone(), error.to_string());
                    Record::default()
                }
            };
            for uid in record.uids() {
                self.by_uid.entry(uid.to_owned()).or_default().insert(id.clone());
            }
            self.ledger.set(id, record);
        }
        self.by_uid.retain(|_, ids| !ids.is_empty());
        self.shards.insert(number, shard);
    }
}

/// Returns the number of the ConfigMap with a load balancer's record. It must never change for an
/// id, so that existing records are found.
fn shard_of(id: &str) -> usize {
    let hash = id.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    usize::try_from((hash ^ (hash >> 32)) % 16).unwrap_or_default() % SHARDS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_load_balancers_record_is_where_it_was() {
        let found = ["lb-aaaaaaaa", "lb-9f3k2m1q", ""].map(shard_of);
        assert_eq!(found, [2, 10, 1], "a record that moves is lost");
        let all: BTreeSet<usize> =
            (0..400).map(|number| shard_of(&format!("lb-{number:08}"))).collect();
        assert_eq!(all.len(), SHARDS, "all are used");
    }
}
