//! The manifest of a capture: a file that describes the capture.

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use uturn_model::{Capture, CaptureFile};

use crate::machine::ToolFailure;

/// The format of the manifest that this version writes.
pub const FORMAT: u32 = 1;

/// The time at which a node was captured, the tools, and the parts that could not be captured.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Manifest {
    /// The format of the file: [`FORMAT`].
    pub format: u32,
    /// The name of the node.
    pub node: String,
    /// The time at which the capture began, in the format of RFC 3339.
    pub taken_at: String,
    /// The version of uturn.
    pub uturn: String,
    /// The release of the kernel.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel: Option<String>,
    /// Whether the rules were the same at the beginning and at the end. If not, something kept
    /// changing them, and files may not fit together.
    pub settled: bool,
    /// The parts that were requested, in order.
    pub parts: Vec<Part>,
}

/// The result of one tool or file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Part {
    /// The file of the capture that contains the result, or would contain it.
    pub file: String,
    /// The command, or the path that was read.
    pub from: String,
    /// The state of the part.
    pub state: PartState,
    /// The reason why the part is missing, or a remark on it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

/// The state of a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum PartState {
    /// The part is in the file.
    Captured,
    /// The machine has no such tool or file.
    Missing,
    /// The tool took too long.
    TimedOut,
    /// The tool failed.
    Failed,
}

impl Manifest {
    /// Reads the manifest of a capture. Returns `None` if the capture has no manifest, or one of a
    /// later format.
    pub fn of(capture: &Capture) -> Option<Self> {
        let text = &capture.files.get(&CaptureFile::Manifest)?.text;
        let manifest: Self = serde_json::from_str(text).ok()?;
        (manifest.format == FORMAT).then_some(manifest)
    }

    /// Returns how long before a reading the capture was taken, or how long after it as a negative
    /// time. Returns zero if it was taken during the reading, and `None` if a time cannot be
    /// parsed.
    pub fn before(&self, begun: &str, ended: &str) -> Option<SignedDuration> {
        let time = |text: &str| text.parse::<Timestamp>().ok();
        let (taken, begun, ended) = (time(&self.taken_at)?, time(begun)?, time(ended)?);
        Some(match taken {
            _ if taken < begun => begun.duration_since(taken),
            _ if taken > ended => ended.duration_since(taken),
            _ => SignedDuration::ZERO,
        })
    }

    /// Returns the parts that could not be captured.
    pub fn lacks(&self) -> impl Iterator<Item = &Part> {
        self.parts.iter().filter(|part| part.state != PartState::Captured)
    }
}

impl Part {
    /// Makes a part that was captured.
    pub(crate) fn captured(file: &str, from: impl Into<String>) -> Self {
        Self { file: file.to_owned(), from: from.into(), state: PartState::Captured, why: None }
    }

    /// Makes a part that could not be captured.
    pub(crate) fn failed(file: &str, from: impl Into<String>, why: &ToolFailure) -> Self {
        let state = match why {
            ToolFailure::Missing => PartState::Missing,
            ToolFailure::TimedOut(_) => PartState::TimedOut,
            ToolFailure::Failed(_) => PartState::Failed,
        };
        let (file, from, why) = (file.to_owned(), from.into(), Some(why.to_string()));
        Self { file, from, state, why }
    }

    /// Adds a remark.
    pub(crate) fn with(mut self, why: impl Into<String>) -> Self {
        self.why = Some(why.into());
        self
    }
}
