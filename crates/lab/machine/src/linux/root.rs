//! The machine's file system: the host's, under an overlay in memory that takes the writes.

use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Stdio};

use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};
use rustix::process::pivot_root;

use super::find::MODULES;
use super::tools;

/// The folder in which the overlay is assembled before it becomes the root.
const STAGING: &str = "/run";

/// Makes the root file system and mounts the kernel's own file systems in it.
pub(super) fn set_up(release: &str) -> io::Result<()> {
    attach("proc", "/proc", "proc", None)?;
    attach("tmpfs", STAGING, "tmpfs", None)?;
    let [upper, work, root] = ["upper", "work", "root"].map(|it| Path::new(STAGING).join(it));
    for folder in [&upper, &work, &root] {
        fs::create_dir(folder)?;
    }
    let index = Path::new(STAGING).join("index");
    index_modules(&index, release)?;
    load(&index, &["overlay"])?;
    let options = format!("lowerdir=/,upperdir={},workdir={}", upper.display(), work.display());
    attach("overlay", &root, "overlay", Some(&options))?;
    attach("devtmpfs", root.join("dev"), "devtmpfs", None)?;
    attach("proc", root.join("proc"), "proc", None)?;
    attach("sysfs", root.join("sys"), "sysfs", None)?;
    // The host's runtime files do not describe the machine.
    attach("tmpfs", root.join("run"), "tmpfs", None)?;
    std::env::set_current_dir(&root)?;
    pivot_root(".", ".")?;
    unmount(".", UnmountFlags::DETACH)?;
    std::env::set_current_dir("/")?;
    for folder in ["/run/lock", "/dev/pts", "/dev/shm"] {
        fs::create_dir_all(folder)?;
    }
    attach("devpts", "/dev/pts", "devpts", Some("ptmxmode=0666"))?;
    attach("tmpfs", "/dev/shm", "tmpfs", None)
}

/// Makes a folder of the host writable.
pub(super) fn share(folder: &Path) -> io::Result<()> {
    let options = folder.to_str().filter(|path| !path.contains(','));
    let options = options.ok_or_else(|| {
        let reason = "expected a path in UTF-8 without a comma";
        io::Error::other(format!("cannot share {}: {reason}", folder.display()))
    })?;
    attach("none", folder, "hostfs", Some(options))
}

/// Loads kernel modules with the index in this folder.
pub(super) fn load(index: &Path, modules: &[&str]) -> io::Result<()> {
    let output = Command::new(tools::need("modprobe")?)
        .arg("--dirname")
        .arg(index)
        .arg("--all")
        .args(modules)
        .stdin(Stdio::null())
        .output()?;
    if output.status.success() {
        return Ok(());
    }
    let stderr = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    Err(io::Error::other(format!("cannot load modules ({}): {stderr}", modules.join(", "))))
}

/// Makes a folder in which modprobe finds the modules of this kernel. The Debian package includes
/// their index.
pub(super) fn index_modules(folder: &Path, release: &str) -> io::Result<()> {
    let modules = folder.join("lib/modules");
    fs::create_dir_all(&modules)?;
    symlink(Path::new(MODULES).join(release), modules.join(release))
}

fn attach(
    source: &str,
    target: impl AsRef<Path>,
    kind: &str,
    options: Option<&str>,
) -> io::Result<()> {
    let target = target.as_ref();
    let options = options.map(std::ffi::CString::new).transpose()?;
    mount(source, target, kind, MountFlags::empty(), options.as_deref()).map_err(|why| {
        io::Error::other(format!("cannot mount {kind} at {}: {why}", target.display()))
    })
}
