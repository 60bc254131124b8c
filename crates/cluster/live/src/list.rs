//! Lists all objects of a kind, page by page.

use std::sync::Arc;

use futures_util::future::join;
use kube::api::{ListParams, Request};

use crate::error::LiveError;
use crate::form::{Form, Kept};
use crate::page;
use crate::server::{Answer, Refusal, Server};

/// The number of times that a list is begun, if the API server does not keep it long enough.
const MAX_STARTS: usize = 4;

/// The objects to list.
#[derive(Clone, Copy)]
pub(crate) struct Wanted<'w> {
    pub(crate) path: &'w str,
    pub(crate) api_version: &'static str,
    pub(crate) kind: &'static str,
    /// The plural of the kind, for messages.
    pub(crate) called: &'w str,
    pub(crate) form: Form,
    /// The most objects on a page.
    pub(crate) page: usize,
}

/// The result of a list.
#[derive(Debug)]
pub(crate) enum Listed {
    /// All objects.
    All { objects: Vec<Arc<Kept>>, resource_version: Option<String> },
    /// The server does not have the kind in this version.
    Missing,
    /// The server refuses the list.
    Refused(Refusal),
}

/// Lists objects. `progress` is called with the number of objects so far, and the total if the
/// server reports it.
///
/// While a page is parsed, the next one is already requested.
pub(crate) async fn list(
    server: &Server,
    wanted: &Wanted<'_>,
    progress: &dyn Fn(usize, Option<usize>),
) -> Result<Listed, LiveError> {
    let Wanted { path, api_version, kind, called, form, page } = *wanted;
    let during = format!("reading {called}");
    let ask = async |token: Option<&str>| match url(path, page, None, token) {
        Ok(url) => server.ask(&url, &during).await,
        Err(error) => Ok(Answer::Refused(Refusal::other(error.to_string()))),
    };
    let mut objects = Vec::new();
    let mut token: Option<String> = None;
    let mut starts = 1;
    let mut answer = ask(None).await?;
    loop {
        let text = match answer {
            Answer::Text(text) => text,
            Answer::Missing => return Ok(Listed::Missing),
            Answer::Refused(refusal) => return Ok(Listed::Refused(refusal)),
            // The rest shows the objects as they are now. The order is that of names, so that no
            // object comes twice.
            Answer::Expired(Some(next)) if token.as_ref().is_some_and(|token| next != *token) => {
                token = Some(next);
                answer = ask(token.as_deref()).await?;
                continue;
            }
            Answer::Expired(_) if starts < MAX_STARTS => {
                starts += 1;
                objects.clear();
                token = None;
                answer = ask(None).await?;
                continue;
            }
            Answer::Expired(_) => {
                let why = "the list changed too often while it was read";
                return Ok(Listed::Refused(Refusal::other(why)));
            }
        };
        let next = page::next(&text).filter(|next| !next.is_empty());
        let reading =
            tokio::task::spawn_blocking(move || page::read(&text, api_version, kind, form));
        let (read, asked) = match next {
            Some(next) => {
                token = Some(next);
                let (read, asked) = join(reading, ask(token.as_deref())).await;
                (read, Some(asked))
            }
            None => (reading.await, None),
        };
        let read = match read.map_err(|why| why.to_string()).and_then(|read| read) {
            Ok(read) => read,
            Err(why) => return Ok(Listed::Refused(Refusal::other(why))),
        };
        objects.extend(read.objects.into_iter().map(Arc::new));
        progress(objects.len(), read.left.map(|left| objects.len() + left));
        if read.next.is_empty() {
            return Ok(Listed::All { objects, resource_version: read.resource_version });
        }
        answer = match asked {
            Some(asked) => asked?,
            None => {
                token = Some(read.next);
                ask(token.as_deref()).await?
            }
        };
    }
}

/// Returns the URL of a page of the objects, or of those that a field selector picks. Without a
/// token it is the first page.
pub(crate) fn url(
    path: &str,
    page: usize,
    fields: Option<&str>,
    token: Option<&str>,
) -> Result<String, kube::core::request::Error> {
    let wanted = ListParams {
        limit: Some(u32::try_from(page).unwrap_or(u32::MAX)),
        field_selector: fields.map(str::to_owned),
        continue_token: token.map(str::to_owned),
        ..ListParams::default()
    };
    Ok(Request::new(path).list(&wanted)?.uri().to_string())
}
