//! Single requests to an API server, and what it answers with.

use std::time::Duration;

use http::Request;
use http::header::ACCEPT;
use kube::Client;

use crate::access::Access;
use crate::error::{LiveError, with_causes};

/// How often a request is repeated that the API server puts off, or that has no answer.
const MAX_TRIES: u32 = 5;
/// The pause before the second try. Each further one is twice as long.
const PAUSE: Duration = Duration::from_millis(250);

/// An API server.
pub struct Server {
    client: Client,
    url: String,
    user: String,
    namespace: String,
}

impl std::fmt::Debug for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Server").field("url", &self.url).finish_non_exhaustive()
    }
}

/// What an API server answers with.
pub(crate) enum Answer {
    /// What was asked for, as JSON.
    Text(String),
    /// It does not have that.
    Missing,
    /// The list that was begun is not kept any more. It can be continued with a token that sees
    /// the objects as they are now.
    Expired(Option<String>),
    /// It refuses, or cannot say it.
    Refused(String),
}

impl Server {
    /// A server behind a client. `url` and `user` are only shown; `namespace` is read where the
    /// whole cluster may not be.
    pub fn new(client: Client, url: String, user: String, namespace: String) -> Self {
        Self { client, url, user, namespace }
    }

    /// Finds the server that a kubeconfig names.
    ///
    /// # Errors
    /// If no cluster is named, or credentials cannot be had.
    pub async fn find(access: &Access) -> Result<Self, LiveError> {
        access.connect().await
    }

    /// The namespace of the kubeconfig's context.
    pub(crate) fn namespace(&self) -> &str {
        &self.namespace
    }

    /// Asks for the first time. No answer means that the server cannot be reached.
    pub(crate) async fn ask_first(&self, path: &str) -> Result<Answer, LiveError> {
        self.ask(path, "").await.map_err(|error| match error {
            LiveError::Lost { server, why, .. } => LiveError::Unreachable { server, why },
            other => other,
        })
    }

    /// Asks for something. `during` says what for: "reading pods".
    pub(crate) async fn ask(&self, path: &str, during: &str) -> Result<Answer, LiveError> {
        let mut pause = PAUSE;
        for _ in 1..MAX_TRIES {
            match self.ask_once(path).await {
                Once::Answer(answer) => return Ok(answer),
                Once::Failed(error) => return Err(error),
                // One try more; a server that is gone is not waited for.
                Once::Silent(_) => break,
                Once::Later(_) => tokio::time::sleep(pause).await,
            }
            pause *= 2;
        }
        match self.ask_once(path).await {
            Once::Answer(answer) => Ok(answer),
            Once::Later(why) => Ok(Answer::Refused(why)),
            Once::Failed(error) => Err(error),
            Once::Silent(why) => {
                let (server, during) = (self.url.clone(), during.to_owned());
                Err(LiveError::Lost { server, during, why })
            }
        }
    }

    async fn ask_once(&self, path: &str) -> Once {
        let request = Request::get(path).header(ACCEPT, "application/json").body(Vec::new());
        let request = match request {
            Ok(request) => request,
            Err(error) => return Once::Answer(Answer::Refused(error.to_string())),
        };
        match self.client.request_text(request).await {
            Ok(text) => Once::Answer(Answer::Text(text)),
            Err(kube::Error::Api(status)) => self.refused(&status),
            Err(kube::Error::Auth(why)) => {
                let (server, why) = (self.url.clone(), with_causes(&why));
                Once::Failed(LiveError::Credentials { server, why })
            }
            Err(other) => Once::Silent(with_causes(&other)),
        }
    }

    fn refused(&self, status: &kube::core::Status) -> Once {
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
            _ => Once::Answer(Answer::Refused(why)),
        }
    }
}

/// How a single request ends.
enum Once {
    Answer(Answer),
    /// It asks to come again.
    Later(String),
    /// There is no answer.
    Silent(String),
    Failed(LiveError),
}
