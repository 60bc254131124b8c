//! The place of a process's offer: a socket in a folder that only its user may enter.
//!
//! The name of the socket consists of the process's id and its network namespace, to which the
//! listening sockets belong.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

/// Returns the folders that a user's processes may use. The first one that can be used is.
fn folders(user: u32) -> Vec<PathBuf> {
    let own = match user {
        0 => PathBuf::from("/run"),
        user => Path::new("/run/user").join(user.to_string()),
    };
    vec![own.join("uturn-lb"), Path::new("/tmp").join(format!("uturn-lb-{user}"))]
}

/// Makes a folder for the sockets of a user, unless it exists.
///
/// # Errors
/// When no folder can be made, or others may enter an existing one.
pub(super) fn make_folder(user: u32) -> io::Result<PathBuf> {
    let mut last = io::Error::from(io::ErrorKind::NotFound);
    for folder in folders(user) {
        match make_private(&folder, user) {
            Ok(()) => return Ok(folder),
            Err(error) => last = named(&folder, &error),
        }
    }
    Err(last)
}

fn named(folder: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", folder.display()))
}

fn make_private(folder: &Path, user: u32) -> io::Result<()> {
    match DirBuilder::new().mode(0o700).create(folder) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        _ => check_private(folder, user),
    }
}

fn check_private(folder: &Path, user: u32) -> io::Result<()> {
    let found = fs::symlink_metadata(folder)?;
    if found.is_dir() && found.uid() == user && found.mode() & 0o077 == 0 {
        Ok(())
    } else {
        Err(io::Error::other("expected a folder that only this user may enter"))
    }
}

/// Finds the socket at which a process of a user offers itself, in the network namespace of this
/// thread.
///
/// # Errors
/// When others may enter the socket's folder, or /proc is missing.
pub(super) fn find(user: u32, process: u32) -> io::Result<Option<PathBuf>> {
    for folder in folders(user) {
        let socket = folder.join(name(process)?);
        if fs::symlink_metadata(&socket).is_ok() {
            let checked = check_private(&folder, user);
            return checked.map_err(|error| named(&folder, &error)).map(|()| Some(socket));
        }
    }
    Ok(None)
}

/// Returns the name of a process's socket.
///
/// # Errors
/// When /proc is missing.
pub(super) fn name(process: u32) -> io::Result<String> {
    let namespace = fs::metadata("/proc/thread-self/ns/net")?.ino();
    Ok(format!("{process}-{namespace}"))
}

/// Removes the sockets of processes that were killed.
pub(super) fn remove_leftovers(folder: &Path) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let process = name.to_str().and_then(|name| name.split_once('-')).map(|(id, _)| id);
        if let Some(process) = process
            && process.bytes().all(|byte| byte.is_ascii_digit())
            && !Path::new("/proc").join(process).exists()
        {
            // Another process may have removed it already.
            let _ = fs::remove_file(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use rustix::process::geteuid;

    use super::*;

    #[test]
    fn a_folder_that_others_may_enter_is_refused() {
        let base = std::env::temp_dir().join(format!("uturn-place-{}", std::process::id()));
        fs::create_dir(&base).unwrap();
        let user = geteuid().as_raw();
        let folder = base.join("own");
        make_private(&folder, user).unwrap();
        make_private(&folder, user).unwrap();
        assert_eq!(fs::metadata(&folder).unwrap().mode() & 0o777, 0o700);
        make_private(&folder, user + 1).unwrap_err();
        symlink(&folder, base.join("link")).unwrap();
        make_private(&base.join("link"), user).unwrap_err();
        fs::write(base.join("file"), "").unwrap();
        make_private(&base.join("file"), user).unwrap_err();
        for mode in [0o710, 0o701, 0o720, 0o777, 0o1777] {
            fs::set_permissions(&folder, fs::Permissions::from_mode(mode)).unwrap();
            make_private(&folder, user).unwrap_err();
        }
        fs::remove_dir_all(base).unwrap();
    }

    #[test]
    fn only_sockets_of_processes_that_are_gone_are_removed() {
        let folder = std::env::temp_dir().join(format!("uturn-gone-{}", std::process::id()));
        fs::create_dir(&folder).unwrap();
        let own = name(std::process::id()).unwrap();
        for name in ["4294967295-1", &own, "notes-1", "-1"] {
            fs::write(folder.join(name), "").unwrap();
        }
        remove_leftovers(&folder);
        assert!(!folder.join("4294967295-1").exists());
        assert!(folder.join(own).exists() && folder.join("notes-1").exists());
        fs::remove_dir_all(folder).unwrap();
    }
}
