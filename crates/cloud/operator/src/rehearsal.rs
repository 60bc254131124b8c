//! The requests of a plan, without sending them. Placeholders in words stand for ids that the API
//! would assign.

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde_json::{Value, json};
use uturn_cloud_api::Action;
use uturn_cloud_api::client::{Answer, CallError};

use crate::api::Api;
use crate::plan::BalancerPlan;
use crate::run::{Done, RunError, run_balancer};

/// A request that performing a plan would send.
#[derive(Clone, Debug, PartialEq)]
pub struct Request {
    /// The name of the action.
    pub action: &'static str,
    /// The parameters.
    pub parameters: Value,
}

/// Returns the requests of a plan, in order: one for each call.
///
/// # Errors
///
/// Returns the failure of a call for which there is no request.
pub async fn requests(plan: &BalancerPlan) -> Result<Vec<Request>, RunError> {
    let recorder = Recorder::default();
    let failed = run_balancer(&recorder, plan, &BTreeSet::new(), &mut Done::default()).await;
    if let Some(failed) = failed.into_iter().next() {
        return Err(failed.error);
    }
    let requests = std::mem::take(&mut *recorder.requests());
    Ok(requests)
}

/// An API that only records requests.
#[derive(Debug, Default)]
struct Recorder {
    requests: Mutex<Vec<Request>>,
}

impl Recorder {
    fn requests(&self) -> MutexGuard<'_, Vec<Request>> {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Api for Recorder {
    async fn call<A: Action>(&self, request: &A) -> Result<Answer<A::Response>, CallError> {
        let setup = |error: serde_json::Error| CallError::Setup(format!("{}: {error}", A::NAME));
        let parameters = request.parameters().map_err(setup)?;
        let response = serde_json::from_value(answer(A::NAME, &parameters)).map_err(setup)?;
        self.requests().push(Request { action: A::NAME, parameters });
        Ok(Answer { request_id: String::new(), response })
    }
}

/// Returns the answer that the API would give, with words for ids.
fn answer(action: &str, parameters: &Value) -> Value {
    let text = |value: &Value| match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let each = |member: &str| parameters[member].as_array().into_iter().flatten();
    match action {
        "CreateLoadBalancer" => json!({ "LoadBalancerIds": ["<new load balancer>"] }),
        "CreateListener" => {
            let protocol = text(&parameters["Protocol"]);
            let ids = each("Ports").map(|port| format!("<new listener {port} {protocol}>"));
            json!({ "ListenerIds": ids.collect::<Vec<_>>() })
        }
        "CreateRule" => {
            let name = |rule: &Value| {
                let domain = rule.get("Domain").map(text).unwrap_or_default();
                format!("<new rule {domain}{}>", text(&rule["Url"]))
            };
            json!({ "LocationIds": each("Rules").map(name).collect::<Vec<_>>() })
        }
        _ => json!({}),
    }
}
