//! A client of the API: signs requests, sends them, and retries those that may succeed later.

mod creations;
mod endpoint;
mod failure;
mod pace;
mod retry;

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{AUTHORIZATION, CONTENT_TYPE, HOST};
use http::{Method, Request};
use http_body_util::{BodyExt as _, Full, Limited};
use jiff::Timestamp;
use serde::de::DeserializeOwned;
use tokio::time::{sleep, timeout};

pub use self::creations::Creations;
pub use self::endpoint::{Endpoint, InvalidEndpoint};
pub use self::failure::CallError;
pub use self::pace::Pace;
pub use self::retry::Retries;
use crate::api::Action;
use crate::api::clb::{
    CreateLoadBalancerRequest, DescribeLoadBalancersRequest, DescribeTaskStatusRequest,
};
use crate::https::{self, HttpsClient};
use crate::secret_key::SecretKey;
use crate::wire::envelope;
use crate::wire::tc3::{self, Payload, Signable};

/// The most bytes of an answer. A longer one is an error.
const MAX_ANSWER: usize = 64 << 20;

/// The time after which a request without an answer fails.
const TIMEOUT: Duration = Duration::from_secs(30);

/// The pause before the status of a task is first asked for again. Each further pause is twice as
/// long.
const TASK_POLL: Duration = Duration::from_millis(100);

/// The longest of these pauses.
const LONGEST_TASK_POLL: Duration = Duration::from_secs(2);

/// The status code of a load balancer whose creation has ended.
const RUNNING: u64 = 1;

/// The credential, the endpoint and the limits of a client.
#[derive(Clone, Debug)]
pub struct ClientSettings {
    /// The endpoint of the API.
    pub endpoint: Endpoint,
    /// The id of the credential.
    pub secret_id: String,
    /// The key of the credential.
    pub secret_key: SecretKey,
    /// The region of the resources that requests are for.
    pub region: String,
    /// The number of retries, and the pauses between them.
    pub retries: Retries,
    /// The most requests per second for each action; `None` for no limit.
    pub rate: Option<NonZeroU32>,
}

/// A client of the API.
#[derive(Clone, Debug)]
pub struct Client {
    http: HttpsClient,
    settings: ClientSettings,
    pace: Option<Arc<Pace>>,
    creations: Arc<Creations>,
}

/// An answer, with the request id by which the task of an asynchronous request is found.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer<T> {
    /// The id of the request.
    pub request_id: String,
    /// The response of the action.
    pub response: T,
}

impl<T: DeserializeOwned> Answer<T> {
    /// Reads an answer.
    ///
    /// # Errors
    ///
    /// Returns the error that the answer carries, or why the answer is not understood.
    pub fn read(body: &[u8]) -> Result<Self, CallError> {
        failure::read(body)
    }
}

impl Client {
    /// Returns a client that trusts the certificate authorities of the system.
    ///
    /// # Errors
    ///
    /// Returns why the system's certificate authorities cannot be read. An endpoint without TLS
    /// does not need them.
    pub fn new(settings: ClientSettings) -> Result<Self, CallError> {
        let http = https::client(settings.endpoint.needs_tls())
            .map_err(|error| CallError::Setup(error.to_string()))?;
        let pace = settings.rate.map(|rate| Arc::new(Pace::new(rate)));
        Ok(Self { http, settings, pace, creations: Arc::default() })
    }

    /// Performs an action, and retries failures that may be temporary: always when the server says
    /// that it did nothing, and after a broken connection only if the action reads or its request
    /// carries a client token.
    ///
    /// # Errors
    ///
    /// Returns the error of the last attempt: the API's, or why there is no answer.
    pub async fn call<A: Action>(&self, request: &A) -> Result<Answer<A::Response>, CallError> {
        let body = endpoint::body(request)?;
        let is_repeatable = retry::is_repeatable(A::NAME, &body);
        let body = Bytes::from(body.to_string());
        let mut attempt = 0;
        loop {
            let error = match self.attempt::<A>(body.clone()).await {
                Ok(answer) => return Ok(answer),
                Err(error) => error,
            };
            match self.settings.retries.pause(attempt, &error, is_repeatable) {
                Some(pause) => sleep(pause).await,
                None => return Err(error),
            }
            attempt += 1;
        }
    }

    /// Performs an asynchronous action and waits until its task is done.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`Self::call`], and [`CallError::Task`] for a task that failed or is
    /// not done within `limit`.
    pub async fn call_and_wait<A: Action>(
        &self,
        request: &A,
        limit: Duration,
    ) -> Result<Answer<A::Response>, CallError> {
        let answer = self.call(request).await?;
        let created = created::<A>(&answer.response);
        let done = async {
            let ask = |ids| self.running(ids);
            if !created.is_empty() && self.creations.wait(&created, ask).await {
                return Ok(());
            }
            self.task_done(&answer.request_id).await
        };
        match timeout(limit, done).await {
            Ok(done) => done?,
            Err(_) => {
                let message = format!("it is not done after {} s", limit.as_secs());
                return Err(CallError::Task { task: answer.request_id, message });
            }
        }
        Ok(answer)
    }

    /// Returns those of the given load balancers that run.
    async fn running(&self, ids: Vec<String>) -> Result<Vec<String>, CallError> {
        let request = DescribeLoadBalancersRequest {
            load_balancer_ids: Some(ids),
            ..DescribeLoadBalancersRequest::default()
        };
        let found = self.call(&request).await?.response.load_balancer_set.unwrap_or_default();
        let running = found.into_iter().filter(|found| found.status == Some(RUNNING));
        Ok(running.filter_map(|found| found.load_balancer_id).collect())
    }

    /// Waits until a task is done.
    async fn task_done(&self, id: &str) -> Result<(), CallError> {
        let request =
            DescribeTaskStatusRequest { task_id: Some(id.to_owned()), ..Default::default() };
        let mut pause = TASK_POLL;
        loop {
            let task = self.call(&request).await?.response;
            match task.status {
                Some(0) => return Ok(()),
                Some(2) => sleep(pause).await,
                _ => {
                    let message = task.message.unwrap_or_else(|| "it failed".to_owned());
                    return Err(CallError::Task { task: id.to_owned(), message });
                }
            }
            pause = (pause * 2).min(LONGEST_TASK_POLL);
        }
    }

    async fn attempt<A: Action>(&self, body: Bytes) -> Result<Answer<A::Response>, CallError> {
        if let Some(pace) = &self.pace {
            pace.turn(A::SERVICE, A::NAME).await;
        }
        let request = self.signed::<A>(body, Timestamp::now());
        let exchange = async {
            let response =
                self.http.request(request).await.map_err(|error| CallError::network(&error))?;
            let status = response.status();
            let body = Limited::new(response.into_body(), MAX_ANSWER).collect().await;
            let body = body.map_err(|error| CallError::Network(error.to_string()))?.to_bytes();
            if !status.is_success() {
                return Err(CallError::Status(status.as_u16()));
            }
            Ok(body)
        };
        let body = match timeout(TIMEOUT, exchange).await {
            Ok(body) => body?,
            Err(_) => {
                let seconds = TIMEOUT.as_secs();
                return Err(CallError::Network(format!("no answer within {seconds} s")));
            }
        };
        failure::read(&body)
    }

    fn signed<A: Action>(&self, body: Bytes, now: Timestamp) -> Request<Full<Bytes>> {
        let host = self.settings.endpoint.host(A::SERVICE);
        let trace = uuid::Uuid::new_v4().to_string();
        let signable = Signable {
            method: "POST",
            query: "",
            // The action keeps the signature from being used for another one, and the trace id
            // makes signatures of equal requests within one second differ.
            headers: vec![
                ("content-type", envelope::CONTENT_TYPE),
                ("host", &host),
                ("x-tc-action", A::NAME),
                ("x-tc-traceid", &trace),
            ],
            payload: Payload::Signed(&body),
        };
        let settings = &self.settings;
        let (id, key) = (&settings.secret_id, settings.secret_key.reveal());
        let authorization = tc3::authorization(id, key, &signable, now, A::SERVICE);
        Request::builder()
            .method(Method::POST)
            .uri(self.settings.endpoint.url(A::SERVICE))
            .header(HOST, host)
            .header(CONTENT_TYPE, envelope::CONTENT_TYPE)
            .header(AUTHORIZATION, authorization)
            .header("X-TC-Action", A::NAME)
            .header("X-TC-TraceId", &trace)
            .header("X-TC-Version", A::VERSION)
            .header("X-TC-Timestamp", now.as_second().to_string())
            .header("X-TC-Region", &self.settings.region)
            .header("X-TC-Language", "en-US")
            .body(Full::new(body))
            .expect("an endpoint has a host, and all other parts are printable")
    }
}

/// Returns the ids of the load balancers that an answer says are being created.
fn created<A: Action>(response: &A::Response) -> Vec<String> {
    if A::NAME != CreateLoadBalancerRequest::NAME {
        return Vec::new();
    }
    let response = serde_json::to_value(response).unwrap_or_default();
    let ids = response["LoadBalancerIds"].as_array().into_iter().flatten();
    ids.filter_map(|id| id.as_str().map(str::to_owned)).collect()
}
