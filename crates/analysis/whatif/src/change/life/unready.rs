//! A pod that is not ready: its endpoints are not ready either. It goes on running, and calls others.

use std::collections::BTreeSet;

use uturn_model::{Cluster, NamespacedName};

use super::Changed;
use super::error::{LifeError, likest};
use super::pods::{self, PodSet};

pub(super) fn unready(cluster: &Cluster, pod: &NamespacedName) -> Result<Changed, LifeError> {
    if !cluster.pods.contains_key(pod) {
        let near = cluster.pods.keys().filter(|own| own.namespace == pod.namespace);
        let known = likest(near.map(|own| own.to_string().into()), &pod.to_string());
        return Err(LifeError::NoPod { pod: pod.clone(), known });
    }
    let mut after = cluster.clone();
    pods::make_unready(&mut after, &PodSet::of(cluster, BTreeSet::from([pod.clone()])));
    let mut assumed = Vec::new();
    if pods::forget_captures(&mut after) {
        assumed.push(pods::WITHOUT_CAPTURES.into());
    }
    Ok(Changed { cluster: after, assumed })
}
