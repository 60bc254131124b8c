//! `version -o json`.

use serde::Serialize;

/// What `uturn version -o json` prints.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Version<'a> {
    /// The version.
    pub version: &'a str,
    /// The commit that the program was built from; null where it was built without git.
    pub commit: Option<&'a str>,
    /// The date of the commit; null where it was built without git.
    pub date: Option<&'a str>,
}
