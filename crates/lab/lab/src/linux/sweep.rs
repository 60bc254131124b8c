//! Cleans up after runs that have died.

use std::fs;
use std::io;
use std::path::Path;

use rustix::io::Errno;
use rustix::process::{Signal, kill_process};

use super::kernel::namespace;
use super::observe;
use crate::LabError;
use crate::linux::kernel::system::During;
use crate::linux::run::state::{
    existing_folder, is_dead, lock_folder, prefix, processes, remove_folder, tracing,
};

/// Removes the processes, namespaces, tracers and state of dead runs. Returns what it removed.
///
/// # Errors
/// If something cannot be read or removed.
pub(crate) fn sweep() -> Result<Vec<String>, LabError> {
    let during = "sweep what dead runs left";
    let Some(runs) = existing_folder().during(during)? else { return Ok(Vec::new()) };
    let guard = lock_folder().during(during)?;
    let mut removed = Vec::new();
    for entry in fs::read_dir(runs).during(during)? {
        let folder = entry.during(during)?.path();
        let is_dead = folder.is_dir() && is_dead(&folder).during(during)?;
        if let Some(id) = folder.file_name().and_then(|name| name.to_str())
            && is_dead
        {
            clean_up(id, &folder, &mut removed).during(during)?;
        }
    }
    drop(guard);
    remove_folder();
    Ok(removed)
}

fn clean_up(id: &str, folder: &Path, removed: &mut Vec<String>) -> io::Result<()> {
    for process in processes(folder)? {
        match kill_process(process, Signal::KILL) {
            Ok(()) => removed.push(format!("process {}", process.as_raw_nonzero())),
            Err(Errno::SRCH) => {}
            Err(error) => return Err(error.into()),
        }
    }
    for name in namespace::names_with(&prefix(id))? {
        namespace::remove(&name)?;
        removed.push(format!("namespace {name}"));
    }
    if observe::forget(&tracing(id))? {
        removed.push(format!("tracer of run {id}"));
    }
    fs::remove_dir_all(folder)?;
    removed.push(format!("state of run {id}"));
    Ok(())
}
