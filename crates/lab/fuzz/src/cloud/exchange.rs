//! Requests to a cloud in memory, and the promises about its answers.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use jiff::Timestamp;
use serde_json::Value;
use uturn_cloud::authorization::Received;
use uturn_cloud::cloud::{Batch, Cloud, Settings, Storage, StorageError};
use uturn_cloud::credentials::Credentials;
use uturn_cloud::ids::IdSource;
use uturn_cloud::inventory::Inventory;
use uturn_cloud::state::Record;
use uturn_cloud_api::schema::Service;
use uturn_cloud_api::wire::error::ErrorCode;
use uturn_cloud_api::wire::tc3::{self, Payload, Signable};

/// A request as text: a first line, headers, an empty line, a body.
pub(super) struct Lines<'a> {
    pub(super) first: Cow<'a, str>,
    pub(super) headers: Vec<(String, String)>,
    pub(super) body: &'a [u8],
}

impl<'a> Lines<'a> {
    pub(super) fn of(data: &'a [u8]) -> Self {
        let end = data.windows(2).position(|pair| pair == b"\n\n");
        let (head, body) = match end {
            Some(end) => (&data[..end], &data[end + 2..]),
            None => (data, &data[data.len()..]),
        };
        let mut lines = head.split(|byte| *byte == b'\n').map(String::from_utf8_lossy);
        let first = lines.next().unwrap_or_default();
        let headers = lines.map(|line| {
            let (name, value) = line.split_once(": ").unwrap_or((&line, ""));
            (name.to_owned(), value.to_owned())
        });
        Self { first, headers: headers.collect(), body }
    }
}

/// The accounts of the records that were stored, in order.
#[derive(Clone, Debug, Default)]
struct Memory(Arc<Mutex<Vec<String>>>);

impl Memory {
    /// Returns the accounts of which records were stored.
    fn accounts(&self) -> Vec<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Storage for Memory {
    fn commit(&self, batch: &Batch) -> Result<(), StorageError> {
        for (place, changes) in batch {
            for record in changes.values().flatten() {
                let json = serde_json::to_vec(record).expect("records are stored as JSON");
                let again: Record = serde_json::from_slice(&json)
                    .unwrap_or_else(|error| panic!("{record:?} is refused: {error}"));
                assert_eq!(again, *record, "a record is read as it was written");
            }
            let mut accounts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            accounts.push(place.account.clone());
        }
        Ok(())
    }
}

/// A cloud with two accounts.
pub(super) struct Exchange {
    cloud: Cloud,
    memory: Memory,
    now: Timestamp,
}

impl Exchange {
    pub(super) fn new(now: Timestamp) -> Self {
        let memory = Memory::default();
        let cloud = Cloud::new(
            Credentials::parse("first key\nother key\n").expect("written here"),
            Inventory::Open,
            Settings { task_time: Some(std::time::Duration::ZERO), ..Settings::default() },
            Box::new(memory.clone()),
            IdSource::counting(),
            HashMap::new(),
        );
        Self { cloud, memory, now }
    }

    /// Sends the request of a line: an action and its body, preceded by `!` if the request is the
    /// other account's. Returns whether the request succeeded.
    pub(super) fn send(&self, line: &[u8]) -> bool {
        let (account, line) = match line.strip_prefix(b"!") {
            Some(line) => ("other", line),
            None => ("first", line),
        };
        let end = line.iter().position(|byte| *byte == b' ').unwrap_or(line.len());
        let (action, body) = (String::from_utf8_lossy(&line[..end]), &line[end..]);
        let (service, object) = match super::request_of(&action) {
            Some((service, _)) => (service, service.response(&action)),
            None => (&super::services()[0], None),
        };
        let before = self.memory.accounts();
        let headers = self.headers(account, service, &action, body);
        let received = Received { method: "POST", query: "", headers: &headers, body };
        let answer = self.cloud.answer(&received, self.now);
        let answer: Value = serde_json::from_slice(&answer).expect("an answer is JSON");
        let response = &answer["Response"];
        let id = response["RequestId"].as_str().expect("an answer has the request's id");
        assert_eq!(id.len(), 36, "{id}");

        let Some(error) = response.get("Error") else {
            let after = self.memory.accounts();
            assert!(after[before.len()..].iter().all(|changed| changed == account), "{after:?}");
            let object = object.expect("the schema has every action that is performed");
            let checked = service.check(object, response);
            assert!(checked.is_ok(), "{action}: {checked:?}: {response}");
            return true;
        };
        let code = error["Code"].as_str().expect("an error has a code");
        assert!(ErrorCode::ALL.iter().any(|known| known.as_str() == code), "{code}");
        assert_ne!(code, ErrorCode::InternalError.as_str(), "{action}: {error}");
        assert!(!code.starts_with("AuthFailure"), "{action}: {error}");
        assert!(error["Message"].as_str().is_some_and(|message| !message.is_empty()), "{error}");
        assert_eq!(self.memory.accounts(), before, "{action} failed and changed something");
        false
    }

    fn headers(
        &self,
        account: &str,
        service: &Service,
        action: &str,
        body: &[u8],
    ) -> Vec<(String, String)> {
        let signable = Signable {
            method: "POST",
            query: "",
            headers: vec![("content-type", "application/json"), ("host", "clb")],
            payload: Payload::Signed(body),
        };
        let signed = tc3::authorization(account, "key", &signable, self.now, &service.name);
        let headers = [
            ("Host", "clb"),
            ("Content-Type", "application/json"),
            ("Authorization", &signed),
            ("X-TC-Action", action),
            ("X-TC-Version", &service.version),
            ("X-TC-Region", "ap-guangzhou"),
            ("X-TC-Timestamp", &self.now.as_second().to_string()),
        ];
        headers.map(|(name, value)| (name.to_owned(), value.to_owned())).into()
    }
}
