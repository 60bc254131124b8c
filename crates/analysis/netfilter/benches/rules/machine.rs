//! CPU time and memory of this process, as far as the system reports them.

/// CPU time of this thread in seconds, without time spent waiting for a processor.
#[cfg(target_os = "linux")]
pub(crate) fn worked() -> Option<f64> {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Some(time.tv_sec as f64 + time.tv_nsec as f64 / 1e9)
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn worked() -> Option<f64> {
    None
}

/// Resident memory in KiB: current and maximum.
pub(crate) fn taken() -> Option<(u64, u64)> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let field = |name: &str| -> Option<u64> {
        let line = status.lines().find_map(|line| line.strip_prefix(name))?;
        line.trim().strip_suffix(" kB")?.trim().parse().ok()
    };
    Some((field("VmRSS:")?, field("VmHWM:")?))
}
