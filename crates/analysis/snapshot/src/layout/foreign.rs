//! Recognises folders that tools fill with other projects, and those with the data of tests: their
//! files are not what the project applies.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use uturn_document::is_manifest;

/// The files of a folder that tell the purpose of the folders beside them.
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

    /// Returns whether a folder beside these files is not the project's own, or has data of tests.
    pub(super) fn make_foreign(&self, path: &Path) -> bool {
        let is_foreign = match path.file_name().and_then(OsStr::to_str) {
            Some(".git" | ".hg" | ".svn") => true,
            Some("node_modules") => self.npm,
            Some("vendor") => self.go || self.composer || has_modules(path),
            // The go tool ignores folders of this name.
            Some("testdata") => self.go,
            _ => false,
        };
        is_foreign && path.is_dir()
    }
}

/// Returns whether a folder has Go modules, which are named after their origin.
fn has_modules(folder: &Path) -> bool {
    let hosts = ["github.com", "k8s.io", "golang.org"].into_iter();
    folder.join("modules.txt").is_file() || hosts.into_iter().any(|host| folder.join(host).is_dir())
}

/// Returns the number of manifests in a folder, without following links.
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
