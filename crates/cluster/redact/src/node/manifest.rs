//! Redacts the manifest of a capture.

use serde_json::{Value, json};
use uturn_model::CaptureFile;

use super::printed;
use crate::names::Names;
use crate::settings::version;
use crate::text::{NAMES, redact as redact_text};

/// Keeps the time of the capture, the kernel and the state of each part. Reasons are removed, since
/// tools name the objects that they could not read.
pub(super) fn redact(text: &str, names: &mut Names) -> Option<String> {
    let old: Value = serde_json::from_str(text).ok()?;
    let parts = old["parts"].as_array().into_iter().flatten().map(|part| {
        let of = |key: &str| part[key].as_str().unwrap_or_default();
        json!({
            "file": match CaptureFile::ALL.iter().find(|file| file.file_name() == of("file")) {
                Some(file) => file.file_name().to_owned(),
                None => redact_text(of("file"), &mut *names, printed()),
            },
            "from": redact_text(of("from"), &mut *names, printed()),
            "state": match of("state") {
                state @ ("captured" | "missing" | "timedOut" | "failed") => state,
                _ => "failed",
            },
        })
    });
    let parts: Vec<Value> = parts.collect();
    let text = |key: &str| old[key].as_str().unwrap_or_default();
    let is_time =
        |text: &str| text.bytes().all(|byte| byte.is_ascii_digit() || b"-:.TZ+".contains(&byte));
    let taken = Some(text("takenAt")).filter(|taken| is_time(taken));
    let mut new = json!({
        "format": old["format"].as_u64()?,
        "node": redact_text(text("node"), names, NAMES),
        "takenAt": taken.unwrap_or_default(),
        "uturn": version(text("uturn"), names),
        "settled": old["settled"].as_bool()?,
        "parts": parts,
    });
    if let Some(kernel) = old["kernel"].as_str() {
        new["kernel"] = version(kernel, names).into();
    }
    Some(new.to_string())
}
