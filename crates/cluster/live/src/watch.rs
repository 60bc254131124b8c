//! Keeps the known state of a cluster up to date.
//!
//! Every kind that [`read`](crate::read) lists is listed and then watched independently
//! (`watch::kind`); the few ConfigMaps are watched one by one, by name (`watch::config_map`). The
//! state is in a [`WatchedCluster`], which returns a [`Reading`](crate::Reading) at any time: the
//! result of reading the cluster anew, as far as everything is current.

mod config_map;
mod kind;
mod pause;
mod signals;
mod state;

use std::sync::Arc;
use std::thread;

use futures_util::StreamExt as _;
use futures_util::future::{self, Either, LocalBoxFuture};
use futures_util::stream::FuturesUnordered;
use tokio::sync::Semaphore;

use crate::access::Access;
use crate::error::LiveError;
use crate::plan::{Groups, listed_kinds};
use crate::read::{Settings, groups, version};
use crate::server::Server;

pub(crate) use signals::signalled;
pub use state::{Moment, NotCurrent, WatchEnd, WatchedCluster, time};

/// A cluster that a thread keeps up to date.
#[derive(Debug)]
pub struct Watching {
    cluster: Arc<WatchedCluster>,
}

impl Watching {
    /// Returns the cluster.
    pub fn cluster(&self) -> &WatchedCluster {
        &self.cluster
    }
}

/// Watches a cluster, until a signal tells this process to end (Ctrl-C). `progress` is called with
/// what is being read, and the number of these objects so far.
///
/// # Errors
/// If the thread cannot be started.
pub fn watch(
    access: Access,
    settings: Settings,
    progress: impl Fn(&str, usize) + Send + 'static,
) -> Result<Watching, LiveError> {
    let cluster = Arc::new(WatchedCluster::new(settings.purpose));
    let watched = Arc::clone(&cluster);
    let run = move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let end = match runtime {
            Err(why) => WatchEnd::Failed(LiveError::Runtime(why)),
            Ok(runtime) => runtime.block_on(async {
                let followed = async {
                    match Server::find(&access).await {
                        Ok(server) => follow(&server, &settings, &watched, &progress).await,
                        Err(error) => error,
                    }
                };
                let followed = std::pin::pin!(followed);
                let signalled = std::pin::pin!(signalled());
                match future::select(followed, signalled).await {
                    Either::Left((error, _)) => WatchEnd::Failed(error),
                    Either::Right(((), _)) => WatchEnd::Interrupted,
                }
            }),
        };
        watched.end(end);
    };
    thread::Builder::new().name("watch".to_owned()).spawn(run).map_err(LiveError::Runtime)?;
    Ok(Watching { cluster })
}

/// Keeps a cluster up to date. Returns only if the cluster cannot be read for the first time, with
/// the reason. Later errors are part of the cluster's state.
pub async fn follow(
    server: &Server,
    settings: &Settings,
    cluster: &WatchedCluster,
    progress: &dyn Fn(&str, usize),
) -> LiveError {
    let begin = async {
        let version = version(server).await?;
        Ok((version, groups(server).await?))
    };
    let (version, groups) = match begin.await {
        Ok(begun) => begun,
        Err(error) => return error,
    };
    cluster.begin(version);
    let lists = Semaphore::new(settings.parallel.max(1));
    let follower = Follower { server, settings, cluster, groups, lists, progress };
    let mut all: FuturesUnordered<LocalBoxFuture<'_, LiveError>> = FuturesUnordered::new();
    for (at, listed) in listed_kinds().into_iter().enumerate() {
        match listed.kind {
            "Endpoints" => all.push(Box::pin(follower.endpoints(at, listed))),
            _ => all.push(Box::pin(follower.kind(at, listed))),
        }
    }
    for (at, (namespace, name)) in uturn_snapshot::config_maps().enumerate() {
        all.push(Box::pin(follower.config_map(at, namespace, name)));
    }
    match all.next().await {
        Some(error) => error,
        None => std::future::pending().await,
    }
}

/// Follows kinds and ConfigMaps.
struct Follower<'f> {
    server: &'f Server,
    settings: &'f Settings,
    cluster: &'f WatchedCluster,
    /// The versions that the server had at first.
    groups: Groups,
    /// Limits the number of lists under way.
    lists: Semaphore,
    progress: &'f dyn Fn(&str, usize),
}
