//! Single requests to an API server, and its answers.

use std::pin::Pin;
use std::time::Duration;

use bytes::Bytes;
use futures_util::Stream;
use http::header::{ACCEPT, LOCATION};
use http::{HeaderValue, Request, Uri};
use http_body_util::{BodyExt as _, Collected, LengthLimitError, Limited};
use kube::Client;
use kube::api::{WatchEvent, WatchParams};
use kube::client::Body;
use kube::core::Status;
use serde_json::Value;

use crate::access::Access;
use crate::credentials::NoCredentials;
use crate::error::{LiveError, with_causes};

/// The number of times that a request is sent that the API server puts off, or that has no answer.
const MAX_TRIES: u32 = 5;
/// The pause before the second try. Each further one is twice as long.
const PAUSE: Duration = Duration::from_millis(250);

/// The most bytes of an answer. A page has 500 objects.
pub(crate) const MAX_ANSWER: usize = 256 << 20;

/// The longest silence of an API server, unless another limit is set.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// An API server.
pub struct Server {
    client: Client,
    url: String,
    user: String,
    namespace: String,
    /// The longest silence of the server.
    patience: Duration,
    /// The proxy in front of the server: scheme, host and port.
    proxy: Option<String>,
    /// The most bytes of an answer.
    most: usize,
}

impl std::fmt::Debug for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Server").field("url", &self.url).finish_non_exhaustive()
    }
}

/// The answer of an API server.
pub(crate) enum Answer {
    /// The requested text, which is JSON.
    Text(String),
    /// The server does not have the requested object.
    Missing,
    /// The server does not keep the begun list any more. The list can be continued with a token
    /// that shows the objects as they are now.
    Expired(Option<String>),
    /// The server refuses the request, or cannot answer it.
    Refused(Refusal),
}

/// The reason why a server does not return something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    /// Whether a right is missing (403).
    pub(crate) is_forbidden: bool,
    pub(crate) why: String,
}

impl Refusal {
    /// Returns a refusal that no right would lift.
    pub(crate) fn other(why: impl Into<String>) -> Self {
        Self { is_forbidden: false, why: why.into() }
    }
}

impl Server {
    /// Returns a server behind a client. `url` and `user` are only shown; `namespace` is read if
    /// the whole cluster may not be.
    pub fn new(client: Client, url: String, user: String, namespace: String) -> Self {
        Self { client, url, user, namespace, patience: PATIENCE, proxy: None, most: MAX_ANSWER }
    }

    /// Sets the longest silence of the server.
    #[must_use]
    pub fn patient_for(self, patience: Duration) -> Self {
        Self { patience, ..self }
    }

    /// Sets the most bytes of an answer.
    #[must_use]
    pub fn with_answers_of(self, most: usize) -> Self {
        Self { most, ..self }
    }

    /// Sets the proxy, which errors name.
    pub(crate) fn behind(self, proxy: Option<&Uri>) -> Self {
        // The part before the host contains credentials, and is left out.
        let shown = |proxy: &Uri| {
            let scheme = proxy.scheme_str().unwrap_or("http");
            let port = proxy.port().map(|port| format!(":{port}")).unwrap_or_default();
            format!("{scheme}://{}{port}", proxy.host().unwrap_or_default())
        };
        Self { proxy: proxy.map(shown), ..self }
    }

    /// Finds the server that a kubeconfig names.
    ///
    /// # Errors
    /// If no cluster is named, or credentials cannot be obtained.
    pub async fn find(access: &Access) -> Result<Self, LiveError> {
        access.connect().await
    }

    /// Returns the client, for requests that are more than a single answer.
    pub(crate) fn client(&self) -> &Client {
        &self.client
    }

    /// Returns the namespace of the kubeconfig's context.
    pub(crate) fn namespace(&self) -> &str {
        &self.namespace
    }

    /// Sends the first request. No answer means that the server cannot be reached.
    pub(crate) async fn ask_first(&self, path: &str) -> Result<Answer, LiveError> {
        self.ask(path, "").await.map_err(|error| match error {
            LiveError::Lost { server, why, .. } => LiveError::Unreachable { server, why },
            other => other,
        })
    }

    /// Sends a request. `during` names its purpose in errors: "reading pods".
    pub(crate) async fn ask(&self, path: &str, during: &str) -> Result<Answer, LiveError> {
        let mut pause = PAUSE;
        for _ in 1..MAX_TRIES {
            match self.ask_once(path).await {
                Once::Answer(answer) => return Ok(answer),
                Once::Failed(error) => return Err(error),
                // One more try follows; a server that is gone is not waited for.
                Once::Silent(_) => break,
                Once::Later(_) => tokio::time::sleep(pause).await,
            }
            pause *= 2;
        }
        match self.ask_once(path).await {
            Once::Answer(answer) => Ok(answer),
            Once::Later(why) => Ok(Answer::Refused(Refusal::other(why))),
            Once::Failed(error) => Err(error),
            Once::Silent(why) => {
                let (server, during) = (self.url.clone(), during.to_owned());
                Err(LiveError::Lost { server, during, why })
            }
        }
    }

    /// Sends a request once, for a form that is accepted. Returns `None` if the server has no
    /// answer now.
    pub(crate) async fn ask_at_once(&self, path: &str, accept: &str) -> Option<Answer> {
        match self.ask_for(path, accept).await {
            Once::Answer(answer) => Some(answer),
            Once::Later(_) | Once::Silent(_) | Once::Failed(_) => None,
        }
    }

    async fn ask_once(&self, path: &str) -> Once {
        self.ask_for(path, "application/json").await
    }

    async fn ask_for(&self, path: &str, accept: &str) -> Once {
        let request = Request::get(path).header(ACCEPT, accept).body(Vec::new());
        let request = match request {
            Ok(request) => request,
            Err(error) => return Once::Answer(Answer::Refused(Refusal::other(error.to_string()))),
        };
        match self.text(request).await {
            Ok(text) => Once::Answer(Answer::Text(text)),
            Err(kube::Error::Api(status)) => self.refused(&status),
            Err(kube::Error::Service(why)) if why.is::<NoCredentials>() => {
                let (server, why) = (self.url.clone(), why.to_string());
                Once::Failed(LiveError::Credentials { server, why })
            }
            Err(other) => Once::Silent(self.why_silent(&other)),
        }
    }

    /// Returns why there is no answer, which may be the fault of the proxy.
    fn why_silent(&self, error: &kube::Error) -> String {
        let why = with_causes(error);
        match &self.proxy {
            Some(proxy) => format!("{why} (through the proxy {proxy})"),
            None => why,
        }
    }

    /// Returns the text of an answer. A redirection is refused, as it leads to a page where a
    /// person signs in, or to a server that the kubeconfig does not name.
    async fn text(&self, request: Request<Vec<u8>>) -> Result<String, kube::Error> {
        let answer = self.client.send(request.map(Body::from)).await?;
        let status = answer.status();
        if status.is_success() {
            let bytes = self.whole(answer.into_body()).await?;
            return String::from_utf8(bytes.to_vec()).map_err(kube::Error::FromUtf8);
        }
        let why = if status.is_redirection() {
            let place = answer.headers().get(LOCATION).map(HeaderValue::as_bytes);
            let place = place.map_or_else(
                || "elsewhere".to_owned(),
                |place| format!("to {}", String::from_utf8_lossy(place)),
            );
            format!("the server redirects {place} ({}), which is not followed", status.as_u16())
        } else {
            let bytes = self.whole(answer.into_body()).await?;
            match serde_json::from_slice::<Status>(&bytes) {
                Ok(status) if status.code != 0 => {
                    return Err(kube::Error::Api(status.boxed()));
                }
                _ => said(&String::from_utf8_lossy(&bytes)),
            }
        };
        let status = Status::failure(&why, "").with_code(status.as_u16());
        Err(kube::Error::Api(status.boxed()))
    }

    /// Returns all bytes of an answer, unless there are more than allowed.
    async fn whole(&self, body: Body) -> Result<Bytes, kube::Error> {
        let read = Limited::new(body, self.most).collect().await;
        read.map(Collected::to_bytes).map_err(|why| match why.downcast::<kube::Error>() {
            Ok(why) => *why,
            Err(why) if why.is::<LengthLimitError>() => {
                let why = format!("the answer has more than {} MiB", self.most >> 20);
                kube::Error::Api(Status::failure(&why, "").with_code(413).boxed())
            }
            Err(why) => kube::Error::Service(why),
        })
    }

    /// Watches the objects at a path from a version on, or from now on if the version is empty. The
    /// server ends the watch before its silence would count as a lost connection. `fields` selects
    /// objects.
    pub(crate) async fn watch(
        &self,
        path: &str,
        fields: Option<String>,
        version: &str,
    ) -> Result<Events, WatchRefusal> {
        let seconds = self.patience.as_secs() / 2;
        let seconds = u32::try_from(seconds).unwrap_or(u32::MAX).clamp(1, LONGEST_WATCH);
        let mut wanted = WatchParams::default().timeout(seconds);
        wanted.field_selector = fields;
        let request = kube::api::Request::new(path).watch(&wanted, version);
        let request = request.map_err(|error| WatchRefusal::Refused(error.to_string()))?;
        match self.client.request_events::<Value>(request).await {
            Ok(events) => Ok(Box::pin(events)),
            Err(kube::Error::Api(status)) => Err(match self.refused(&status) {
                Once::Answer(Answer::Missing) => WatchRefusal::Missing,
                Once::Answer(Answer::Expired(_)) => WatchRefusal::Expired,
                Once::Answer(Answer::Refused(refusal)) => WatchRefusal::Refused(refusal.why),
                Once::Answer(Answer::Text(why)) | Once::Later(why) | Once::Silent(why) => {
                    WatchRefusal::Silent(why)
                }
                Once::Failed(error) => WatchRefusal::Silent(error.to_string()),
            }),
            Err(other) => Err(WatchRefusal::Silent(self.why_silent(&other))),
        }
    }

    fn refused(&self, status: &Status) -> Once {
        let why = match status.message.trim() {
            "" => format!("status {}", status.code),
            message => message.to_owned(),
        };
        match status.code {
            401 => Once::Failed(LiveError::Unauthenticated {
                server: self.url.clone(),
                user: self.user.clone(),
                why,
            }),
            404 => Once::Answer(Answer::Missing),
            410 => {
                let token = status.metadata.as_ref().and_then(|meta| meta.continue_.clone());
                Once::Answer(Answer::Expired(token.filter(|token| !token.is_empty())))
            }
            429 | 503 | 504 => Once::Later(why),
            code => Once::Answer(Answer::Refused(Refusal { is_forbidden: code == 403, why })),
        }
    }
}

/// The number of characters of an unexpected answer that are repeated in errors.
const SAID: usize = 120;

/// Describes an unexpected answer briefly: `Status (Unauthorized)`, or its beginning.
pub(crate) fn said(text: &str) -> String {
    let value: Value = serde_json::from_str(text).unwrap_or_default();
    let field = |name: &str| value[name].as_str().filter(|text| !text.trim().is_empty());
    let short = |text: &str| {
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        match text.char_indices().nth(SAID) {
            Some((end, _)) => format!("{}...", &text[..end]),
            None => text,
        }
    };
    match (field("kind"), field("message")) {
        (Some(kind), Some(message)) => format!("{kind} ({})", short(message)),
        (Some(kind), None) => kind.to_owned(),
        (None, _) if text.trim().is_empty() => "nothing".to_owned(),
        (None, _) => short(text),
    }
}

/// The longest watch that clients may ask for, in seconds.
const LONGEST_WATCH: u32 = 240;

/// The events of a watch, as the server sends them.
pub(crate) type Events = Pin<Box<dyn Stream<Item = kube::Result<WatchEvent<Value>>>>>;

/// The reason why something is not watched.
#[derive(Debug)]
pub(crate) enum WatchRefusal {
    /// The server does not have the objects.
    Missing,
    /// The server does not know any more what happened since the version.
    Expired,
    /// The server refuses the watch.
    Refused(String),
    /// There is no answer, or the server asks to come again.
    Silent(String),
}

/// The end of a single request.
enum Once {
    Answer(Answer),
    /// The server asks to come again.
    Later(String),
    /// There is no answer.
    Silent(String),
    Failed(LiveError),
}
