//! What a capture says of itself, in a file beside what it captured.

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use uturn_model::{Capture, CaptureFile};

use crate::machine::ToolFailure;

/// The form of the manifest that this version writes.
pub const FORMAT: u32 = 1;

/// When a node was captured, by which tools, and what could not be captured.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Manifest {
    /// The form of this file: [`FORMAT`].
    pub format: u32,
    /// The node.
    pub node: String,
    /// When the capture began, as RFC 3339 has it.
    pub taken_at: String,
    /// The version of uturn.
    pub uturn: String,
    /// The release of the kernel.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel: Option<String>,
    /// Whether the rules were the same at the beginning and at the end. If not, something was
    /// changing them all the time, and files may not fit together.
    pub settled: bool,
    /// What was asked for, in order.
    pub parts: Vec<Part>,
}

/// One tool or file that was asked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Part {
    /// The file of the capture that its answer is in, or would be in.
    pub file: String,
    /// The command, or the path that was read.
    pub from: String,
    /// What became of it.
    pub state: PartState,
    /// Why it is not there, or what is to know of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

/// What became of a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum PartState {
    /// It is in the file.
    Captured,
    /// The machine has no such tool or file.
    Missing,
    /// The tool took too long.
    TimedOut,
    /// The tool failed.
    Failed,
}

impl Manifest {
    /// Reads the manifest of a capture. Returns `None` if it has none, or one of a later form.
    pub fn of(capture: &Capture) -> Option<Self> {
        let text = &capture.files.get(&CaptureFile::Manifest)?.text;
        let manifest: Self = serde_json::from_str(text).ok()?;
        (manifest.format == FORMAT).then_some(manifest)
    }

    /// How long before a reading this was taken, or how long after it: a negative time. Returns
    /// `None` if a time cannot be read, and zero if it was taken meanwhile.
    pub fn before(&self, begun: &str, ended: &str) -> Option<SignedDuration> {
        let time = |text: &str| text.parse::<Timestamp>().ok();
        let (taken, begun, ended) = (time(&self.taken_at)?, time(begun)?, time(ended)?);
        Some(match taken {
            _ if taken < begun => begun.duration_since(taken),
            _ if taken > ended => ended.duration_since(taken),
            _ => SignedDuration::ZERO,
        })
    }

    /// The parts that could not be captured.
    pub fn lacks(&self) -> impl Iterator<Item = &Part> {
        self.parts.iter().filter(|part| part.state != PartState::Captured)
    }
}

impl Part {
    /// A part that was captured.
    pub(crate) fn captured(file: &str, from: impl Into<String>) -> Self {
        Self { file: file.to_owned(), from: from.into(), state: PartState::Captured, why: None }
    }

    /// A part that was not.
    pub(crate) fn failed(file: &str, from: impl Into<String>, why: &ToolFailure) -> Self {
        let state = match why {
            ToolFailure::Missing => PartState::Missing,
            ToolFailure::TimedOut(_) => PartState::TimedOut,
            ToolFailure::Failed(_) => PartState::Failed,
        };
        let (file, from, why) = (file.to_owned(), from.into(), Some(why.to_string()));
        Self { file, from, state, why }
    }

    /// Adds what is to know of it.
    pub(crate) fn with(mut self, why: impl Into<String>) -> Self {
        self.why = Some(why.into());
        self
    }
}
