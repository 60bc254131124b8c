//! A cloud with storage in memory, and a client that signs.

use std::cell::Cell;
use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use uturn_cloud::authorization::Received;
use uturn_cloud::cloud::{Batch, Cloud, Settings, Storage, StorageError, Work};
use uturn_cloud::credentials::Credentials;
use uturn_cloud::ids::IdSource;
use uturn_cloud::inventory::Inventory;
use uturn_cloud::state::{Accounts, Place, Record, RecordKey};
use uturn_cloud::store::Store;
use uturn_cloud_api::schema::{Service, services};
use uturn_cloud_api::wire::tc3::{self, ALGORITHM, Payload, Scope, Signable};

use crate::codes;

/// The subnet of the private load balancers here.
pub(crate) const SUBNET: &str = "subnet-aaaaaaaa";
/// A region with two public addresses, one network with one subnet, and one security group.
pub(crate) const SMALL: &str = r#"{ "regions": [{
    "name": "ap-test",
    "publicAddresses": ["198.51.100.0/30"],
    "networks": [
        { "id": "vpc-aaaaaaaa", "addresses": "10.0.0.0/16", "subnets": [
            { "id": "subnet-aaaaaaaa", "addresses": "10.0.1.0/29", "zone": "ap-test-1" }] },
        { "id": "vpc-bbbbbbbb", "addresses": "10.1.0.0/16" }
    ],
    "securityGroups": ["sg-aaaaaaaa"]
}]}"#;

/// Records as they are stored.
type Records = BTreeMap<RecordKey, Record>;

/// Storage that lasts as long as its owner.
#[derive(Clone, Debug, Default)]
struct Memory(Arc<Mutex<HashMap<Place, Records>>>);

impl Storage for Memory {
    fn commit(&self, batch: &Batch) -> Result<(), StorageError> {
        let mut places = self.0.lock().unwrap();
        for (place, changes) in batch {
            let records = places.entry(place.clone()).or_default();
            for (key, record) in changes {
                match record {
                    Some(record) => drop(records.insert(key.clone(), record.clone())),
                    None => drop(records.remove(key)),
                }
            }
        }
        Ok(())
    }
}

/// A cloud and its client.
pub(crate) struct Harness {
    cloud: Cloud,
    memory: Memory,
    now: Cell<Timestamp>,
    region: Cell<&'static str>,
}

impl Harness {
    /// A cloud whose tasks are done at once and whose inventory has everything.
    pub(crate) fn new() -> Self {
        Self::with(Inventory::Open, "ap-guangzhou", Duration::ZERO)
    }

    /// A cloud with the inventory [`SMALL`].
    pub(crate) fn small() -> Self {
        Self::of(SMALL)
    }

    /// A cloud with this inventory of the region `ap-test`.
    pub(crate) fn of(inventory: &str) -> Self {
        Self::with(Inventory::parse(inventory).unwrap(), "ap-test", Duration::ZERO)
    }

    /// A cloud whose tasks take one second.
    pub(crate) fn slow() -> Self {
        Self::with(Inventory::Open, "ap-guangzhou", Duration::from_secs(1))
    }

    /// A cloud that is open, whose settings are these.
    pub(crate) fn set(settings: Settings) -> Self {
        let task_time = Some(Duration::ZERO);
        Self::with_settings(Inventory::Open, "ap-guangzhou", Settings { task_time, ..settings })
    }

    fn with(inventory: Inventory, region: &'static str, task_time: Duration) -> Self {
        let settings = Settings { task_time: Some(task_time), ..Settings::default() };
        Self::with_settings(inventory, region, settings)
    }

    fn with_settings(inventory: Inventory, region: &'static str, settings: Settings) -> Self {
        let memory = Memory::default();
        let cloud = Cloud::new(
            Credentials::parse("id key").unwrap(),
            inventory,
            settings,
            Box::new(memory.clone()),
            IdSource::counting(),
            HashMap::new(),
        );
        let now = Cell::new(Timestamp::from_second(1_760_000_000).unwrap());
        Self { cloud, memory, now, region: Cell::new(region) }
    }

    /// The same cloud, of which only what was stored is left. `name` is of a folder that no other
    /// test has.
    pub(crate) fn restarted(self, name: &str) -> Self {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        // An earlier run may have left it.
        let _ = fs::remove_dir_all(&folder);
        let places = self.memory.0.lock().unwrap().clone();
        let changes = |records: Records| {
            records.into_iter().map(|(key, record)| (key, Some(record))).collect()
        };
        let batch = places.into_iter().map(|(place, records)| (place, changes(records))).collect();
        let (store, _) = Store::open(&folder).unwrap();
        store.commit(&batch).unwrap();
        drop(store);
        let (_, accounts) = Store::open(&folder).unwrap();
        fs::remove_dir_all(&folder).unwrap();
        let cloud = Cloud::new(
            Credentials::parse("id key").unwrap(),
            Inventory::Open,
            Settings { task_time: Some(Duration::ZERO), ..Settings::default() },
            Box::new(self.memory.clone()),
            IdSource::random(),
            accounts,
        );
        Self { cloud, ..self }
    }

    /// Creates the load balancers that the inventory states.
    pub(crate) fn create_first(&self) {
        self.cloud.create_first().unwrap();
    }

    /// Sends what follows to this region.
    pub(crate) fn enter(&self, region: &'static str) {
        self.region.set(region);
    }

    /// All accounts as they are stored.
    pub(crate) fn accounts(&self) -> Accounts {
        let mut accounts = Accounts::new();
        for (place, records) in self.memory.0.lock().unwrap().clone() {
            let account = accounts.entry(place).or_default();
            records.into_iter().for_each(|(key, record)| account.apply(key, Some(record)));
        }
        accounts
    }

    /// What a data plane has to serve.
    pub(crate) fn work(&self) -> Work {
        self.cloud.work()
    }

    /// Lets time pass.
    pub(crate) fn wait(&self, seconds: i64) {
        self.now.set(self.now.get() + SignedDuration::from_secs(seconds));
    }

    /// Everything that is stored.
    pub(crate) fn stored(&self) -> String {
        format!("{:?}", self.memory.0.lock().unwrap())
    }

    /// Sends a request, and returns its answer or the code and the text of its error. An error
    /// has to be one that the action is documented with, and has to leave what is stored.
    pub(crate) fn send(&self, action: &str, parameters: &Value) -> Result<Value, (String, String)> {
        let before = self.stored();
        let body = parameters.to_string();
        let headers = self.headers(action, body.as_bytes());
        let received =
            Received { method: "POST", query: "", headers: &headers, body: body.as_bytes() };
        let answer = self.cloud.answer(&received, self.now.get());
        let answer: Value = serde_json::from_slice(&answer).unwrap();
        let response = answer["Response"].clone();
        let Some(error) = response.get("Error") else { return Ok(response) };
        let text = |member: &str| error[member].as_str().unwrap().to_owned();
        let (code, message) = (text("Code"), text("Message"));
        assert!(codes::has(action, &code), "{action} has no {code}: {message}");
        assert_eq!(self.stored(), before, "{action} failed and changed something");
        Err((code, message))
    }

    /// The answer to a request that succeeds.
    pub(crate) fn ok(&self, action: &str, parameters: Value) -> Value {
        self.send(action, &parameters)
            .unwrap_or_else(|error| panic!("{action} {parameters}: {error:?}"))
    }

    /// The code of a request that fails, with a text that has this part.
    pub(crate) fn code(&self, action: &str, parameters: Value, part: &str) -> String {
        match self.send(action, &parameters) {
            Ok(answer) => panic!("{action} {parameters} succeeded: {answer}"),
            Err((code, text)) => {
                assert!(text.contains(part), "{action} {parameters}: {text:?} lacks {part:?}");
                code
            }
        }
    }

    fn headers(&self, action: &str, body: &[u8]) -> Vec<(String, String)> {
        let now = self.now.get();
        let date = tc3::date(now);
        let service = service_of(action);
        let scope = Scope { date: &date, service: &service.name };
        let signable = Signable {
            method: "POST",
            query: "",
            headers: vec![("content-type", "application/json"), ("host", "clb")],
            payload: Payload::Signed(body),
        };
        let signature = tc3::sign("key", &scope, &signable.string_to_sign(now, &scope));
        let authorization = format!(
            "{ALGORITHM} Credential=id/{scope}, SignedHeaders=content-type;host, \
             Signature={signature}"
        );
        [
            ("Host", "clb"),
            ("Content-Type", "application/json"),
            ("X-TC-Action", action),
            ("X-TC-Version", &service.version),
            ("X-TC-Region", self.region.get()),
            ("X-TC-Timestamp", &now.as_second().to_string()),
            ("Authorization", &authorization),
        ]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .to_vec()
    }

    /// A public load balancer.
    pub(crate) fn load_balancer(&self) -> String {
        let answer = self.ok("CreateLoadBalancer", json!({ "LoadBalancerType": "OPEN" }));
        text(&answer["LoadBalancerIds"][0])
    }

    /// A listener on a load balancer, with these members beside the protocol and the port.
    pub(crate) fn listener(&self, lb: &str, protocol: &str, port: u16, more: Value) -> String {
        let mut parameters = more;
        parameters["LoadBalancerId"] = lb.into();
        parameters["Protocol"] = protocol.into();
        parameters["Ports"] = json!([port]);
        text(&self.ok("CreateListener", parameters)["ListenerIds"][0])
    }

    /// A rule of a listener.
    pub(crate) fn rule(&self, lb: &str, listener: &str, rule: Value) -> String {
        let parameters = json!({ "LoadBalancerId": lb, "ListenerId": listener, "Rules": [rule] });
        text(&self.ok("CreateRule", parameters)["LocationIds"][0])
    }

    /// A load balancer as it is described.
    pub(crate) fn described(&self, lb: &str) -> Value {
        let answer = self.ok("DescribeLoadBalancers", json!({ "LoadBalancerIds": [lb] }));
        answer["LoadBalancerSet"][0].clone()
    }

    /// The listeners of a load balancer as they are described.
    pub(crate) fn listeners(&self, lb: &str) -> Value {
        self.ok("DescribeListeners", json!({ "LoadBalancerId": lb }))["Listeners"].clone()
    }
}

/// The service of an action; no two services have actions of one name here.
fn service_of(action: &str) -> &'static Service {
    let mut services = services().iter().filter(|service| service.actions.contains(action));
    services.next().unwrap_or_else(|| panic!("no service has {action}"))
}

/// The text of a member.
pub(crate) fn text(value: &Value) -> String {
    value.as_str().unwrap_or_else(|| panic!("{value} is no text")).to_owned()
}

/// An object with the members of both.
pub(crate) fn with(base: &Value, more: &Value) -> Value {
    let mut merged = base.clone();
    for (name, value) in more.as_object().unwrap() {
        merged[name] = value.clone();
    }
    merged
}

/// A certificate with its content.
pub(crate) fn upload() -> Value {
    json!({
        "CertName": "test",
        "CertContent": "-----BEGIN CERTIFICATE-----\nMII=\n-----END CERTIFICATE-----\n",
        "CertKey": "-----BEGIN PRIVATE KEY-----\nMII=\n-----END PRIVATE KEY-----\n",
    })
}
