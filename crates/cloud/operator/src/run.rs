//! Performs plans.

mod requests;

use std::collections::{BTreeMap, BTreeSet};

use uturn_cloud_api::clb::DescribeTaskStatusRequest;
use uturn_cloud_api::client::CallError;
use uturn_model::ObjectRef;

use crate::api::Api;
use crate::clb::{ListenerKey, RuleAt};
use crate::environment::Environment;
use crate::ledger::Ledger;
use crate::observed::observe;
use crate::plan::{BalancerPlan, Call, ListenerRef, Plan, RuleRef, plan};
use crate::wanted::Wanted;

/// The most plans that are made and performed until none has calls left.
const ROUNDS: usize = 3;

/// The reason why a plan was not performed to its end.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// A call failed.
    #[error("{call}: {error}")]
    Call {
        /// The call.
        call: String,
        /// The reason.
        error: CallError,
    },
    /// An answer lacks the id of a created object.
    #[error("{call}: the answer has no id for {what}")]
    NoId {
        /// The call.
        call: String,
        /// The object that was created.
        what: String,
    },
    /// A batch failed for some listeners.
    #[error("{call}: it failed for {}", listeners.join(", "))]
    Partial {
        /// The call.
        call: String,
        /// The ids of the listeners.
        listeners: Vec<String>,
    },
    /// The state of the load balancers could not be read.
    #[error("the existing load balancers could not be read: {0}")]
    Observe(CallError),
}

impl RunError {
    /// Returns whether the API would refuse every other call too.
    fn is_of_all_calls(&self) -> bool {
        matches!(self, Self::Call { error, .. } if refuses_everything(error))
    }

    /// Returns the message without the parts that differ between attempts, such as the ids of
    /// requests.
    pub fn lasting(&self) -> String {
        match self {
            Self::Call { call, error: CallError::Api { code, message, .. } } => {
                format!("{call}: {code}: {message}")
            }
            Self::Call { call, error: CallError::Task { message, .. } } => {
                format!("{call}: its task failed: {message}")
            }
            other => other.to_string(),
        }
    }
}

/// Returns whether the API would refuse every other call too: it cannot be reached, or it does not
/// accept the caller.
pub fn refuses_everything(error: &CallError) -> bool {
    match error {
        CallError::Connect(_) => true,
        CallError::Api { code, .. } => code.starts_with("AuthFailure"),
        _ => false,
    }
}

/// The result of performing a plan.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Done {
    /// The number of calls that succeeded.
    pub calls: usize,
    /// The ids of the load balancers that were created.
    pub created: Vec<String>,
    /// The ids of the listeners that were created, by load balancer and port.
    pub listeners: BTreeMap<String, BTreeMap<ListenerKey, String>>,
}

/// Performs the calls for each load balancer, one after the other. A failed call for one load
/// balancer does not stop the calls for others.
///
/// # Errors
///
/// Returns the failures, with the result of the calls that succeeded.
pub async fn run<A: Api>(api: &A, plan: &Plan) -> Result<Done, (Done, Vec<RunError>)> {
    let (mut done, mut errors) = (Done::default(), Vec::new());
    for balancer in &plan.balancers {
        let failed = run_balancer(api, balancer, &BTreeSet::new(), &mut done).await;
        errors.extend(failed.into_iter().map(|failed| failed.error));
    }
    if errors.is_empty() { Ok(done) } else { Err((done, errors)) }
}

/// Brings the observed state to the wanted state, and updates the ledger. Returns the last plan,
/// whose events are current and which has no calls unless something changed meanwhile.
///
/// # Errors
///
/// Returns the failures of the first round that has any.
pub async fn reconcile<A: Api>(
    api: &A,
    wanted: &Wanted,
    environment: &Environment,
    ledger: &mut Ledger,
) -> Result<(Plan, Done), Vec<RunError>> {
    let mut all = Done::default();
    let mut rounds = 0;
    let mut environment = environment.clone();
    loop {
        environment.ledger.clone_from(ledger);
        let observed = observe(api, &environment, wanted)
            .await
            .map_err(|error| vec![RunError::Observe(error)])?;
        let plan = plan(wanted, &observed, &environment);
        for (id, record) in &plan.records {
            ledger.set(id, record.clone());
        }
        if plan.is_empty() || rounds == ROUNDS {
            return Ok((plan, all));
        }
        rounds += 1;
        let (done, errors) = match run(api, &plan).await {
            Ok(done) => (done, Vec::new()),
            Err(failed) => failed,
        };
        for (id, listeners) in &done.listeners {
            ledger.created(id, listeners);
        }
        if !errors.is_empty() {
            return Err(errors);
        }
        all.calls += done.calls;
        all.created.extend(done.created);
    }
}

/// A call that failed.
#[derive(Debug)]
pub struct Failed {
    /// The objects that the call was for.
    pub objects: BTreeSet<ObjectRef>,
    /// The reason of the failure.
    pub error: RunError,
}

/// Performs the calls for one load balancer, in order. Leaves out the calls for `blocked` objects
/// and, on a shared load balancer, those for objects of failed calls; otherwise stops at the first
/// failure. Returns the failed calls.
pub async fn run_balancer<A: Api>(
    api: &A,
    plan: &BalancerPlan,
    blocked: &BTreeSet<ObjectRef>,
    done: &mut Done,
) -> Vec<Failed> {
    let mut ids = Ids { balancer: plan.id.clone().unwrap_or_default(), ..Ids::default() };
    let (mut blocked, mut failed) = (blocked.clone(), Vec::new());
    for (place, call) in plan.calls.iter().enumerate() {
        let objects = plan.objects_of(place);
        if objects.iter().any(|object| blocked.contains(*object)) {
            continue;
        }
        let objects: BTreeSet<ObjectRef> = objects.into_iter().cloned().collect();
        if let Err(error) = requests::perform(api, call, &mut ids).await {
            let ends_all = !plan.is_shared() || error.is_of_all_calls();
            blocked.extend(objects.iter().cloned());
            failed.push(Failed { objects, error });
            if ends_all { break } else { continue }
        }
        done.calls += 1;
        match call {
            Call::CreateBalancer(_) => done.created.push(ids.balancer.clone()),
            Call::CreateListener { key, .. } => {
                let created = ids.listeners.get(key).map(|id| (*key, id.clone()));
                done.listeners.entry(ids.balancer.clone()).or_default().extend(created);
            }
            _ => {}
        }
    }
    failed
}

/// The ids of the objects that calls are on.
#[derive(Clone, Debug, Default)]
struct Ids {
    balancer: String,
    listeners: BTreeMap<ListenerKey, String>,
    rules: BTreeMap<RuleAt, String>,
}

impl Ids {
    fn listener(&self, listener: &ListenerRef) -> String {
        let created = || self.listeners.get(&listener.key).cloned();
        listener.id.clone().or_else(created).unwrap_or_default()
    }

    fn rule(&self, rule: &RuleRef) -> String {
        let at = RuleAt { listener: rule.listener, rule: rule.key.clone() };
        let created = || self.rules.get(&at).cloned();
        rule.id.clone().or_else(created).unwrap_or_default()
    }
}

/// Returns the id of a load balancer that was created. If the answer has no id, the task has it.
async fn created<A: Api>(
    api: &A,
    call: &Call,
    ids: Option<Vec<String>>,
    task: &str,
) -> Result<String, RunError> {
    if let Some(id) = ids.and_then(|ids| ids.into_iter().next()) {
        return Ok(id);
    }
    let request = DescribeTaskStatusRequest {
        task_id: Some(task.to_owned()),
        ..DescribeTaskStatusRequest::default()
    };
    let failed = |error| RunError::Call { call: call.to_string(), error };
    let answer = api.call(&request).await.map_err(failed)?.response;
    let id = answer.load_balancer_ids.and_then(|ids| ids.into_iter().next());
    id.ok_or_else(|| RunError::NoId { call: call.to_string(), what: "a load balancer".to_owned() })
}
