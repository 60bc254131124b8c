//! `bundle.json`: what a bundle is made of.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use uturn_model::Extent;
use uturn_model::cluster::{ReadTime, Unread};

use crate::documents::OURS;
use crate::listing::Listing;

/// What a bundle says of itself.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct BundleManifest {
    /// `uturn.dev/v1alpha1`.
    pub api_version: String,
    /// `Bundle`.
    pub kind: String,
    /// The version of the program that wrote it.
    pub uturn: String,
    /// The objects of a cluster. `None` if there are none in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub objects: Option<ObjectsManifest>,
    /// The nodes that were captured.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub nodes: Vec<NodeCaptured>,
    /// What else there is.
    #[serde(flatten)]
    pub others: Map<String, Value>,
}

/// A node that was captured. Its `capture.json` says more.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct NodeCaptured {
    /// Its name.
    pub node: String,
    /// When the capture began, as RFC 3339.
    pub taken_at: String,
}

/// What an API server gave.
#[derive(Clone, Debug, Default, Serialize, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "camelCase", default)]
pub struct ObjectsManifest {
    /// The version of the API server.
    pub server: Option<String>,
    /// When the reading began, as RFC 3339.
    pub begun: String,
    /// When it ended.
    pub ended: String,
    /// The kinds that were read.
    pub kinds: Vec<KindRead>,
    /// Whether all pods, and all that makes pods, were given.
    pub all_pods: bool,
    /// Whether all Services were given.
    pub all_services: bool,
    /// Whether the endpoints of all Services were given.
    pub all_endpoints: bool,
    /// What could not be read.
    pub unread: Vec<UnreadEntry>,
}

/// A kind that was read.
#[derive(Clone, Debug, Default, Serialize, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "camelCase", default)]
pub struct KindRead {
    /// Its name: `Pod`.
    pub kind: String,
    /// Its `apiVersion`. `None` if the API server does not have the kind.
    pub api_version: Option<String>,
    /// How many objects.
    pub count: usize,
    /// The version of the list.
    pub resource_version: Option<String>,
    /// The only namespace that was read. `None` if all were.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
}

/// What could not be read, as it is written.
#[derive(Clone, Debug, Default, Serialize, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "camelCase", default)]
pub struct UnreadEntry {
    /// Which objects.
    pub what: String,
    /// What is known of them.
    pub known: String,
    /// Why they could not be read.
    pub why: String,
}

impl BundleManifest {
    /// That of a bundle that this program writes.
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

    /// Its text.
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
    /// States what was given in full, and what was not given.
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

    /// What was given in full, and what was not given.
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
