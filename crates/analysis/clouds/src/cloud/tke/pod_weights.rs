//! The weights that users give single pods of StatefulSets, where pods are the targets.
//!
//! `{"defaultWeight":10,"groups":[{"key":{"proto":"TCP","port":80},"statefulSets":[{"name":"web",
//! "weights":[{"weight":0,"podIndexes":[0]}]}]}]}`: a key is a port of a Service, or a listener of
//! an Ingress, perhaps with a host and a path.

use serde::Deserialize;
use serde_json::Value;

use super::annotations;
use crate::cloud::Owner;

/// The weight that the controllers give a target.
pub(super) const USUAL: u32 = 10;
/// The largest weight of a target.
pub(super) const MAX: u32 = 100;

/// The weights of an object's targets.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PodWeights {
    default_weight: Option<u32>,
    #[serde(default)]
    groups: Vec<Group>,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Group {
    key: Key,
    #[serde(default)]
    stateful_sets: Vec<StatefulSet>,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
struct Key {
    proto: Option<String>,
    /// The port, as a number or as text.
    port: Value,
    host: Option<String>,
    path: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
struct StatefulSet {
    name: String,
    #[serde(default)]
    weights: Vec<IndexWeight>,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
struct IndexWeight {
    weight: u32,
    #[serde(default)]
    pod_indexes: Vec<u32>,
}

/// The port or rule whose targets have weights.
#[derive(Clone, Copy, Debug)]
pub(super) struct TargetsOf<'a> {
    /// The protocol of the Service's port or of the Ingress's listener.
    pub(super) protocol: &'a str,
    /// The port.
    pub(super) port: u16,
    /// The host of the rule.
    pub(super) host: &'a str,
    /// The path of the rule.
    pub(super) path: &'a str,
}

/// Returns the key of the annotation with the weights of an object's targets.
pub(super) fn key(owner: Owner<'_>) -> &'static str {
    match owner {
        Owner::Service(_) => annotations::POD_WEIGHTS,
        Owner::Ingress(_) => annotations::INGRESS_POD_WEIGHTS,
    }
}

/// Returns whether the weights can be read.
pub fn is_readable(text: &str) -> bool {
    PodWeights::read(text).is_some()
}

impl PodWeights {
    /// Reads the weights of an object's targets. Unreadable weights count as none.
    pub(super) fn of(owner: Owner<'_>) -> Self {
        owner.annotations().get(key(owner)).and_then(Self::read).unwrap_or_default()
    }

    fn read(text: &str) -> Option<Self> {
        // The deserializer would also accept a list, with the members in order.
        serde_json::from_str(text).ok().filter(|_| text.trim_start().starts_with('{'))
    }

    /// Returns the weight of a pod.
    pub(super) fn of_pod(&self, of: TargetsOf<'_>, pod: Option<&str>) -> u32 {
        let mut groups = self.groups.iter().filter(|group| group.key.is_of(of));
        let stated = pod.and_then(|pod| groups.find_map(|group| group.weight(pod)));
        stated.or(self.default_weight).unwrap_or(USUAL).min(MAX)
    }

    /// Returns the weights of a pod in all groups.
    pub(super) fn everywhere(&self, pod: &str) -> Vec<u64> {
        let weight = |group: &Group| group.weight(pod).map_or(u64::MAX, u64::from);
        self.groups.iter().map(weight).collect()
    }
}

impl Key {
    fn is_of(&self, of: TargetsOf<'_>) -> bool {
        let port = self.port.as_str().map_or_else(|| self.port.to_string(), str::to_owned);
        let fits = |stated: &Option<String>, own: &str| {
            stated.as_deref().is_none_or(|stated| stated.is_empty() || stated == own)
        };
        port == of.port.to_string()
            && fits(&self.proto, of.protocol)
            && fits(&self.host, of.host)
            && fits(&self.path, of.path)
    }
}

impl Group {
    fn weight(&self, pod: &str) -> Option<u32> {
        let (set, index) = pod.rsplit_once('-')?;
        let index: u32 = index.parse().ok()?;
        let mut sets = self.stateful_sets.iter().filter(|own| own.name == set);
        sets.find_map(|own| {
            let mut weights = own.weights.iter();
            weights.find(|own| own.pod_indexes.contains(&index)).map(|own| own.weight)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pod_has_the_weight_of_its_index() {
        let text = r#"{"defaultWeight":7,"groups":[
            {"key":{"proto":"TCP","port":80},"statefulSets":[{"name":"web","weights":[
                {"weight":0,"podIndexes":[0,2]},{"weight":101,"podIndexes":[3]}]}]},
            {"key":{"port":"443","host":"a.example.com"},"statefulSets":[{"name":"web",
                "weights":[{"weight":30,"podIndexes":[1]}]}]}]}"#;
        let weights: PodWeights = serde_json::from_str(text).unwrap();
        let at = |protocol, port, host| TargetsOf { protocol, port, host, path: "/" };
        let of = |at, pod| weights.of_pod(at, Some(pod));
        let http = at("TCP", 80, "");
        assert_eq!(["web-0", "web-1", "web-2", "web-3"].map(|pod| of(http, pod)), [0, 7, 0, 100]);
        assert_eq!(["other-0", "web"].map(|pod| of(http, pod)), [7, 7]);
        assert_eq!((of(at("UDP", 80, ""), "web-0"), weights.of_pod(http, None)), (7, 7));
        assert_eq!(of(at("HTTPS", 443, "a.example.com"), "web-1"), 30);
        assert_eq!(of(at("HTTPS", 443, "b.example.com"), "web-1"), 7);
        assert_eq!(weights.everywhere("web-1"), [u64::MAX, 30]);
    }

    #[test]
    fn without_weights_all_pods_are_alike() {
        let at = TargetsOf { protocol: "TCP", port: 80, host: "", path: "" };
        assert_eq!(PodWeights::default().of_pod(at, Some("web-0")), USUAL);
        assert!(is_readable("{}") && !is_readable("[1]") && !is_readable("{"));
    }
}
