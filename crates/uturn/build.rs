//! Gives the program the commit that it is built from, as far as git tells it.

use std::path::Path;
use std::process::Command;

fn main() {
    let root = Path::new("../..");
    println!("cargo:rerun-if-changed=build.rs");
    let branch = git(root, &["symbolic-ref", "-q", "HEAD"]);
    for changed in ["HEAD"].into_iter().chain(branch.as_deref()) {
        let file = git(root, &["rev-parse", "--git-path", changed]).map(|path| root.join(path));
        if let Some(file) = file.filter(|file| file.is_file()) {
            println!("cargo:rerun-if-changed={}", file.display());
        }
    }
    let commit = git(root, &["show", "-s", "--format=%h %cs", "HEAD"]);
    println!("cargo:rustc-env=BUILT_FROM={}", commit.unwrap_or_default());
}

/// Returns what git prints about this repository; `None` without git, or outside of a repository.
fn git(root: &Path, args: &[&str]) -> Option<String> {
    if !root.join(".git").exists() {
        return None;
    }
    let output = Command::new("git").current_dir(root).args(args).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    let text = text.trim();
    (output.status.success() && !text.is_empty()).then(|| text.to_owned())
}
