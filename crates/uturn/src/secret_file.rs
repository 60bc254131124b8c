//! Files with secrets: whether other users of the machine can read them.

use std::fs;
use std::path::Path;

/// What to say of a file that other users of the machine can read or change; `None` if they cannot,
/// or if that is not known.
pub(crate) fn warning(file: &Path) -> Option<String> {
    let mode = mode(&fs::metadata(file).ok()?)?;
    let others = mode & 0o077;
    (others != 0).then(|| {
        let name = file.display();
        format!(
            "warning: {name} has a secret, and its mode {:03o} lets others at it; 600 does not",
            mode & 0o777
        )
    })
}

#[cfg(unix)]
fn mode(metadata: &fs::Metadata) -> Option<u32> {
    use std::os::unix::fs::PermissionsExt as _;

    metadata.is_file().then(|| metadata.permissions().mode())
}

#[cfg(not(unix))]
fn mode(_: &fs::Metadata) -> Option<u32> {
    None
}
