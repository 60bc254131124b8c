//! Folders that tools fill with other projects, and those with the data of tests: what is in them is
//! not what the project applies.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use super::is_manifest;

/// What stands in a folder, as far as it tells what the folders in it are.
pub(super) struct Siblings {
    go: bool,
    npm: bool,
    composer: bool,
}

impl Siblings {
    pub(super) fn of(entries: &[PathBuf]) -> Self {
        let has =
            |name: &str| entries.iter().any(|path| path.file_name() == Some(OsStr::new(name)));
        let is_go = |path: &PathBuf| path.extension() == Some(OsStr::new("go"));
        Self {
            go: has("go.mod") || entries.iter().any(is_go),
            npm: has("package.json"),
            composer: has("composer.json"),
        }
    }

    /// Whether a folder beside them is not the project's own, or has what its tests read.
    pub(super) fn make_foreign(&self, path: &Path) -> bool {
        let is_foreign = match path.file_name().and_then(OsStr::to_str) {
            Some(".git" | ".hg" | ".svn") => true,
            Some("node_modules") => self.npm,
            Some("vendor") => self.go || self.composer || has_modules(path),
            // The go tool passes over folders of this name.
            Some("testdata") => self.go,
            _ => false,
        };
        is_foreign && path.is_dir()
    }
}

/// Whether a folder has modules of Go, which are named by where they come from.
fn has_modules(folder: &Path) -> bool {
    let hosts = ["github.com", "k8s.io", "golang.org"].into_iter();
    folder.join("modules.txt").is_file() || hosts.into_iter().any(|host| folder.join(host).is_dir())
}

/// How many manifests a folder has, without those that links lead to.
pub(super) fn manifests(folder: &Path) -> usize {
    let mut open = vec![folder.to_owned()];
    let mut count = 0;
    while let Some(folder) = open.pop() {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => open.push(entry.path()),
                Ok(kind) if kind.is_file() => count += usize::from(is_manifest(&entry.path())),
                _ => {}
            }
        }
    }
    count
}
