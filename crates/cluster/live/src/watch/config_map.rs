//! Follows one ConfigMap by its name, so that no right to list others is needed.

use futures_util::StreamExt as _;
use kube::api::WatchEvent;
use tokio::time::Instant;

use super::Follower;
use super::pause::Pause;
use crate::error::LiveError;
use crate::form::{Form, keep};
use crate::plan::Groups;
use crate::read::{ConfigMapRead, Reader};
use crate::server::{Events, WatchRefusal};

/// The duration below which a watch counts as failed.
const SHORT: std::time::Duration = std::time::Duration::from_secs(1);

impl Follower<'_> {
    /// Follows a ConfigMap. Returns only if the server does not answer the first time.
    pub(super) async fn config_map(&self, at: usize, namespace: &str, name: &str) -> LiveError {
        let mut pause = Pause::default();
        let path = format!("/api/v1/namespaces/{namespace}/configmaps");
        loop {
            // The watch begins first, so that no change after the reading is missed.
            let fields = Some(format!("metadata.name={name}"));
            let events = self.server.watch(&path, fields, "").await;
            match self.read_config_map(namespace, name).await {
                Ok(read) => self.cluster.set_config_map(at, read),
                Err(error) if !self.cluster.has_config_map(at) => return error,
                Err(error) => {
                    self.cluster.note_config_map_stale(at, &error.to_string());
                    pause.wait().await;
                    continue;
                }
            }
            match events {
                Ok(events) => {
                    self.cluster.note_config_map_current(at);
                    let begun = Instant::now();
                    self.take_config_map(at, events).await;
                    if begun.elapsed() >= SHORT {
                        pause.reset();
                        continue;
                    }
                }
                Err(WatchRefusal::Refused(why)) => {
                    self.cluster.note_config_map_read_again(at, &why);
                }
                Err(WatchRefusal::Missing | WatchRefusal::Expired | WatchRefusal::Silent(_)) => {}
            }
            pause.wait().await;
        }
    }

    async fn read_config_map(
        &self,
        namespace: &str,
        name: &str,
    ) -> Result<ConfigMapRead, LiveError> {
        let _permit = self.lists.acquire().await;
        let (server, settings, progress) = (self.server, self.settings, self.progress);
        let reader = Reader { server, settings, groups: Groups::default(), progress };
        reader.config_map(namespace, name).await
    }

    async fn take_config_map(&self, at: usize, mut events: Events) {
        let form = Form::of("ConfigMap", self.settings.purpose);
        while let Some(Ok(event)) = events.next().await {
            let read = match event {
                WatchEvent::Added(object) | WatchEvent::Modified(object) => {
                    ConfigMapRead::Object(keep(object, "v1", "ConfigMap", form).into())
                }
                WatchEvent::Deleted(_) => ConfigMapRead::Missing,
                WatchEvent::Bookmark(_) => continue,
                WatchEvent::Error(_) => return,
            };
            self.cluster.set_config_map(at, read);
        }
    }
}
