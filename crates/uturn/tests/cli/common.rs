//! Runs whole commands as a user would, from the root of the tree.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// The root of the tree.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// A command that has not run yet.
pub(crate) fn uturn(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_uturn"));
    command
        .args(args)
        .current_dir(root())
        .stdin(Stdio::null())
        .env("NO_COLOR", "1")
        .env("COLUMNS", "110")
        // The developer's own cluster is not read.
        .env("KUBECONFIG", "no-kubeconfig")
        .env_remove("KUBERNETES_SERVICE_HOST")
        .env_remove("RUST_BACKTRACE");
    command
}

/// All that a command gives: its exit status, stdout and stderr.
pub(crate) fn transcript(output: &Output) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let code = output.status.code().map_or("killed".to_owned(), |code| code.to_string());
    let mut printed = format!("exit {code}\n");
    for (name, bytes) in [("stdout", &output.stdout), ("stderr", &output.stderr)] {
        if !bytes.is_empty() {
            printed.push_str(&format!("--- {name}\n{}", text(bytes)));
        }
    }
    printed
}

/// Runs a command and gives all that it gives.
pub(crate) fn run(args: &[&str]) -> String {
    transcript(&uturn(args).output().unwrap())
}

/// A folder of one test, gone when it ends.
pub(crate) struct Folder(pub(crate) PathBuf);

impl Folder {
    pub(crate) fn new(test: &str) -> Self {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(test);
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    /// A folder with a file of manifests, `a.yaml`.
    pub(crate) fn of(test: &str, parts: &[String]) -> Self {
        let folder = Self::new(test);
        folder.file("a.yaml", &parts.concat());
        folder
    }

    pub(crate) fn file(&self, name: &str, text: &str) -> &Self {
        let path = self.0.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
        self
    }

    /// Writes a file that only this user can read.
    pub(crate) fn secret(&self, name: &str, text: &str) -> &Self {
        self.file(name, text);
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            fs::set_permissions(self.0.join(name), fs::Permissions::from_mode(0o600)).unwrap();
        }
        self
    }

    /// Runs a command inside the folder and gives all that it gives.
    pub(crate) fn run(&self, args: &[&str]) -> String {
        transcript(&uturn(args).current_dir(&self.0).output().unwrap())
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Fails unless a command printed this at first.
#[track_caller]
pub(crate) fn assert_begins(printed: &str, begins: &str) {
    assert!(printed.starts_with(begins), "{printed}");
}

/// Fails unless a command printed this at first, and these parts.
#[track_caller]
pub(crate) fn assert_printed(printed: &str, begins: &str, parts: &[&str]) {
    assert_begins(printed, begins);
    parts.iter().for_each(|part| assert!(printed.contains(part), "{part:?} is not in\n{printed}"));
}

/// Fails unless a command ended with this status and printed these parts.
#[track_caller]
pub(crate) fn assert_found(printed: &str, exit: u8, parts: &[&str]) {
    assert_printed(printed, &format!("exit {exit}\n"), parts);
}

/// Fails unless a command printed these parts.
#[track_caller]
pub(crate) fn assert_has(printed: &str, parts: &[&str]) {
    assert_printed(printed, "", parts);
}
