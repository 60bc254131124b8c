//! The credentials of requests: those of a kubeconfig's user, which are sent with each request and
//! renewed in time.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex as SharedMutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use http::header::AUTHORIZATION;
use http::{HeaderValue, Request, Response, StatusCode};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::ByteString;
use kube::client::Body;
use kube::{Client, Config};
use thiserror::Error;
use tokio::sync::Mutex;
use tower::{BoxError, service_fn};
use uturn_document::whole_file;

use crate::credential::{Credential, Identity, bearer};
use crate::program::Program;

#[cfg(test)]
mod tests;

/// The time for which a token of a file is used before the file is read again.
const FILE: SignedDuration = SignedDuration::from_secs(60);
/// The shortest time for which a program's credentials are used, so that the program is not run for
/// each request. If the server refuses them before, the program is run again.
const SHORTEST: SignedDuration = SignedDuration::from_secs(10);
/// The time after a renewal because of a refusal within which another refusal causes none.
const REFUSED: Duration = Duration::from_secs(30);

/// The source of credentials.
#[derive(Clone, Debug)]
pub(crate) enum Source {
    /// No source, or the client's configuration has the credentials.
    Nothing,
    /// The kubeconfig.
    Token(HeaderValue),
    /// A file that may change, and the token that is used if the file cannot be read.
    File(PathBuf, Option<HeaderValue>),
    /// A program.
    Program(Box<Program>),
}

/// The reason why there are no credentials.
#[derive(Clone, Debug, Error)]
#[error("{0}")]
pub(crate) struct NoCredentials(pub(crate) String);

/// The reason why a client cannot be made.
#[derive(Debug)]
pub(crate) enum NoClient {
    Credentials(NoCredentials),
    /// Something in the configuration cannot be used.
    Config(kube::Error),
}

impl Source {
    /// Gets credentials from the source.
    async fn get(&self) -> Result<Credential, NoCredentials> {
        match self {
            Self::Nothing => Ok(Credential { header: None, identity: None, until: None }),
            Self::Token(header) => {
                Ok(Credential { header: Some(header.clone()), identity: None, until: None })
            }
            Self::File(path, otherwise) => {
                let no =
                    |why: String| NoCredentials(format!("tokenFile {}: {why}", path.display()));
                let text = whole_file::text_of(path, whole_file::SETTINGS)
                    .map_err(|why| no(why.to_string()));
                let read = text
                    .and_then(|text| bearer(&text).map_err(|why| no(format!("the token {why}"))));
                let header = read.or_else(|why| otherwise.clone().ok_or(why))?;
                let until = Some(Timestamp::now() + FILE);
                Ok(Credential { header: Some(header), identity: None, until })
            }
            Self::Program(program) => {
                let name = program.name();
                let program = program.clone();
                let run = tokio::task::spawn_blocking(move || program.run()).await;
                let run = run.unwrap_or_else(|why| Err(why.to_string())).map_err(NoCredentials)?;
                let until = run.until.map(|until| until.max(Timestamp::now() + SHORTEST));
                let credential = Credential { until, ..run };
                given().insert(name, credential.clone());
                Ok(credential)
            }
        }
    }

    /// Returns the credentials that the program gave to another client of this process, if they are
    /// still valid.
    fn given(&self) -> Option<Credential> {
        let Self::Program(program) = self else { return None };
        let credential = given().get(&program.name())?.clone();
        let is_over = |until: Timestamp| Timestamp::now() >= until;
        Some(credential).filter(|credential| !credential.until.is_some_and(is_over))
    }

    /// Returns whether the source may give other credentials another time.
    fn can_change(&self) -> bool {
        matches!(self, Self::File(..) | Self::Program(_))
    }
}

/// Locks the credentials that programs gave to this process. A command that reads the cluster and
/// then runs something in it has two clients, and the user is asked only once.
fn given() -> MutexGuard<'static, BTreeMap<String, Credential>> {
    static GIVEN: SharedMutex<BTreeMap<String, Credential>> = SharedMutex::new(BTreeMap::new());
    GIVEN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Makes a client that sends the credentials of a source. `config` has all other settings.
pub(crate) async fn client(config: Config, source: Source) -> Result<Client, NoClient> {
    let namespace = config.default_namespace.clone();
    let credential = match source.given() {
        Some(credential) => credential,
        None => source.get().await.map_err(NoClient::Credentials)?,
    };
    let client = inner(&config, credential.identity.as_ref())?;
    let now = Used { client, credential, number: 0 };
    let state = Mutex::new(State { now, renewed_at: None });
    let sender = Arc::new(Sender { config, source, state });
    let service = service_fn(move |request| {
        let sender = Arc::clone(&sender);
        async move { sender.send(request).await }
    });
    Ok(Client::new(service, namespace))
}

/// Makes the client that opens connections, with the certificate of a program, if there is one.
fn inner(config: &Config, identity: Option<&Identity>) -> Result<Client, NoClient> {
    let mut config = config.clone();
    if let Some(Identity { certificate, key }) = identity {
        let user = &mut config.auth_info;
        (user.client_certificate, user.client_key) = (None, None);
        user.client_certificate_data = Some(base64(certificate));
        user.client_key_data = Some(base64(key).into());
        let made = Client::try_from(config);
        return made.map_err(|why| {
            let why = crate::error::with_causes(&why);
            NoClient::Credentials(NoCredentials(format!("the certificate of the program: {why}")))
        });
    }
    Client::try_from(config).map_err(NoClient::Config)
}

fn base64(text: &str) -> String {
    let value = serde_json::to_value(ByteString(text.as_bytes().to_vec())).unwrap_or_default();
    value.as_str().unwrap_or_default().to_owned()
}

/// Sends requests with credentials that are renewed in time.
struct Sender {
    config: Config,
    source: Source,
    state: Mutex<State>,
}

struct State {
    now: Used,
    /// The time of the last renewal because the server refused the credentials.
    renewed_at: Option<Instant>,
}

/// The credentials that requests are made with, and the client of their connections.
#[derive(Clone)]
struct Used {
    client: Client,
    credential: Credential,
    /// The number of renewals so far.
    number: usize,
}

impl Used {
    async fn send(&self, mut request: Request<Body>) -> Result<Response<Body>, BoxError> {
        if let Some(header) = &self.credential.header {
            request.headers_mut().insert(AUTHORIZATION, header.clone());
        }
        Ok(self.client.send(request).await?)
    }
}

impl Sender {
    /// Sends a request. If the server refuses the credentials, they are renewed and the request is
    /// sent once more.
    async fn send(&self, request: Request<Body>) -> Result<Response<Body>, BoxError> {
        let again = copy(&request);
        let used = self.current().await?;
        let answer = used.send(request).await?;
        let Some(again) = again.filter(|_| answer.status() == StatusCode::UNAUTHORIZED) else {
            return Ok(answer);
        };
        match self.renewed(used.number).await? {
            Some(renewed) => renewed.send(again).await,
            None => Ok(answer),
        }
    }

    /// Returns the current credentials, after renewing expired ones.
    async fn current(&self) -> Result<Used, BoxError> {
        let mut state = self.state.lock().await;
        let until = state.now.credential.until;
        if until.is_some_and(|until| Timestamp::now() >= until) {
            self.renew(&mut state).await?;
        }
        Ok(state.now.clone())
    }

    /// Returns other credentials than those that the server refused, or `None` if there are none.
    async fn renewed(&self, refused: usize) -> Result<Option<Used>, BoxError> {
        let mut state = self.state.lock().await;
        if state.now.number == refused {
            let is_early = state.renewed_at.is_some_and(|at| at.elapsed() < REFUSED);
            if !self.source.can_change() || is_early {
                return Ok(None);
            }
            state.renewed_at = Some(Instant::now());
            self.renew(&mut state).await?;
        }
        Ok(Some(state.now.clone()))
    }

    async fn renew(&self, state: &mut State) -> Result<(), BoxError> {
        let credential = match (self.source.get().await, &self.source) {
            (Ok(credential), _) => credential,
            // The file may be gone after it was read: its last token stays in use.
            (Err(_), Source::File(..)) => {
                state.now.credential.until = Some(Timestamp::now() + FILE);
                return Ok(());
            }
            (Err(why), _) => return Err(why.into()),
        };
        if credential.identity != state.now.credential.identity {
            state.now.client = match inner(&self.config, credential.identity.as_ref()) {
                Ok(client) => client,
                Err(NoClient::Credentials(why)) => return Err(why.into()),
                Err(NoClient::Config(why)) => return Err(why.into()),
            };
        }
        state.now.credential = credential;
        state.now.number += 1;
        Ok(())
    }
}

/// Copies a request, if it can be sent twice.
fn copy(request: &Request<Body>) -> Option<Request<Body>> {
    let mut copy = Request::new(request.body().try_clone()?);
    *copy.method_mut() = request.method().clone();
    *copy.uri_mut() = request.uri().clone();
    *copy.headers_mut() = request.headers().clone();
    Some(copy)
}
