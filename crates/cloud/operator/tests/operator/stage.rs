//! A cloud in memory, and a client that signs, counts its writes and may be stopped.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};
use uturn_cloud::authorization::Received;
use uturn_cloud::cloud::{Cloud, Settings, Storage, StorageError};
use uturn_cloud::credentials::Credentials;
use uturn_cloud::health::{HealthOf, HealthView, TargetState};
use uturn_cloud::ids::IdSource;
use uturn_cloud::inventory::Inventory;
use uturn_cloud::quotas::Quotas;
use uturn_cloud::state::{Account, Batch, Place};
use uturn_cloud_api::Action;
use uturn_cloud_api::client::{Answer, CallError, Pace};
use uturn_cloud_api::unserved::Unserved;
use uturn_cloud_api::wire::tc3::{self, ALGORITHM, Payload, Scope, Signable};
use uturn_model::{Cluster, Family, ObjectRef};
use uturn_operator::api::Api;
use uturn_operator::environment::Environment;
use uturn_operator::event::Event;
use uturn_operator::ledger::Ledger;
use uturn_operator::run::{self, RunError};
use uturn_operator::wanted::{self, Wanted};
use uturn_snapshot::{Manifests, Source};

use crate::paced::Paced;

/// The region of the cloud.
pub(crate) const REGION: &str = "ap-guangzhou";

type Accounts = Arc<Mutex<HashMap<Place, Account>>>;

/// Storage that keeps the accounts as they are.
struct Memory(Accounts);

impl Storage for Memory {
    fn commit(&self, batch: &Batch) -> Result<(), StorageError> {
        let mut accounts = self.0.lock().unwrap();
        for (place, changes) in batch {
            let account = accounts.entry(place.clone()).or_default();
            for (key, record) in changes {
                account.apply(key.clone(), record.clone());
            }
        }
        Ok(())
    }
}

/// The targets that answer, and what is not served.
#[derive(Debug, Default)]
struct Alive(Mutex<HashSet<SocketAddr>>, Mutex<HashMap<String, Unserved>>);

impl HealthView for Alive {
    fn state(&self, target: &HealthOf<'_>) -> TargetState {
        if self.0.lock().unwrap().contains(&target.address) {
            TargetState::Alive
        } else {
            TargetState::Unknown
        }
    }

    fn unserved(&self, load_balancer: &str) -> Option<Unserved> {
        self.1.lock().unwrap().get(load_balancer).copied()
    }

    fn unserved_listener(&self, _: &str, listener: &str) -> Option<Unserved> {
        self.1.lock().unwrap().get(listener).copied()
    }
}

/// When a client stops.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Stop {
    Never,
    /// Before this write is sent.
    Before(usize),
    /// After this write was performed: its answer is lost.
    After(usize),
}

/// A cloud and its client.
pub(crate) struct Stage {
    cloud: Cloud,
    alive: Arc<Alive>,
    accounts: Accounts,
    writes: AtomicUsize,
    stop: Mutex<Stop>,
    log: Mutex<Vec<String>>,
    paced: Paced,
    trouble: Mutex<Trouble>,
    /// What the controllers recorded.
    ledger: Mutex<Ledger>,
}

/// What is wrong with the cloud, or with the way to it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Trouble {
    /// Calls whose parameters have this text are not answered.
    pub(crate) hangs: Option<String>,
    /// So many writes are refused with this code.
    pub(crate) refuses: Option<(&'static str, usize)>,
    /// So many batches of targets fail for all targets but the first.
    pub(crate) halves: usize,
    /// How many seconds the clock of the client is behind.
    pub(crate) skew: i64,
}

impl Stage {
    pub(crate) fn new() -> Self {
        Self::with_quotas(Quotas::default())
    }

    /// A cloud that lets an account have as much as it wants, and takes so many requests a second
    /// of each action.
    pub(crate) fn large(rate: u32) -> Self {
        Self::with(Self::boundless(), NonZeroU32::new(rate).map(Pace::new))
    }

    /// Quotas that let an account have as much as it wants.
    pub(crate) fn boundless() -> Quotas {
        Quotas {
            public_load_balancers: usize::MAX,
            private_load_balancers: usize::MAX,
            targets: usize::MAX,
            ..Quotas::default()
        }
    }

    pub(crate) fn with_quotas(quotas: Quotas) -> Self {
        Self::with(quotas, None)
    }

    fn with(quotas: Quotas, pace: Option<Pace>) -> Self {
        let accounts = Accounts::default();
        let settings = Settings { task_time: Some(Duration::ZERO), quotas, ..Settings::default() };
        let alive = Arc::new(Alive::default());
        let cloud = Cloud::new(
            Credentials::parse("id key").unwrap(),
            Inventory::Open,
            settings,
            Box::new(Memory(Arc::clone(&accounts))),
            IdSource::counting(),
            HashMap::new(),
        );
        Self {
            cloud: cloud.with_health(Arc::clone(&alive) as Arc<dyn HealthView>),
            alive,
            accounts,
            writes: AtomicUsize::new(0),
            stop: Mutex::new(Stop::Never),
            log: Mutex::default(),
            paced: Paced::new(pace),
            trouble: Mutex::default(),
            ledger: Mutex::default(),
        }
    }

    /// What the controllers recorded.
    pub(crate) fn ledger(&self) -> Ledger {
        self.ledger.lock().unwrap().clone()
    }

    /// Replaces what the controllers recorded.
    pub(crate) fn set_ledger(&self, ledger: Ledger) {
        *self.ledger.lock().unwrap() = ledger;
    }

    /// The accounts as they are stored.
    pub(crate) fn accounts(&self) -> HashMap<Place, Account> {
        self.accounts.lock().unwrap().clone()
    }

    /// Sets which targets answer, by their addresses. Of the others nothing is known.
    pub(crate) fn set_alive(&self, addresses: &[&str]) {
        let addresses = addresses.iter().map(|address| address.parse().unwrap());
        *self.alive.0.lock().unwrap() = addresses.collect();
    }

    /// Sets which load balancers and listeners are not served, by their ids.
    pub(crate) fn set_unserved(&self, unserved: &[(&str, Unserved)]) {
        let unserved = unserved.iter().map(|(id, why)| ((*id).to_owned(), *why));
        *self.alive.1.lock().unwrap() = unserved.collect();
    }

    /// Stops at a write, counted from now.
    pub(crate) fn stop(&self, stop: Stop) {
        *self.stop.lock().unwrap() = stop;
        self.writes.store(0, Ordering::Relaxed);
    }

    /// How many writes there were since the last call of [`Self::stop`].
    pub(crate) fn writes(&self) -> usize {
        self.writes.load(Ordering::Relaxed)
    }

    /// The writes since the last time that this was asked.
    pub(crate) fn take_log(&self) -> Vec<String> {
        std::mem::take(&mut *self.log.lock().unwrap())
    }

    /// Changes what is wrong.
    pub(crate) fn trouble(&self, trouble: Trouble) {
        *self.trouble.lock().unwrap() = trouble;
    }

    /// The error of a refused write.
    fn refusal(&self) -> Option<CallError> {
        let mut trouble = self.trouble.lock().unwrap();
        let (code, left) = trouble.refuses.as_mut().filter(|(_, left)| *left > 0)?;
        *left -= 1;
        let (code, message) = ((*code).to_owned(), "refused".to_owned());
        Some(CallError::Api { code, message, request_id: left.to_string() })
    }

    /// Whether a batch fails for all targets but the first.
    fn halves(&self) -> bool {
        let mut trouble = self.trouble.lock().unwrap();
        let halves = trouble.halves > 0;
        trouble.halves = trouble.halves.saturating_sub(1);
        halves
    }

    /// How often each action was called since the last time that this was asked.
    pub(crate) fn take_calls(&self) -> BTreeMap<&'static str, usize> {
        self.paced.take()
    }

    /// Tags a load balancer as a user does.
    pub(crate) fn tag(&self, lb: &str, key: &str, value: &str) {
        let resource = format!("qcs::clb:{REGION}:uin/:clb/{lb}");
        let tags = json!([{ "TagKey": key, "TagValue": value }]);
        let parameters = json!({ "ResourceList": [resource], "Tags": tags });
        let answer = self.send("tag", "2018-08-13", "TagResources", &parameters);
        assert!(answer.get("Error").is_none(), "{answer}");
    }

    /// Sends a request as a user does, and returns the answer.
    #[expect(clippy::needless_pass_by_value, reason = "callers write the parameters in place")]
    pub(crate) fn by_hand(&self, action: &str, parameters: Value) -> Value {
        let answer = self.send("clb", "2018-03-17", action, &parameters);
        assert!(answer.get("Error").is_none(), "{action} {parameters}: {answer}");
        answer
    }

    fn send(&self, service: &str, version: &str, action: &str, parameters: &Value) -> Value {
        let right = Timestamp::from_second(1_760_000_000).unwrap();
        let skew = self.trouble.lock().unwrap().skew;
        let now = Timestamp::from_second(right.as_second() - skew).unwrap();
        let body = parameters.to_string();
        let date = tc3::date(now);
        let scope = Scope { date: &date, service };
        let signable = Signable {
            method: "POST",
            query: "",
            headers: vec![("content-type", "application/json"), ("host", service)],
            payload: Payload::Signed(body.as_bytes()),
        };
        let signature = tc3::sign("key", &scope, &signable.string_to_sign(now, &scope));
        let authorization = format!(
            "{ALGORITHM} Credential=id/{scope}, SignedHeaders=content-type;host, \
             Signature={signature}"
        );
        let headers = [
            ("Host", service),
            ("Content-Type", "application/json"),
            ("X-TC-Action", action),
            ("X-TC-Version", version),
            ("X-TC-Region", REGION),
            ("X-TC-Timestamp", &now.as_second().to_string()),
            ("Authorization", &authorization),
        ]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .to_vec();
        let received =
            Received { method: "POST", query: "", headers: &headers, body: body.as_bytes() };
        let answer = self.cloud.answer(&received, right);
        let answer: Value = serde_json::from_slice(&answer).unwrap();
        answer["Response"].clone()
    }

    /// The id of a certificate.
    pub(crate) fn certificate(&self) -> String {
        let lb = self.by_hand("CreateLoadBalancer", json!({ "LoadBalancerType": "OPEN" }));
        let lb = lb["LoadBalancerIds"][0].clone();
        let upload = json!({
            "CertName": "test",
            "CertContent": "-----BEGIN CERTIFICATE-----\nMII=\n-----END CERTIFICATE-----\n",
            "CertKey": "-----BEGIN PRIVATE KEY-----\nMII=\n-----END PRIVATE KEY-----\n",
        });
        self.by_hand(
            "CreateListener",
            json!({ "LoadBalancerId": lb, "Protocol": "TCP_SSL", "Ports": [443],
                "Certificate": upload }),
        );
        let described = self.by_hand("DescribeListeners", json!({ "LoadBalancerId": lb }));
        let id = described["Listeners"][0]["Certificate"]["CertId"].as_str().unwrap().to_owned();
        self.by_hand("DeleteLoadBalancer", json!({ "LoadBalancerIds": [lb] }));
        id
    }

    /// Makes the cloud as the cluster wants it, and checks that nothing is left to be done.
    pub(crate) fn settle(&self, cluster: &Cluster, environment: &Environment) -> Vec<Event> {
        let environment = Environment { ledger: self.ledger(), ..environment.clone() };
        let wanted = wanted::wanted(cluster, &environment).unwrap();
        self.settle_wanted(&wanted, &environment)
    }

    pub(crate) fn settle_wanted(&self, wanted: &Wanted, environment: &Environment) -> Vec<Event> {
        let (plan, _) = self.reconcile(wanted, environment).unwrap_or_else(|errors| {
            let errors: Vec<String> = errors.iter().map(ToString::to_string).collect();
            panic!("{}", errors.join("\n"))
        });
        assert!(plan.is_empty(), "still to be done:\n{plan}");
        plan.events
    }

    pub(crate) fn reconcile(
        &self,
        wanted: &Wanted,
        environment: &Environment,
    ) -> Result<(uturn_operator::plan::Plan, run::Done), Vec<RunError>> {
        let mut ledger = self.ledger();
        let result = block_on(run::reconcile(self, wanted, environment, &mut ledger));
        self.set_ledger(ledger);
        result
    }
}

/// Runs a future to its end.
pub(crate) fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
}

impl Api for Stage {
    async fn call<A: Action>(&self, request: &A) -> Result<Answer<A::Response>, CallError> {
        let stopped = || CallError::Network("stopped".to_owned());
        let mut parameters = request.parameters().unwrap();
        let hangs = self.trouble.lock().unwrap().hangs.clone();
        if hangs.is_some_and(|text| parameters.to_string().contains(&text)) {
            std::future::pending::<()>().await;
        }
        let is_write = !A::NAME.starts_with("Describe");
        self.paced.turn(A::SERVICE, A::NAME).await;
        let number =
            if is_write { self.writes.fetch_add(1, Ordering::Relaxed) } else { usize::MAX };
        let stop = *self.stop.lock().unwrap();
        if matches!(stop, Stop::Before(stop) if is_write && number >= stop) {
            return Err(stopped());
        }
        if matches!(stop, Stop::After(stop) if is_write && number > stop) {
            return Err(stopped());
        }
        if is_write {
            self.log.lock().unwrap().push(format!("{} {parameters}", A::NAME));
        }
        if let Some(error) = is_write.then(|| self.refusal()).flatten() {
            return Err(error);
        }
        let is_batch = A::NAME.starts_with("Batch") && A::NAME.ends_with("Targets");
        let is_half = is_batch && self.halves();
        if is_half {
            parameters["Targets"].as_array_mut().unwrap().truncate(1);
        }
        let mut answer = self.send(A::SERVICE, A::VERSION, A::NAME, &parameters);
        if is_half {
            answer["FailListenerIdSet"] = json!([parameters["Targets"][0]["ListenerId"]]);
        }
        if let Some(error) = answer.get("Error") {
            let text = |member: &str| error[member].as_str().unwrap_or_default().to_owned();
            return Err(CallError::Api {
                code: text("Code"),
                message: format!("{} {parameters}", text("Message")),
                request_id: String::new(),
            });
        }
        if matches!(stop, Stop::After(stop) if is_write && number == stop) {
            return Err(stopped());
        }
        if is_write {
            self.paced.wait(A::NAME, &answer).await;
        }
        let request_id = answer["RequestId"].as_str().unwrap_or_default().to_owned();
        Ok(Answer { request_id, response: serde_json::from_value(answer).unwrap() })
    }
}

/// A cluster of manifests.
pub(crate) fn cluster(text: &str) -> Cluster {
    let source = Source { name: "cluster.yaml".into(), text: text.to_owned() };
    Manifests::of(vec![source]).cluster().unwrap_or_else(|faults| panic!("{faults:?}"))
}

/// What the controllers know of a cluster whose nodes are instances, but for every third.
pub(crate) fn environment(cluster: &Cluster) -> Environment {
    let instance = |(position, node): (usize, &uturn_model::Node)| {
        let address = node.address(Family::V4).filter(|_| position % 3 != 2)?;
        let instance = Inventory::Open.instance_at(REGION, address)?;
        Some((node.name.clone(), instance.id.clone()))
    };
    Environment {
        cluster: "cls-aaaaaaaa".to_owned(),
        network: "vpc-aaaaaaaa".to_owned(),
        instances: cluster.nodes.values().enumerate().filter_map(instance).collect(),
        ..Environment::default()
    }
}

/// The UID that [`Environment::uid`] has for an object.
pub(crate) fn uid(environment: &Environment, object: &ObjectRef) -> String {
    environment.uid(object)
}
