//! Reads and writes `bundle.json`, the manifest of a bundle.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use uturn_model::Extent;
use uturn_model::cluster::{ReadTime, Unread};

use crate::documents::OURS;
use crate::listing::Listing;

/// The manifest of a bundle.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct BundleManifest {
    /// `uturn.dev/v1alpha1`.
    pub api_version: String,
    /// `Bundle`.
    pub kind: String,
    /// The version of the program that wrote the bundle.
    pub uturn: String,
    /// The objects of the cluster. `None` if the bundle has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub objects: Option<ObjectsManifest>,
    /// The nodes that were captured.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub nodes: Vec<NodeCaptured>,
    /// Other fields, which are kept as they are.
    #[serde(flatten)]
    pub others: Map<String, Value>,
}

/// A captured node. The node's `capture.json` has more about it.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct NodeCaptured {
    /// The node's name.
    pub node: String,
    /// When the capture began, as RFC 3339.
    pub taken_at: String,
}

/// The objects that an API server returned.
#[derive(Clone, Debug, Default, Serialize, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "camelCase", default)]
pub struct ObjectsManifest {
    /// The version of the API server.
    pub server: Option<String>,
    /// When the reading began, as RFC 3339.
    pub begun: String,
    /// When the reading ended, as RFC 3339.
    pub ended: String,
    /// The kinds that were read.
    pub kinds: Vec<KindRead>,
    /// Whether all pods, and all objects that create pods, were returned.
    pub all_pods: bool,
    /// Whether all Services were returned.
    pub all_services: bool,
    /// Whether the endpoints of all Services were returned.
    pub all_endpoints: bool,
    /// Objects that could not be read.
    pub unread: Vec<UnreadEntry>,
}

/// A kind that was read.
#[derive(Clone, Debug, Default, Serialize, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "camelCase", default)]
pub struct KindRead {
    /// The name of the kind: `Pod`.
    pub kind: String,
    /// The `apiVersion` of the kind. `None` if the API server does not have the kind.
    pub api_version: Option<String>,
    /// The number of objects that were read.
    pub count: usize,
    /// The `resourceVersion` of the list.
    pub resource_version: Option<String>,
    /// The only namespace that was read. `None` if all were read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
}

/// Objects that could not be read, as `bundle.json` states them.
#[derive(Clone, Debug, Default, Serialize, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "camelCase", default)]
pub struct UnreadEntry {
    /// The objects that could not be read.
    pub what: String,
    /// The part of them that is known.
    pub known: String,
    /// The reason why they could not be read.
    pub why: String,
}

impl BundleManifest {
    /// Creates the manifest of an empty bundle, with this program's version.
    pub fn new() -> Self {
        Self {
            api_version: OURS.to_owned(),
            kind: "Bundle".to_owned(),
            uturn: env!("CARGO_PKG_VERSION").to_owned(),
            objects: None,
            nodes: Vec::new(),
            others: Map::new(),
        }
    }

    /// Returns the manifest as indented JSON.
    pub fn text(&self) -> String {
        let text = serde_json::to_string_pretty(self);
        text.expect("texts and numbers are JSON") + "\n"
    }
}

impl Default for BundleManifest {
    fn default() -> Self {
        Self::new()
    }
}

impl ObjectsManifest {
    /// Records which kinds were returned in full, and the objects that could not be read.
    pub fn set_listing(&mut self, extent: Extent, unread: &[Unread]) {
        let Extent { pods, services, endpoints, listeners: _ } = extent;
        (self.all_pods, self.all_services, self.all_endpoints) = (pods, services, endpoints);
        let entry = |unread: &Unread| UnreadEntry {
            what: unread.what.to_string(),
            known: unread.known.to_string(),
            why: unread.why.to_string(),
        };
        self.unread = unread.iter().map(entry).collect();
    }

    /// Returns which kinds were returned in full, and the objects that could not be read.
    pub(crate) fn listing(&self) -> Listing {
        let extent = Extent {
            pods: self.all_pods,
            services: self.all_services,
            endpoints: self.all_endpoints,
            listeners: false,
        };
        let unread = self.unread.iter().map(|entry| Unread {
            what: (&*entry.what).into(),
            known: (&*entry.known).into(),
            why: (&*entry.why).into(),
        });
        let read_at = ReadTime { begun: (&*self.begun).into(), ended: (&*self.ended).into() };
        Listing::new(extent, unread.collect(), read_at)
    }
}
