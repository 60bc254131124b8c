//! Calls at the rate that the API allows, and the questions with which a client waits.

use std::collections::BTreeMap;
use std::sync::Mutex;

use serde_json::Value;
use uturn_cloud_api::client::{Creations, Pace};

/// Counts calls, and spaces them.
#[derive(Debug, Default)]
pub(crate) struct Paced {
    /// How often each action was called.
    calls: Mutex<BTreeMap<&'static str, usize>>,
    /// How often it may be. Without it, nothing is asked in order to wait.
    pace: Option<Pace>,
    creations: Creations,
}

impl Paced {
    pub(crate) fn new(pace: Option<Pace>) -> Self {
        Self { pace, ..Self::default() }
    }

    /// How often each action was called since the last time that this was asked.
    pub(crate) fn take(&self) -> BTreeMap<&'static str, usize> {
        std::mem::take(&mut *self.calls.lock().unwrap())
    }

    /// Counts a call, and waits until it may be sent.
    pub(crate) async fn turn(&self, service: &'static str, action: &'static str) {
        *self.calls.lock().unwrap().entry(action).or_default() += 1;
        if let Some(pace) = &self.pace {
            pace.turn(service, action).await;
        }
    }

    /// Asks whether a write is done, as the client does.
    pub(crate) async fn wait(&self, action: &'static str, answer: &Value) {
        if self.pace.is_none() || answer.get("Error").is_some() {
            return;
        }
        match action {
            "CreateLoadBalancer" => {
                let ids: Vec<String> =
                    serde_json::from_value(answer["LoadBalancerIds"].clone()).unwrap();
                let ask = |ids| async {
                    self.turn("clb", "DescribeLoadBalancers").await;
                    Ok(ids)
                };
                assert!(self.creations.wait(&ids, ask).await);
            }
            _ => self.turn("clb", "DescribeTaskStatus").await,
        }
    }
}
