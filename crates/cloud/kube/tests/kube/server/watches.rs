//! Watches: each tells of what happened to a resource.

use std::convert::Infallible;

use bytes::Bytes;
use http::Response;
use http_body::Frame;
use http_body_util::{BodyExt as _, StreamBody};
use serde_json::{Value, json};

use super::Server;
use super::answer::Answer;
use super::target::Target;

impl Server {
    pub(super) fn watch(&self, target: &Target, query: &str) -> Answer {
        let from = query.split('&').find_map(|pair| pair.strip_prefix("resourceVersion="));
        let from: u64 = from.unwrap_or_default().parse().unwrap_or_default();
        let (server, plural) = (self.clone(), target.plural.clone());
        let changed = self.changed.subscribe();
        let start = self.state().starts;
        let events = futures_util::stream::unfold(
            (server, plural, from, changed, false),
            move |(server, plural, from, mut changed, is_over)| async move {
                loop {
                    if is_over {
                        return None;
                    }
                    let (found, is_expired) = {
                        let state = server.state();
                        if state.starts != start {
                            return None;
                        }
                        let history = state.history.get(&plural).map(Vec::as_slice);
                        let history = history.unwrap_or_default();
                        let first = history.partition_point(|(version, _)| *version <= from);
                        (history.get(first).cloned(), from < state.floor || from > state.version)
                    };
                    if is_expired {
                        let gone = json!({ "type": "ERROR", "object": { "kind": "Status",
                            "apiVersion": "v1", "metadata": {}, "status": "Failure",
                            "reason": "Expired", "code": 410, "message": "too old" } });
                        return Some((frame(line(&gone)), (server, plural, from, changed, true)));
                    }
                    if let Some((version, event)) = found {
                        return Some((frame(event), (server, plural, version, changed, false)));
                    }
                    changed.changed().await.ok()?;
                }
            },
        );
        Response::new(StreamBody::new(events).boxed_unsync())
    }
}

/// An event as it is sent.
pub(super) fn line(event: &Value) -> Bytes {
    Bytes::from(format!("{event}\n"))
}

fn frame(line: Bytes) -> Result<Frame<Bytes>, Infallible> {
    Ok(Frame::data(line))
}
