//! Checks files with secrets: whether others on the machine can read or change them.

use std::path::Path;

use crate::printer::Printer;
use crate::status::Failure;

/// The bit of a file's mode that lets others read it.
const OTHERS_READ: u32 = 0o004;

/// The bit of a file's mode that lets others write it.
const OTHERS_WRITE: u32 = 0o002;

/// Returns why a file is not used: whoever can change a credential decides who gets access. Returns
/// `None` if others cannot write the file, or if that is not known.
pub fn fault(file: &Path) -> Option<String> {
    let is_open = mode(file)? & OTHERS_WRITE != 0;
    is_open.then(|| format!("others may write {}: chmod o-w it", file.display()))
}

/// Returns a warning about a file that others can read, or `None` as [`fault`] does.
pub fn warning(file: &Path) -> Option<String> {
    let mode = mode(file)?;
    let is_exposed = mode & OTHERS_READ != 0;
    is_exposed.then(|| {
        let mode = mode & 0o777;
        format!("others may read {}, whose mode is {mode:03o}: chmod o-r it", file.display())
    })
}

/// Warns about files that others can read.
///
/// # Errors
///
/// If a file is not used, with the reason.
pub fn check<'f>(files: impl Iterator<Item = &'f Path>, printer: &Printer) -> Result<(), Failure> {
    for file in files {
        if let Some(fault) = fault(file) {
            return Err(Failure::usage(fault));
        }
        if let Some(warning) = warning(file) {
            printer.note(&format!("warning: {warning}"));
        }
    }
    Ok(())
}

/// Returns the mode of a file.
#[cfg(unix)]
fn mode(file: &Path) -> Option<u32> {
    use std::os::unix::fs::PermissionsExt as _;

    let metadata = std::fs::metadata(file).ok()?;
    metadata.is_file().then(|| metadata.permissions().mode())
}

/// Returns `None`: only Unix has modes.
#[cfg(not(unix))]
fn mode(_: &Path) -> Option<u32> {
    None
}
