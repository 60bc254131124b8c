//! The options of a measurement: the same here and in the small machine.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf, absolute};

use serde::{Deserialize, Serialize};
use uturn_cli::Failure;
use uturn_lab::Watching;
use uturn_model::{Capture, Name};

use crate::cli::LabRun;

/// The options of a measurement, as the flags state them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct MeasureOptions {
    /// The smallest number of connects for each flow.
    pub(super) connects: u32,
    /// Whether connections begin one after another.
    pub(super) paced: bool,
    /// The path of CoreDNS.
    pub(super) coredns: Option<PathBuf>,
    /// The folder with the captures of nodes.
    pub(super) rules: Option<PathBuf>,
    /// The folder that gets a folder of captures for each case.
    pub(super) pcap: Option<PathBuf>,
    /// Whether failed connections are explained.
    pub(super) explain: bool,
}

impl MeasureOptions {
    pub(super) fn of(args: &LabRun) -> Result<Self, Failure> {
        let whole = |path: &Option<PathBuf>| {
            let whole = path.as_ref().map(absolute).transpose();
            whole.map_err(|why| Failure::usage(format!("a path of the command line: {why}")))
        };
        let (coredns, rules) = (whole(&args.coredns)?, whole(&args.rules)?);
        if let Some(path) = coredns.as_ref().filter(|path| !path.is_file()) {
            return Err(Failure::usage(format!("there is no program {}", path.display())));
        }
        let (pcap, explain) = (whole(&args.pcap)?, args.explain);
        Ok(Self { connects: args.connects, paced: false, coredns, rules, pcap, explain })
    }

    /// Reads the captures of nodes. Each folder has the name of its node.
    pub(super) fn captures(&self) -> Result<BTreeMap<Name, Capture>, Failure> {
        self.rules.as_deref().map_or_else(|| Ok(BTreeMap::new()), read)
    }

    /// Returns options with this number of connects, and nothing else.
    pub(super) fn plain(connects: u32) -> Self {
        Self { connects, paced: false, coredns: None, rules: None, pcap: None, explain: false }
    }

    /// Returns what is observed of a case.
    pub(super) fn watching(&self, scenario: &str, case: &str) -> Watching {
        let words = case.split(|c: char| !c.is_ascii_alphanumeric());
        let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
        let folder = format!("{scenario}-{}", words.join("-"));
        let captures = self.pcap.as_ref().map(|all| all.join(folder));
        Watching { captures, explain: self.explain }
    }
}

fn read(folder: &Path) -> Result<BTreeMap<Name, Capture>, Failure> {
    let unreadable =
        |why: std::io::Error| Failure::input(vec![format!("{}: {why}", folder.display())]);
    let mut all = BTreeMap::new();
    for entry in fs::read_dir(folder).map_err(unreadable)? {
        let path = entry.map_err(unreadable)?.path();
        if !path.is_dir() {
            continue;
        }
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let name = Name::new(name).map_err(|_| {
            let path = path.display();
            Failure::input(vec![format!("{path}: expected a folder with the name of a node")])
        })?;
        let capture = uturn_snapshot::read_capture(&path, name.clone())
            .map_err(|faults| Failure::input(faults.iter().map(ToString::to_string).collect()))?;
        all.insert(name, capture);
    }
    if all.is_empty() {
        let folder = folder.display();
        let what = format!("{folder}: expected a folder with a capture for each node");
        return Err(Failure::input(vec![what]));
    }
    Ok(all)
}
