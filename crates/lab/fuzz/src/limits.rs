//! Limits on memory and processor time for one input. They apply to the whole process.

use std::time::Duration;

/// The memory that a process may have, including its program: 1 GiB of address space.
pub const MOST_MEMORY: u64 = 1 << 30;

/// The processor time that one input may take. Other processes do not affect it.
pub const MOST_TIME: Duration = Duration::from_secs(10);

/// The processor time in seconds, beyond the allowed time, after which the system ends the process.
/// So an input that never ends is found too.
#[cfg(unix)]
const UNTIL_ENDED: u64 = 110;

/// Limits the memory of this process from here on. An allocation that fails ends the process.
///
/// # Errors
/// If the system allows no limit.
#[cfg(unix)]
pub fn limit_memory() -> std::io::Result<()> {
    use rustix::process::Resource;
    limit(Resource::As, MOST_MEMORY)
}

/// Makes the system end this process if its next input takes far more than [`MOST_TIME`].
///
/// # Errors
/// If the system allows no limit.
#[cfg(unix)]
pub fn limit_time() -> std::io::Result<()> {
    use rustix::process::Resource;
    limit(Resource::Cpu, processor_time().as_secs() + MOST_TIME.as_secs() + UNTIL_ENDED)
}

#[cfg(unix)]
fn limit(resource: rustix::process::Resource, most: u64) -> std::io::Result<()> {
    use rustix::process::{Rlimit, getrlimit, setrlimit};
    let Rlimit { maximum, .. } = getrlimit(resource);
    let most = maximum.map_or(most, |maximum| most.min(maximum));
    Ok(setrlimit(resource, Rlimit { current: Some(most), maximum })?)
}

/// Limits nothing: on this system, only the time of each input is checked afterwards.
///
/// # Errors
/// Never.
#[cfg(not(unix))]
pub fn limit_memory() -> std::io::Result<()> {
    Ok(())
}

/// Limits nothing: on this system, only the time of each input is checked afterwards.
///
/// # Errors
/// Never.
#[cfg(not(unix))]
pub fn limit_time() -> std::io::Result<()> {
    Ok(())
}

/// Returns the processor time that this process has used.
#[cfg(unix)]
pub fn processor_time() -> Duration {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::new(now.tv_sec.unsigned_abs(), u32::try_from(now.tv_nsec).unwrap_or_default())
}

/// Returns the elapsed time, since the processor time is not known on this system.
#[cfg(not(unix))]
pub fn processor_time() -> Duration {
    use std::sync::LazyLock;
    use std::time::Instant;
    static START: LazyLock<Instant> = LazyLock::new(Instant::now);
    START.elapsed()
}

/// Returns the peak memory of this process in bytes, or 0 if it is not known.
pub fn peak_memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kilobytes = line.and_then(|line| line.trim().strip_suffix(" kB")?.parse::<u64>().ok());
    kilobytes.unwrap_or_default() << 10
}
