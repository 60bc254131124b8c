//! Client of a machine's admin address, which `docs/lb-operations.md` describes.

use std::collections::BTreeSet;
use std::error::Error;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use bytes::Bytes;
use http::header::{AUTHORIZATION, ETAG, IF_MATCH, IF_NONE_MATCH};
use http::request::Builder;
use http::{Method, Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Full, Limited};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::time::timeout;
use uturn_cloud_api::https::{self, HttpsClient};

use super::DataPlane;

/// The most bytes of an answer.
const MAX_ANSWER: usize = 64 << 20;

/// The most bytes of a refusal that are kept.
const MAX_MESSAGE: usize = 2000;

/// The time after which a request without an answer fails.
const TIMEOUT: Duration = Duration::from_secs(10);

/// The time after which a change of the configuration without an answer fails.
const CHANGE_TIMEOUT: Duration = Duration::from_secs(120);

/// The admin address of a machine.
#[derive(Debug)]
pub(super) struct Admin {
    http: HttpsClient,
    plane: DataPlane,
}

/// The reason why a machine cannot be driven now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Unreachable(pub(super) String);

/// The outcome of a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Outcome<T> {
    /// The change was made.
    Done(T),
    /// The machine refused it.
    Refused(String),
    /// The machine serves another version than the one that the change was for.
    Outdated,
}

/// The configuration that a machine serves.
#[derive(Clone, Debug)]
pub(super) struct Running {
    /// The version of the configuration.
    pub(super) version: String,
    /// The document with the settings of the process.
    pub(super) process: Value,
}

/// The certificates that a machine keeps.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Kept {
    pub(super) folder: PathBuf,
    pub(super) names: BTreeSet<String>,
}

/// The health of a target as a machine reports it.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct TargetRow {
    pub(super) load_balancer: String,
    pub(super) listener: SocketAddr,
    pub(super) protocol: String,
    pub(super) rule_index: usize,
    pub(super) target: String,
    pub(super) alive: bool,
    pub(super) decided: bool,
}

#[derive(Debug, Deserialize)]
struct Targets {
    targets: Vec<TargetRow>,
}

impl Admin {
    pub(super) fn new(plane: DataPlane) -> io::Result<Self> {
        Ok(Self { http: https::client(plane.address.needs_tls())?, plane })
    }

    /// Returns the configuration that the machine serves; `None` if it still has this version.
    pub(super) async fn running(
        &self,
        version: Option<&str>,
    ) -> Result<Option<Running>, Unreachable> {
        let mut request = self.request(Method::GET, "/config");
        if let Some(version) = version {
            request = request.header(IF_NONE_MATCH, format!("\"{version}\""));
        }
        let response = self.exchange(request, Bytes::new(), TIMEOUT).await?;
        match response.status() {
            StatusCode::NOT_MODIFIED => Ok(None),
            StatusCode::OK => {
                let version = tag(&response);
                let list: Value = json(&response)?;
                let mut items = list["items"].as_array().into_iter().flatten();
                let process = items.find(|item| item["kind"] == "DataPlane");
                let process = process.cloned().ok_or_else(|| {
                    Unreachable(
                        "the configuration that it shows has no DataPlane document".to_owned(),
                    )
                })?;
                Ok(Some(Running { version, process }))
            }
            _ => Err(unexpected(&response)),
        }
    }

    /// Makes the machine replace this version of its configuration by these documents, or with
    /// PATCH apply them to it as a change. Returns the new version.
    pub(super) async fn serve(
        &self,
        method: Method,
        documents: Bytes,
        version: &str,
    ) -> Result<Outcome<String>, Unreachable> {
        let request = self.request(method, "/config");
        let request = request.header(IF_MATCH, format!("\"{version}\""));
        let response = self.exchange(request, documents, CHANGE_TIMEOUT).await?;
        match response.status() {
            StatusCode::OK => Ok(Outcome::Done(tag(&response))),
            StatusCode::PRECONDITION_FAILED => Ok(Outcome::Outdated),
            status if is_refusal(status) => Ok(Outcome::Refused(message(&response))),
            _ => Err(unexpected(&response)),
        }
    }

    /// Returns the certificates that the machine keeps; `None` if it takes none.
    pub(super) async fn certificates(&self) -> Result<Option<Kept>, Unreachable> {
        let request = self.request(Method::GET, "/certificates");
        let response = self.exchange(request, Bytes::new(), TIMEOUT).await?;
        match response.status() {
            StatusCode::OK => json(&response).map(Some),
            StatusCode::FORBIDDEN => Ok(None),
            _ => Err(unexpected(&response)),
        }
    }

    /// Stores a certificate with its key on the machine.
    pub(super) async fn keep(&self, name: &str, pem: String) -> Result<Outcome<()>, Unreachable> {
        let request = self.request(Method::PUT, &format!("/certificates/{name}"));
        let response = self.exchange(request, pem.into(), TIMEOUT).await?;
        match response.status() {
            StatusCode::OK => Ok(Outcome::Done(())),
            status if is_refusal(status) => Ok(Outcome::Refused(message(&response))),
            _ => Err(unexpected(&response)),
        }
    }

    /// Removes a certificate from the machine. Returns whether it was removed: the machine keeps
    /// those that it serves.
    pub(super) async fn remove(&self, name: &str) -> Result<bool, Unreachable> {
        let request = self.request(Method::DELETE, &format!("/certificates/{name}"));
        let response = self.exchange(request, Bytes::new(), TIMEOUT).await?;
        match response.status() {
            StatusCode::OK => Ok(true),
            StatusCode::CONFLICT => Ok(false),
            _ => Err(unexpected(&response)),
        }
    }

    /// Returns the health of the machine's targets.
    pub(super) async fn targets(&self) -> Result<Vec<TargetRow>, Unreachable> {
        let request = self.request(Method::GET, "/targets");
        let response = self.exchange(request, Bytes::new(), TIMEOUT).await?;
        match response.status() {
            StatusCode::OK => json(&response).map(|page: Targets| page.targets),
            _ => Err(unexpected(&response)),
        }
    }

    fn request(&self, method: Method, path: &str) -> Builder {
        let request = Request::builder().method(method).uri(self.plane.address.url(path));
        request.header(AUTHORIZATION, self.plane.token.header())
    }

    async fn exchange(
        &self,
        request: Builder,
        body: Bytes,
        limit: Duration,
    ) -> Result<Response<Bytes>, Unreachable> {
        let request =
            request.body(Full::new(body)).map_err(|error| Unreachable(error.to_string()))?;
        let exchange = async {
            let response =
                self.http.request(request).await.map_err(|error| Unreachable(causes(&error)))?;
            let (head, body) = response.into_parts();
            let body = Limited::new(body, MAX_ANSWER).collect().await;
            let body = body.map_err(|error| Unreachable(error.to_string()))?.to_bytes();
            Ok(Response::from_parts(head, body))
        };
        let seconds = limit.as_secs();
        let late = |_| Unreachable(format!("no answer within {seconds} s"));
        timeout(limit, exchange).await.map_err(late)?
    }
}

/// Returns whether a status means that the machine does not accept the content of a request.
fn is_refusal(status: StatusCode) -> bool {
    matches!(
        status,
        StatusCode::BAD_REQUEST | StatusCode::PAYLOAD_TOO_LARGE | StatusCode::INTERNAL_SERVER_ERROR
    )
}

fn tag(response: &Response<Bytes>) -> String {
    let tag = response.headers().get(ETAG).and_then(|value| value.to_str().ok());
    tag.unwrap_or_default().trim_matches('"').to_owned()
}

/// Returns the text of an answer, without trailing white space and shortened to [`MAX_MESSAGE`]
/// characters.
fn message(response: &Response<Bytes>) -> String {
    let text = String::from_utf8_lossy(response.body());
    text.trim_end().chars().take(MAX_MESSAGE).collect()
}

fn json<T: DeserializeOwned>(response: &Response<Bytes>) -> Result<T, Unreachable> {
    serde_json::from_slice(response.body())
        .map_err(|error| Unreachable(format!("its answer is not understood: {error}")))
}

fn unexpected(response: &Response<Bytes>) -> Unreachable {
    Unreachable(format!(
        "it answered with HTTP status {}: {}",
        response.status(),
        message(response)
    ))
}

/// Returns the message of an error with those of all its causes.
fn causes(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}
