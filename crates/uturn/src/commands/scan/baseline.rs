//! Reads and writes the file of known findings.

use std::fs;
use std::path::Path;

use uturn_cli::Failure;
use uturn_diagnose::Finding;
use uturn_diagnose::analysis::{Analysis, IgnoreRules, Suppression};
use uturn_document::whole_file;
use uturn_model::Cluster;
use uturn_report::baseline::Baseline;

/// The largest size of a baseline, in bytes.
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
    /// If the file cannot be read or is no baseline. The error also lists all faults of the
    /// annotations that ignore findings.
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

    /// Returns how many findings of the baseline no longer occur.
    pub(super) fn gone(&self, analysis: &Analysis) -> usize {
        let suppressed = analysis.suppressed.iter().map(|suppressed| &suppressed.finding);
        self.list.gone(analysis.findings.iter().chain(suppressed))
    }
}

/// Writes all findings that are not ignored, and returns their number. Findings that differ only in
/// their clients share an entry. The file is either complete or absent.
///
/// # Errors
/// If the file cannot be written.
pub(super) fn write(file: &Path, analysis: &Analysis) -> Result<usize, Failure> {
    let known = analysis.suppressed.iter().filter_map(|suppressed| match suppressed.why {
        Suppression::Known { .. } => Some(&suppressed.finding),
        Suppression::Ignored { .. } => None,
    });
    let all: Vec<&Finding> = analysis.findings.iter().chain(known).collect();
    let baseline = Baseline::of(all.iter().copied());
    let mut part = file.as_os_str().to_owned();
    part.push(".part");
    fs::write(&part, baseline.text()).and_then(|()| fs::rename(&part, file)).map_err(|why| {
        // The file may be half written.
        let _ = fs::remove_file(&part);
        Failure::usage(format!("{}: cannot be written: {why}", file.display()))
    })?;
    Ok(all.len())
}
