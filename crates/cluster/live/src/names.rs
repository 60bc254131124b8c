//! Names of objects for the completion of a command line: a single page of metadata, at once or not
//! at all.

use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;
use uturn_snapshot::ReadKind;

use crate::access::Access;
use crate::list::url;
use crate::plan::ListedKind;
use crate::server::{Answer, Server};

/// The number of names that are requested.
const MAX: usize = 500;
/// The time limit for names, as the user waits for them with a half-typed line.
const PATIENCE: Duration = Duration::from_secs(3);
/// The media type for metadata only. A server that does not support it returns whole objects.
const METADATA: &str =
    "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io,application/json";
const JSON: &str = "application/json";

/// Names of objects.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Names {
    /// The namespaces and names, in order.
    pub names: Vec<(Option<String>, String)>,
    /// Whether there are more.
    pub has_more: bool,
}

/// The objects whose names are requested.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Named {
    /// Namespaces.
    Namespaces,
    /// Objects of a kind, in a namespace or in all of them. If the server refuses to list all,
    /// those of the context's namespace.
    Objects(&'static str, Option<String>),
}

/// Returns the first names that an API server lists. The result is empty if the server returns none
/// for any reason, or not soon. Programs that provide credentials may not ask the user for
/// anything.
pub fn names(access: &Access, named: Named) -> Names {
    let access = access.clone();
    soon(async move {
        let server = access.connect_quietly().await.ok()?;
        let (kind, namespace) = match named {
            Named::Namespaces => return page(&server, "/api/v1/namespaces").await,
            Named::Objects(kind, namespace) => (kind, namespace),
        };
        for (listed, version) in versions(kind) {
            let path = listed.path(version, namespace.as_deref());
            if let Some(page) = page(&server, &path).await {
                return Some(page);
            }
            if namespace.is_none() && listed.has_namespaces() {
                let path = listed.path(version, Some(server.namespace()));
                if let Some(page) = page(&server, &path).await {
                    return Some(page);
                }
            }
        }
        None
    })
    .unwrap_or_default()
}

/// Returns an object, found by a list, so that the right to list is enough. Returns `None` if the
/// API server does not return it, or not soon.
pub fn object(access: &Access, kind: &str, namespace: &str, name: &str) -> Option<Value> {
    let kind = versions(kind);
    let (access, namespace, name) = (access.clone(), namespace.to_owned(), name.to_owned());
    soon(async move {
        let server = access.connect_quietly().await.ok()?;
        for (listed, version) in kind {
            let path = listed.path(version, Some(&namespace));
            let path = url(&path, 1, Some(&format!("metadata.name={name}")), None).ok()?;
            if let Answer::Text(text) = server.ask_at_once(&path, JSON).await? {
                let mut list: Value = serde_json::from_str(&text).ok()?;
                return Some(list["items"][0].take()).filter(Value::is_object);
            }
        }
        None
    })
}

/// Returns the versions in which a kind is listed.
fn versions(kind: &str) -> Vec<(ListedKind, &'static str)> {
    let all = uturn_snapshot::kinds().into_iter().filter(|known| known.kind == kind);
    all.flat_map(|ReadKind { kind, api_versions }| {
        api_versions.iter().map(move |version| (ListedKind { kind, api_versions }, *version))
    })
    .collect()
}

/// Waits for a future, but not long: credentials may come from a slow program.
fn soon<T: Send + 'static>(future: impl Future<Output = Option<T>> + Send + 'static) -> Option<T> {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        // The caller may have stopped waiting.
        let _ = sender.send(runtime.ok().and_then(|runtime| runtime.block_on(future)));
    });
    receiver.recv_timeout(PATIENCE).ok().flatten()
}

#[derive(Deserialize)]
struct Page {
    #[serde(default)]
    metadata: PageMeta,
    #[serde(default)]
    items: Vec<Item>,
}

#[derive(Default, Deserialize)]
struct PageMeta {
    #[serde(default)]
    r#continue: String,
}

#[derive(Deserialize)]
struct Item {
    metadata: ItemMeta,
}

#[derive(Deserialize)]
struct ItemMeta {
    namespace: Option<String>,
    name: String,
}

async fn page(server: &Server, path: &str) -> Option<Names> {
    let path = url(path, MAX, None, None).ok()?;
    let Answer::Text(text) = server.ask_at_once(&path, METADATA).await? else { return None };
    let page: Page = serde_json::from_str(&text).ok()?;
    let names = page.items.into_iter().map(|item| (item.metadata.namespace, item.metadata.name));
    let mut names: Vec<_> = names.collect();
    names.sort_unstable();
    Some(Names { names, has_more: !page.metadata.r#continue.is_empty() })
}
