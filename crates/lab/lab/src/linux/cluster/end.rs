//! Takes a cluster down.

use std::os::fd::OwnedFd;
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open};

use super::record::{self, Recorded};
use crate::LabError;
use crate::linux::kernel::system::During;
use crate::linux::kernel::wait::wait;
use crate::linux::run::state::{is_dead, processes, start_time};
use crate::linux::sweep::sweep;

/// The longest time for a supervisor to take everything down in order.
const PATIENCE: Duration = Duration::from_secs(20);

/// The time between two checks of the supervisor.
const INTERVAL: Duration = Duration::from_millis(50);

/// Takes down all clusters of this machine. Returns their number, and a line for each thing that a
/// dead or stuck supervisor left.
pub(crate) fn down() -> Result<(usize, Vec<String>), LabError> {
    let during = "take the cluster down";
    let all = record::all().during(during)?;
    let mut programs = Vec::new();
    for cluster in &all {
        let on_record = processes(&cluster.folder).during(during)?;
        // A process that has ended meanwhile is not waited for.
        let open = |process| pidfd_open(process, PidfdFlags::empty()).ok();
        programs.extend(on_record.into_iter().filter_map(open));
    }
    for cluster in &all {
        if signal(cluster, Signal::TERM).during(during)? && !ends(cluster).during(during)? {
            signal(cluster, Signal::KILL).during(during)?;
            ends(cluster).during(during)?;
        }
    }
    let removed = sweep()?;
    wait_for(&programs)?;
    Ok((all.len(), removed))
}

/// Waits until killed processes are gone, for which the kernel takes a moment.
fn wait_for(programs: &[OwnedFd]) -> Result<(), LabError> {
    let end = Instant::now() + PATIENCE;
    for program in programs {
        // The descriptor is readable once the process has ended.
        wait(&mut [PollFd::new(program, PollFlags::IN)], end)?;
    }
    Ok(())
}

/// Sends a signal to the supervisor. Returns `false` if the supervisor is gone.
fn signal(cluster: &Recorded, signal: Signal) -> std::io::Result<bool> {
    let (id, started) = &cluster.supervisor;
    let is_same = start_time(*id).is_some_and(|now| now == *started);
    let Some(pid) = i32::try_from(*id).ok().and_then(Pid::from_raw).filter(|_| is_same) else {
        return Ok(false);
    };
    match kill_process(pid, signal) {
        Ok(()) => Ok(true),
        Err(Errno::SRCH) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Waits until the supervisor has released its run. Returns `false` if it does not.
fn ends(cluster: &Recorded) -> std::io::Result<bool> {
    let end = Instant::now() + PATIENCE;
    while !is_dead(&cluster.folder)? {
        if Instant::now() > end {
            return Ok(false);
        }
        thread::sleep(INTERVAL);
    }
    // The supervisor removes the folder last.
    while cluster.folder.exists() && Instant::now() < end {
        let (id, started) = &cluster.supervisor;
        if start_time(*id).is_none_or(|now| now != *started) {
            break;
        }
        thread::sleep(INTERVAL);
    }
    Ok(true)
}
