//! A cloud with two accounts, and every way to sign.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;
use uturn_cloud::authorization::Received;
use uturn_cloud::cloud::{Batch, Cloud, Settings, Storage, StorageError};
use uturn_cloud::credentials::Credentials;
use uturn_cloud::ids::IdSource;
use uturn_cloud::inventory::Inventory;
use uturn_cloud_api::schema::services;
use uturn_cloud_api::wire::tc3::{self, Payload, Signable};

use crate::requests::OwnersRequest;

/// Where everything is.
pub(crate) const REGION: &str = "ap-guangzhou";

/// What is stored of each account, as text.
type Texts = BTreeMap<String, BTreeMap<String, String>>;

/// Storage that lasts as long as its owner.
#[derive(Clone, Debug, Default)]
struct Memory(Arc<Mutex<Texts>>);

impl Storage for Memory {
    fn commit(&self, batch: &Batch) -> Result<(), StorageError> {
        let mut accounts = self.0.lock().unwrap();
        for (place, changes) in batch {
            let records = accounts.entry(place.account.clone()).or_default();
            for (key, record) in changes {
                let key = format!("{} {key:?}", place.region);
                match record {
                    Some(record) => drop(records.insert(key, format!("{record:?}"))),
                    None => drop(records.remove(&key)),
                }
            }
        }
        Ok(())
    }
}

/// Who signs a request, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Signer {
    /// The owner of everything.
    Owner,
    /// The owner of another account.
    Other,
    /// There is no signature.
    None,
    /// An id that the server does not know.
    Unknown,
    /// The owner's id with another key.
    WrongKey,
    /// The owner, an hour ago.
    Expired,
    /// The owner, in an hour.
    Early,
    /// The owner, for another body.
    OtherBody,
}

/// A cloud whose storage can be looked at.
pub(crate) struct Served {
    cloud: Cloud,
    memory: Memory,
}

impl Served {
    pub(crate) fn new() -> Self {
        Self::over(Inventory::Open)
    }

    /// A cloud that has what this inventory states.
    pub(crate) fn with(inventory: &str) -> Self {
        Self::over(Inventory::parse(inventory).unwrap())
    }

    fn over(inventory: Inventory) -> Self {
        let memory = Memory::default();
        let cloud = Cloud::new(
            Credentials::parse("owner key\nother key2\n").unwrap(),
            inventory,
            Settings { task_time: Some(Duration::ZERO), ..Settings::default() },
            Box::new(memory.clone()),
            IdSource::counting(),
            HashMap::new(),
        );
        Self { cloud, memory }
    }

    /// Everything that is stored, by account.
    pub(crate) fn stored(&self) -> Texts {
        self.memory.0.lock().unwrap().clone()
    }

    /// Everything that is stored of an account.
    pub(crate) fn stored_of(&self, account: &str) -> BTreeMap<String, String> {
        self.stored().remove(account).unwrap_or_default()
    }

    /// Sends a request and returns the `Response` of its answer. One that succeeds has to agree
    /// with the schema.
    pub(crate) fn send(&self, signer: Signer, request: &OwnersRequest) -> Value {
        let body = request.parameters.to_string();
        let headers = headers(signer, request, body.as_bytes());
        let received =
            Received { method: "POST", query: "", headers: &headers, body: body.as_bytes() };
        let answer: Value = serde_json::from_slice(&self.cloud.answer(&received, now())).unwrap();
        let response = answer["Response"].clone();
        if failed(&response).is_none() {
            let service = services().iter().find(|service| service.name == request.service);
            let service = service.unwrap();
            let object = service.response(request.action).unwrap();
            service
                .check(object, &response)
                .unwrap_or_else(|error| panic!("{}: {error}: {response}", request.action));
        }
        response
    }
}

/// The code of an answer that is an error.
pub(crate) fn failed(response: &Value) -> Option<&str> {
    response.get("Error")?["Code"].as_str()
}

fn now() -> Timestamp {
    Timestamp::from_second(1_760_000_000).unwrap()
}

fn headers(signer: Signer, request: &OwnersRequest, body: &[u8]) -> Vec<(String, String)> {
    let hour = SignedDuration::from_hours(1);
    let time = match signer {
        Signer::Expired => now() - hour,
        Signer::Early => now() + hour,
        _ => now(),
    };
    let (id, key) = match signer {
        Signer::Other => ("other", "key2"),
        Signer::Unknown => ("stranger", "key"),
        Signer::WrongKey => ("owner", "key2"),
        _ => ("owner", "key"),
    };
    let signable = Signable {
        method: "POST",
        query: "",
        headers: vec![("content-type", "application/json"), ("host", "clb")],
        payload: Payload::Signed(if signer == Signer::OtherBody { b"{}  " } else { body }),
    };
    let version = services().iter().find(|service| service.name == request.service);
    let mut headers = vec![
        ("Host", "clb".to_owned()),
        ("Content-Type", "application/json".to_owned()),
        ("X-TC-Action", request.action.to_owned()),
        ("X-TC-Version", version.unwrap().version.clone()),
        ("X-TC-Region", REGION.to_owned()),
        ("X-TC-Timestamp", time.as_second().to_string()),
    ];
    if signer != Signer::None {
        let header = tc3::authorization(id, key, &signable, time, request.service);
        headers.push(("Authorization", header));
    }
    headers.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}
