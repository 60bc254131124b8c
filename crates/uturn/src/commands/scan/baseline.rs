//! The file of known findings, read and written.

use std::fs;
use std::path::Path;

use uturn_diagnose::Finding;
use uturn_diagnose::analysis::{Analysis, IgnoreRules, Suppression};
use uturn_model::Cluster;
use uturn_report::baseline::Baseline;
use uturn_snapshot::whole_file;

use crate::status::Failure;

/// What a baseline has at most.
const MAX: u64 = 64 << 20;

/// A baseline and the name of its file.
pub(super) struct BaselineFile {
    pub(super) name: String,
    pub(super) list: Baseline,
}

impl BaselineFile {
    /// Reads a baseline. Returns `None` if none was given.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read or is no baseline, together with all that is
    /// wrong with the annotations that ignore findings.
    pub(super) fn read(file: Option<&Path>, cluster: &Cluster) -> Result<Option<Self>, Failure> {
        let Some(file) = file else { return Ok(None) };
        let name = file.display().to_string();
        let text =
            whole_file::text_of(file, MAX).map_err(|why| format!("{name}: cannot be read: {why}"));
        match text.and_then(|text| Baseline::parse(&text, &name)) {
            Ok(list) => Ok(Some(Self { name, list })),
            Err(fault) => {
                let others = IgnoreRules::read(cluster).err().unwrap_or_default();
                let others = others.iter().map(ToString::to_string);
                Err(Failure::input(others.chain([fault]).collect()))
            }
        }
    }

    /// How many findings of the baseline are no longer there.
    pub(super) fn gone(&self, analysis: &Analysis) -> usize {
        let suppressed = analysis.suppressed.iter().map(|suppressed| &suppressed.finding);
        self.list.gone(analysis.findings.iter().chain(suppressed))
    }
}

/// Writes everything that was found and is not ignored, and returns how many entries that makes.
/// The file is complete or not there.
///
/// # Errors
/// Returns an error if the file cannot be written.
pub(super) fn write(file: &Path, analysis: &Analysis) -> Result<usize, Failure> {
    let known = analysis.suppressed.iter().filter_map(|suppressed| match suppressed.why {
        Suppression::Known { .. } => Some(&suppressed.finding),
        Suppression::Ignored { .. } => None,
    });
    let all: Vec<&Finding> = analysis.findings.iter().chain(known).collect();
    let baseline = Baseline::of(all.into_iter());
    let mut part = file.as_os_str().to_owned();
    part.push(".part");
    fs::write(&part, baseline.text()).and_then(|()| fs::rename(&part, file)).map_err(|why| {
        // The file may be half written.
        let _ = fs::remove_file(&part);
        Failure::usage(format!("{}: cannot be written: {why}", file.display()))
    })?;
    Ok(baseline.len())
}
