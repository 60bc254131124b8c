//! What this process takes of the machine, as Linux tells it.

/// Seconds for which a processor worked for this thread: those that it had to wait for one
/// do not count. To a few milliseconds.
pub(crate) fn worked() -> Option<f64> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    Some(text.split_ascii_whitespace().next()?.parse::<f64>().ok()? / 1e9)
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
