//! Runs whole commands as a user would, from the root of the tree.
//!
//! The programs are those that cargo has built beside the tests: `cargo test --workspace` builds
//! all, `cargo test -p uturn-lb-cli` only `uturn-lb`.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// The commands that are programs of their own, and the packages of these.
const PARTS: [(&str, &str); 4] = [
    ("lab", "uturn-lab-cli"),
    ("lb", "uturn-lb-cli"),
    ("cloud", "uturn-cloud-cli"),
    ("operator", "uturn-operator-cli"),
];

/// Returns the root of the tree.
pub fn root() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..");
    root.canonicalize().expect("the tree that the tests were built from")
}

/// Returns a program that cargo has built beside this test: `uturn`, or that of a part, `uturn-lb`.
///
/// # Panics
/// If it is not there. The message says what to build.
pub fn built(program: &str) -> PathBuf {
    let path = folder().join(format!("{program}{}", env::consts::EXE_SUFFIX));
    let command = program.strip_prefix("uturn-").unwrap_or_default();
    let part = PARTS.into_iter().find(|(part, _)| *part == command);
    let package = part.map_or(program, |(_, package)| package);
    assert!(
        path.is_file(),
        "this test needs {}, which is not built: cargo build -p {package}",
        path.display()
    );
    path
}

/// Returns the folder with the programs of the profile that this test has.
fn folder() -> PathBuf {
    let test = env::current_exe().expect("a test knows its own file");
    // `deps` is below that folder.
    test.ancestors().nth(2).unwrap_or(&test).to_owned()
}

/// Returns a command that has not run yet. A command that is a program of its own is run by that
/// program, as `uturn` would.
pub fn uturn(args: &[&str]) -> Command {
    let part = args.iter().find(|arg| !arg.starts_with('-')).copied().unwrap_or_default();
    let is_part = PARTS.iter().any(|(known, _)| *known == part);
    let program = if is_part { format!("uturn-{part}") } else { "uturn".to_owned() };
    let mut command = Command::new(built(&program));
    command.args(args);
    as_user(&mut command);
    command
}

/// Has a command run from the root of the tree, with an environment that changes no output.
pub fn as_user(command: &mut Command) {
    command
        .current_dir(root())
        .stdin(Stdio::null())
        .env("NO_COLOR", "1")
        .env("COLUMNS", "110")
        // The developer's own cluster is not read.
        .env("KUBECONFIG", "no-kubeconfig")
        .env_remove("KUBERNETES_SERVICE_HOST")
        .env_remove("RUST_BACKTRACE");
}

/// Returns all that a command gives: its exit status, stdout and stderr.
pub fn transcript(output: &Output) -> String {
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

/// Runs a command and returns all that it gives.
///
/// # Panics
/// If it cannot be started.
pub fn run(args: &[&str]) -> String {
    transcript(&uturn(args).output().expect("the program was built"))
}

/// A folder of one test, which is removed when this is dropped.
#[derive(Debug)]
pub struct Folder(
    /// The path of the folder.
    pub PathBuf,
);

impl Folder {
    /// Creates an empty folder.
    ///
    /// # Panics
    /// If the folder cannot be created.
    pub fn new(test: &str) -> Self {
        let built = folder();
        let path = built.parent().unwrap_or(&built).join("tmp").join(test);
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).expect("cargo's folder can be written");
        Self(path)
    }

    /// Creates a folder with a file of manifests, `a.yaml`.
    pub fn of(test: &str, parts: &[String]) -> Self {
        let folder = Self::new(test);
        folder.file("a.yaml", &parts.concat());
        folder
    }

    /// Writes a file.
    ///
    /// # Panics
    /// If the file cannot be written.
    pub fn file(&self, name: &str, text: &str) -> &Self {
        let path = self.0.join(name);
        let parent = path.parent().expect("a file is in a folder");
        fs::create_dir_all(parent).expect("the test's own folder can be written");
        fs::write(path, text).expect("the test's own folder can be written");
        self
    }

    /// Writes a file that only this user can read.
    ///
    /// # Panics
    /// If the file cannot be written.
    pub fn secret(&self, name: &str, text: &str) -> &Self {
        self.file(name, text);
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            fs::set_permissions(self.0.join(name), fs::Permissions::from_mode(0o600))
                .expect("the file was just written");
        }
        self
    }

    /// Runs a command inside the folder and returns all that it gives.
    ///
    /// # Panics
    /// If it cannot be started.
    pub fn run(&self, args: &[&str]) -> String {
        let output = uturn(args).current_dir(&self.0).output();
        transcript(&output.expect("the program was built"))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Fails unless a command printed this at first.
#[track_caller]
pub fn assert_begins(printed: &str, begins: &str) {
    assert!(printed.starts_with(begins), "{printed}");
}

/// Fails unless a command printed this at first, and these parts.
#[track_caller]
pub fn assert_printed(printed: &str, begins: &str, parts: &[&str]) {
    assert_begins(printed, begins);
    parts.iter().for_each(|part| assert!(printed.contains(part), "{part:?} is not in\n{printed}"));
}

/// Fails unless a command ended with this status and printed these parts.
#[track_caller]
pub fn assert_found(printed: &str, exit: u8, parts: &[&str]) {
    assert_printed(printed, &format!("exit {exit}\n"), parts);
}

/// Fails unless a command printed these parts.
#[track_caller]
pub fn assert_has(printed: &str, parts: &[&str]) {
    assert_printed(printed, "", parts);
}
