//! `scan --write-baseline`.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::common::Severity;

/// What `uturn scan --write-baseline FILE` writes and `uturn scan --baseline FILE` reads.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BaselineFile {
    /// The version of this form.
    #[serde(rename = "uturnBaseline")]
    pub version: u64,
    /// The findings that are known.
    pub findings: Vec<KnownFinding>,
}

/// A finding that is known.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct KnownFinding {
    /// Its code.
    pub code: String,
    /// The kind of its object.
    pub kind: String,
    /// The namespace of its object; null where the kind has none.
    pub namespace: Option<String>,
    /// The name of its object.
    pub name: String,
    /// Why calls fail; null where nothing is lost on the way.
    pub mechanism: Option<String>,
    /// How calls end: `hangs`, `status 504`.
    pub outcome: String,
    /// How bad it is: a graver one is new.
    pub severity: Severity,
    /// The ports, hosts and paths of its object: one more is new.
    pub targets: BTreeSet<String>,
}
