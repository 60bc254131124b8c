//! The machine's tools: the `iptables` that its kernel supports, and kernel modules that load on
//! demand.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use super::root;

/// The folder of the machine's own tools.
const OWN: &str = "/run/uturn-machine";

/// Folders that are appended to the job's `PATH`.
const FOLDERS: [&str; 6] =
    ["/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"];

/// The names of the legacy variant of `iptables`: the kernel has no nf_tables for IP.
const LEGACY: [&str; 6] = [
    "iptables",
    "iptables-save",
    "iptables-restore",
    "ip6tables",
    "ip6tables-save",
    "ip6tables-restore",
];

/// Modules that every cluster node has loaded, and that programs expect without loading them.
const PRESENT: [&str; 3] = ["br_netfilter", "ip_vs", "tun"];

/// Installs the tools and loads the modules.
pub(super) fn set_up(release: &str) -> io::Result<()> {
    let bin = bin();
    fs::create_dir_all(&bin)?;
    let legacy = need("xtables-legacy-multi")?;
    for name in LEGACY {
        symlink(&legacy, bin.join(name))?;
    }
    let index = Path::new(OWN).join("modules");
    root::index_modules(&index, release)?;
    let modprobe = bin.join("modprobe");
    let real = need("modprobe")?;
    let text = format!("#!/bin/sh\nexec {} -d {} \"$@\"\n", real.display(), index.display());
    fs::write(&modprobe, text)?;
    fs::set_permissions(&modprobe, Permissions::from_mode(0o755))?;
    // The kernel calls this program to load a missing module.
    fs::write("/proc/sys/kernel/modprobe", format!("{}\n", modprobe.display()))?;
    root::load(&index, &PRESENT)
}

/// Returns the job's environment, with a `PATH` that begins with the machine's tools.
pub(super) fn environment(stated: &[(OsString, OsString)]) -> BTreeMap<OsString, OsString> {
    let mut all: BTreeMap<OsString, OsString> = stated.iter().cloned().collect();
    let path = all.remove(&OsString::from("PATH")).unwrap_or_default();
    let folders = std::env::split_paths(&path).filter(|folder| folder.is_absolute());
    let folders = [bin()].into_iter().chain(folders).chain(FOLDERS.map(PathBuf::from));
    // A folder out of a path list has no colon.
    let path = std::env::join_paths(folders).unwrap_or_else(|_| bin().into());
    all.insert("PATH".into(), path);
    all
}

/// Returns the path of a program, for a job with this environment.
pub(super) fn find(program: &Path, environment: &BTreeMap<OsString, OsString>) -> Option<PathBuf> {
    if program.components().count() > 1 {
        return Some(program.to_owned());
    }
    let path = environment.get(OsStr::new("PATH"))?;
    in_folders(program, std::env::split_paths(path))
}

/// Looks for a program of the host.
pub(super) fn need(program: &str) -> io::Result<PathBuf> {
    let found = in_folders(Path::new(program), FOLDERS.map(PathBuf::from));
    found.ok_or_else(|| io::Error::other(format!("no program {program}")))
}

fn in_folders(program: &Path, folders: impl IntoIterator<Item = PathBuf>) -> Option<PathBuf> {
    folders.into_iter().map(|folder| folder.join(program)).find(|file| file.is_file())
}

fn bin() -> PathBuf {
    Path::new(OWN).join("bin")
}
