//! What this process takes of the machine, as far as its system tells.

/// Seconds for which a processor worked for this thread: those that it had to wait for one
/// do not count.
#[cfg(target_os = "linux")]
pub(crate) fn worked() -> Option<f64> {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Some(time.tv_sec as f64 + time.tv_nsec as f64 / 1e9)
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn worked() -> Option<f64> {
    None
}

/// In KiB, now and at most so far.
pub(crate) fn taken() -> Option<(u64, u64)> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let field = |name: &str| -> Option<u64> {
        let line = status.lines().find_map(|line| line.strip_prefix(name))?;
        line.trim().strip_suffix(" kB")?.trim().parse().ok()
    };
    Some((field("VmRSS:")?, field("VmHWM:")?))
}
