//! Follows the objects of one kind: lists them, then watches them from that version on.

use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::future::{self, Either};
use kube::api::WatchEvent;
use serde_json::Value;
use tokio::time::Instant;

use super::Follower;
use super::pause::Pause;
use crate::error::LiveError;
use crate::plan::{Groups, ListedKind};
use crate::read::{Reader, groups};
use crate::reading::{Kind, KindExtent};
use crate::server::{Events, WatchRefusal};

/// The duration below which a watch counts as failed.
const SHORT: Duration = Duration::from_secs(1);

impl Follower<'_> {
    /// Follows a kind. Returns only if it cannot be read for the first time.
    pub(super) async fn kind(&self, at: usize, listed: ListedKind) -> LiveError {
        let mut pause = Pause::default();
        let mut known = Some(self.groups.clone());
        loop {
            match self.read(listed, known.take()).await {
                Ok(kind) => {
                    let watched = Watched::of(&kind, listed);
                    self.cluster.set_kind(at, kind);
                    if let Some(watched) = watched {
                        self.events(at, watched, &mut pause).await;
                        continue;
                    }
                }
                Err(error) if !self.cluster.has_kind(at) => return error,
                Err(error) => self.cluster.note_stale(at, &error.to_string()),
            }
            pause.wait().await;
        }
    }

    /// Follows Endpoints, unless slices contain the same.
    pub(super) async fn endpoints(&self, at: usize, listed: ListedKind) -> LiveError {
        loop {
            self.cluster.wait_for_slices(false).await;
            let slices = std::pin::pin!(self.cluster.wait_for_slices(true));
            let followed = std::pin::pin!(self.kind(at, listed));
            if let Either::Left((error, _)) = future::select(followed, slices).await {
                return error;
            }
            self.cluster.forget_kind(at);
        }
    }

    async fn read(&self, listed: ListedKind, known: Option<Groups>) -> Result<Kind, LiveError> {
        let _permit = self.lists.acquire().await;
        let groups = match known {
            Some(groups) => groups,
            None => groups(self.server).await?,
        };
        let (server, settings, progress) = (self.server, self.settings, self.progress);
        let progress = |what: &str, count: usize| {
            if !self.cluster.is_read() {
                progress(what, count);
            }
        };
        Reader { server, settings, groups, progress: &progress }.kind(listed).await
    }

    /// Follows changes of objects until the objects have to be read again.
    async fn events(&self, at: usize, mut watched: Watched, pause: &mut Pause) {
        loop {
            match self.server.watch(&watched.path, None, &watched.version).await {
                Ok(events) => {
                    self.cluster.note_current(at);
                    let begun = Instant::now();
                    let end = self.take(at, events, &mut watched.version).await;
                    if matches!(end, End::Expired) {
                        return pause.wait().await;
                    }
                    if begun.elapsed() < SHORT {
                        pause.wait().await;
                    } else {
                        pause.reset();
                    }
                    // More may be readable by now.
                    if !watched.is_all {
                        return;
                    }
                }
                Err(WatchRefusal::Expired | WatchRefusal::Missing) => return pause.wait().await,
                Err(WatchRefusal::Refused(why)) => {
                    self.cluster.note_listed_again(at, &why);
                    return pause.wait().await;
                }
                Err(WatchRefusal::Silent(why)) => {
                    self.cluster.note_stale(at, &why);
                    pause.wait().await;
                }
            }
        }
    }

    /// Applies the changes of objects, until the watch ends.
    async fn take(&self, at: usize, mut events: Events, version: &mut String) -> End {
        // A broken connection ends the watch too; the next watch shows whether the server is
        // reachable.
        while let Some(Ok(event)) = events.next().await {
            match event {
                WatchEvent::Added(object) | WatchEvent::Modified(object) => {
                    note_version(version, &object);
                    self.cluster.put(at, object);
                }
                WatchEvent::Deleted(object) => {
                    note_version(version, &object);
                    self.cluster.remove(at, &object);
                }
                WatchEvent::Bookmark(mark) => {
                    version.clone_from(&mark.metadata.resource_version);
                    self.cluster.note_version(at, version);
                }
                WatchEvent::Error(status) if status.code == 410 => return End::Expired,
                WatchEvent::Error(_) => return End::Over,
            }
        }
        End::Over
    }
}

/// The reason why a watch ended.
enum End {
    /// The server ended it, or the connection broke.
    Over,
    /// The server does not know any more what happened since the version.
    Expired,
}

/// The objects that are watched.
struct Watched {
    path: String,
    /// The version from which on they are watched.
    version: String,
    /// Whether they are the whole kind.
    is_all: bool,
}

impl Watched {
    /// Returns what to watch, or `None` if there is nothing.
    fn of(kind: &Kind, listed: ListedKind) -> Option<Self> {
        let namespace = match &kind.extent {
            KindExtent::All => None,
            KindExtent::Namespace(namespace, _) => Some(&**namespace),
            KindExtent::Nothing(_) => return None,
        };
        let path = listed.path(kind.api_version?, namespace);
        let version = kind.resource_version.clone().unwrap_or_default();
        Some(Self { path, version, is_all: namespace.is_none() })
    }
}

fn note_version(version: &mut String, object: &Value) {
    if let Some(new) = object["metadata"]["resourceVersion"].as_str() {
        new.clone_into(version);
    }
}
