//! Recognises a machine that will never start its job.
//!
//! A working kernel needs seconds of processor time to start a job, however long it has to wait on
//! a busy host. So the limit applies to the processor time of the machine's processes. The clock
//! only ends a machine that gets no processor time.

use std::collections::BTreeMap;
use std::fs;
use std::time::{Duration, Instant};

/// The limit for processor time until the job begins: a hundred times the usual amount.
const PROCESSOR: Duration = Duration::from_secs(120);

/// The limit for the elapsed time until the job begins.
const CLOCK: Duration = Duration::from_secs(900);

/// The interval at which the processor time is read.
const INTERVAL: Duration = Duration::from_secs(5);

/// The unit in which /proc states processor time on every architecture of Linux: hundredths of a
/// second.
const TICK: Duration = Duration::from_millis(10);

/// A machine before its job begins.
#[derive(Debug)]
pub(super) struct Boot {
    /// The process that starts the kernel.
    launcher: u32,
    began: Instant,
    looked: Instant,
}

impl Boot {
    pub(super) fn of(launcher: u32) -> Self {
        let now = Instant::now();
        Self { launcher, began: now, looked: now }
    }

    /// Returns the reason why the boot is given up, or `None` while it may still succeed.
    pub(super) fn fault(&mut self) -> Option<String> {
        let now = Instant::now();
        if now - self.looked < INTERVAL {
            return None;
        }
        self.looked = now;
        judge(processor_time(self.launcher), now - self.began)
    }
}

fn judge(processor: Duration, clock: Duration) -> Option<String> {
    let after = |time: Duration, of: &str| {
        Some(format!("its job had not begun after {} s{of}", time.as_secs()))
    };
    match () {
        () if processor >= PROCESSOR => after(processor, " of processor time"),
        () if clock >= CLOCK => after(clock, ""),
        () => None,
    }
}

/// Returns the processor time of a process and all its descendants, as far as it can be read.
fn processor_time(root: u32) -> Duration {
    let mut children: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    let mut ticks: BTreeMap<u32, u64> = BTreeMap::new();
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(process) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else {
            continue;
        };
        // The process may have ended meanwhile.
        let Ok(text) = fs::read_to_string(entry.path().join("stat")) else { continue };
        let Some((parent, used)) = parent_and_ticks(&text) else { continue };
        children.entry(parent).or_default().push(process);
        ticks.insert(process, used);
    }
    let (mut all, mut left) = (0, vec![root]);
    while let Some(process) = left.pop() {
        all += ticks.get(&process).copied().unwrap_or_default();
        left.extend(children.remove(&process).unwrap_or_default());
    }
    TICK * u32::try_from(all).unwrap_or(u32::MAX)
}

/// Reads a line of `/proc/PID/stat`. Returns the parent, and the processor time including that of
/// children that were waited for. The second field of the line is a name that may contain any
/// character.
fn parent_and_ticks(stat: &str) -> Option<(u32, u64)> {
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
    let parent = fields.nth(1)?.parse().ok()?;
    // utime, stime, cutime, cstime: fields 14 to 17.
    let times: Vec<u64> = fields.skip(9).take(4).map_while(|field| field.parse().ok()).collect();
    (times.len() == 4).then(|| (parent, times.iter().sum()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processor_time_counts_and_not_the_clock() {
        let seconds = Duration::from_secs;
        // The host is busy with other work.
        assert_eq!(judge(seconds(3), seconds(800)), None);
        assert!(judge(seconds(130), seconds(131)).unwrap().contains("130 s of processor time"));
        assert!(judge(seconds(0), seconds(900)).unwrap().contains("after 900 s"));
    }

    #[test]
    fn a_line_of_proc_is_read_whatever_the_process_is_called() {
        let line = "7 (a) b) S 5 7 7 0 -1 4194560 1 2 3 4 10 20 30 40 20 0 1 0 99";
        assert_eq!(parent_and_ticks(line), Some((5, 100)));
        assert_eq!(parent_and_ticks("7 (a) S 5 7 7 0"), None);
        assert_eq!(parent_and_ticks(""), None);
    }

    #[test]
    fn this_process_has_taken_some_time() {
        let own = std::process::id();
        while processor_time(own).is_zero() {
            std::hint::black_box((0..1000).sum::<u64>());
        }
        assert!(processor_time(u32::MAX).is_zero());
    }
}
