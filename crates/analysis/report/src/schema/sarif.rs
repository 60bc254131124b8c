//! `scan -o sarif`: the part of SARIF 2.1.0 that uturn writes. Its schema is OASIS's.

use serde::Serialize;

/// A SARIF document.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Log<'a> {
    /// The schema of the document.
    #[serde(rename = "$schema")]
    pub schema: &'static str,
    /// The version of SARIF.
    pub version: &'static str,
    /// The one run of uturn.
    pub runs: [Run<'a>; 1],
}

/// What one run of a tool found.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Run<'a> {
    /// The tool.
    pub tool: Tool<'a>,
    /// What a column counts.
    pub column_kind: &'static str,
    /// How the tool ran.
    pub invocations: [Invocation; 1],
    /// What it found.
    pub results: Vec<Finding<'a>>,
}

/// A tool.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Tool<'a> {
    /// The program itself.
    pub driver: Driver<'a>,
}

/// A program.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Driver<'a> {
    /// Its name.
    pub name: &'static str,
    /// Its version.
    pub semantic_version: &'static str,
    /// The rules that its results refer to.
    pub rules: Vec<Rule<'a>>,
}

/// What a code means.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Rule<'a> {
    /// The code.
    pub id: String,
    /// Its title as one word.
    pub name: String,
    /// Its title.
    pub short_description: Message,
    /// What it means.
    pub full_description: Message,
    /// Its page.
    pub help: Help<'a>,
    /// What it is about.
    pub properties: RuleProperties,
}

/// A page, as text and as Markdown.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Help<'a> {
    /// As text.
    pub text: &'a str,
    /// As Markdown.
    pub markdown: &'a str,
}

/// What a rule is about.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RuleProperties {
    /// In words.
    pub tags: [&'static str; 2],
}

/// A text.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Message {
    /// The text.
    pub text: String,
}

/// How a tool ran.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Invocation {
    /// Whether it ran to its end.
    pub execution_successful: bool,
    /// What it has to say beside its results.
    pub tool_execution_notifications: Vec<Notification>,
}

/// Something beside the results.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Notification {
    /// How grave it is.
    pub level: &'static str,
    /// What it says.
    pub message: Message,
}

/// A result.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Finding<'a> {
    /// The code.
    pub rule_id: String,
    /// The place of the code's rule among the rules.
    pub rule_index: usize,
    /// How grave it is.
    pub level: &'static str,
    /// What it says.
    pub message: Message,
    /// The object that it is about.
    pub locations: [Location<'a>; 1],
    /// What makes it the same result in another run.
    pub partial_fingerprints: Fingerprints<'a>,
    /// What SARIF has no field for.
    pub properties: FindingProperties,
    /// What it rests on.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub related_locations: Vec<RelatedLocation>,
    /// `unchanged`, where the baseline knows it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub baseline_state: Option<&'static str>,
    /// Why it does not count; absent where it counts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub suppressions: Option<[Suppression; 1]>,
}

/// What makes a result the same in another run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Fingerprints<'a> {
    /// uturn's own fingerprint.
    #[serde(rename = "uturn/v1")]
    pub own: &'a str,
    /// The same, under the name that code hosts look for.
    #[serde(rename = "primaryLocationLineHash")]
    pub primary: &'a str,
}

/// What SARIF has no field for.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct FindingProperties {
    /// The share of the clients' calls that are not answered at once.
    pub share_failing: f64,
    /// How many clients fail.
    pub clients: usize,
}

/// Where the object of a result is.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Location<'a> {
    /// Where it is written; absent where that is no file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub physical_location: Option<PhysicalLocation>,
    /// What it is called.
    pub logical_locations: [LogicalLocation<'a>; 1],
}

/// A place in a file.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PhysicalLocation {
    /// The file.
    pub artifact_location: ArtifactLocation,
    /// The place in it.
    pub region: Region,
}

/// A file.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ArtifactLocation {
    /// Its path as a URI.
    pub uri: String,
    /// What the URI is relative to; absent where it is absolute.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uri_base_id: Option<&'static str>,
}

/// A place in a file.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Region {
    /// The line, from 1.
    pub start_line: u32,
    /// The column, from 1; absent where only the line is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start_column: Option<u32>,
}

/// An object of the cluster.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LogicalLocation<'a> {
    /// `resource`.
    pub kind: &'static str,
    /// Its name.
    pub name: &'a str,
    /// Its kind, namespace and name.
    pub fully_qualified_name: String,
}

/// Something that a result rests on.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RelatedLocation {
    /// Where it is written.
    pub physical_location: PhysicalLocation,
    /// What it says.
    pub message: Message,
}

/// Why a result does not count.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Suppression {
    /// `inSource` for an annotation, `external` for a baseline.
    pub kind: &'static str,
    /// The reason.
    pub justification: String,
}
