//! Tests of the state folder from a user's point of view.

use std::fs;
use std::path::PathBuf;

use super::{batch, place};
use crate::cloud::Storage as _;
use crate::store::Store;

/// A temporary folder, which is removed when this is dropped.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("uturn-cloud-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        Self(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn what_is_stored_is_there_again_and_only_its_owner_reads_it() {
    let folder = Folder::new("again");
    let state = folder.0.join("deep").join("state");
    let (store, accounts) = Store::open(&state).unwrap();
    assert!(accounts.is_empty());
    store.commit(&batch(0)).unwrap();
    let error = Store::open(&state).unwrap_err().to_string();
    assert!(error.contains("is open in another process"), "{error}");
    drop(store);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let mode = |path: &PathBuf| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&state), mode(&state.join("cloud.redb"))), (0o700, 0o600));
        let wide = fs::Permissions::from_mode(0o644);
        fs::set_permissions(state.join("cloud.redb"), wide).unwrap();
        drop(Store::open(&state).unwrap());
        assert_eq!(mode(&state.join("cloud.redb")), 0o600);
    }
    let (_, accounts) = Store::open(&state).unwrap();
    assert_eq!(accounts[&place("one")].client_tokens.len(), 1);
}

#[test]
fn a_database_that_was_not_finished_is_made_anew() {
    let folder = Folder::new("unfinished");
    fs::create_dir_all(&folder.0).unwrap();
    fs::write(folder.0.join("cloud.redb.new"), "redb\x1a").unwrap();
    let (_, accounts) = Store::open(&folder.0).unwrap();
    assert!(accounts.is_empty());
    assert!(!folder.0.join("cloud.redb.new").exists());
}

#[test]
fn a_file_that_is_no_database_is_named_and_left() {
    let folder = Folder::new("foreign");
    let file = folder.0.join("cloud.redb");
    fs::create_dir_all(&folder.0).unwrap();
    for text in ["", "redb", "not a database, and long enough to be one of them, as it seems"] {
        fs::write(&file, text).unwrap();
        let error = Store::open(&folder.0).unwrap_err().to_string();
        for part in [&*file.to_string_lossy(), "is damaged or not a database", "move it away"] {
            assert!(error.contains(part), "{text:?}: {error}");
        }
        assert_eq!(fs::read_to_string(&file).unwrap(), text);
    }
}
