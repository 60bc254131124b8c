//! CPU time and kernel memory of programs, as the kernel reports them.

use std::fs;
use std::ops::{Add, Sub};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::failure::Failure;

/// CPU time. The kernel measures the total exactly, and its division by sampling.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Cost {
    pub(crate) nanos: u64,
    /// The number of samples in user mode.
    pub(crate) user_ticks: u64,
    /// The number of samples in kernel mode.
    pub(crate) system_ticks: u64,
}

impl Cost {
    pub(crate) fn total(self) -> Duration {
        Duration::from_nanos(self.nanos)
    }

    /// Returns the time in kernel mode.
    pub(crate) fn system(self) -> Duration {
        let ticks = self.user_ticks + self.system_ticks;
        match ticks {
            0 => Duration::ZERO,
            ticks => self.total().mul_f64(self.system_ticks as f64 / ticks as f64),
        }
    }

    /// Returns the time in user mode.
    pub(crate) fn user(self) -> Duration {
        self.total().saturating_sub(self.system())
    }
}

impl Add for Cost {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            nanos: self.nanos + other.nanos,
            user_ticks: self.user_ticks + other.user_ticks,
            system_ticks: self.system_ticks + other.system_ticks,
        }
    }
}

/// Subtracts an earlier reading. Counts that fell become 0, since threads that ended meanwhile no
/// longer count.
impl Sub for Cost {
    type Output = Self;

    fn sub(self, earlier: Self) -> Self {
        Self {
            nanos: self.nanos.saturating_sub(earlier.nanos),
            user_ticks: self.user_ticks.saturating_sub(earlier.user_ticks),
            system_ticks: self.system_ticks.saturating_sub(earlier.system_ticks),
        }
    }
}

/// Returns the CPU time of a process until now.
///
/// # Errors
/// When there is no such process.
pub(crate) fn cost_of(process: u32) -> Result<Cost, Failure> {
    let stat = format!("/proc/{process}/stat");
    let doing = || Failure::of(format!("read {stat}"));
    let text = fs::read_to_string(&stat).map_err(doing())?;
    let (user_ticks, system_ticks) =
        ticks(&text).ok_or_else(|| Failure(format!("{stat} is not understood: {text}")))?;
    let tasks = fs::read_dir(format!("/proc/{process}/task")).map_err(doing())?;
    let nanos = tasks.flatten().map(|task| {
        // The thread may have ended meanwhile.
        let text = fs::read_to_string(task.path().join("schedstat")).unwrap_or_default();
        text.split(' ').next().and_then(|text| text.parse().ok()).unwrap_or(0)
    });
    Ok(Cost { nanos: nanos.sum(), user_ticks, system_ticks })
}

/// Returns the ticks of a process in user and in system mode: the 14th and 15th fields of its
/// `stat`. The second field is the program's name in brackets, which may contain spaces and
/// brackets.
fn ticks(stat: &str) -> Option<(u64, u64)> {
    let (_, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_whitespace().skip(11);
    Some((fields.next()?.parse().ok()?, fields.next()?.parse().ok()?))
}

/// Finds the thread in which the kernel handles a core's packets when there are too many to handle
/// at once. Returns `None` if the thread is not visible from here.
pub(crate) fn packet_thread(core: u32) -> Option<u32> {
    let name = format!("ksoftirqd/{core}");
    let processes = fs::read_dir("/proc").ok()?.flatten();
    let mut numbers = processes.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    numbers.find(|number: &u32| {
        fs::read_to_string(format!("/proc/{number}/comm")).is_ok_and(|comm| comm.trim() == name)
    })
}

/// The slab caches that the kernel uses for each connection, whichever processes its ends belong
/// to: sockets, their files, and entries of epoll.
const CACHES: [&str; 6] =
    ["TCP", "TCPv6", "sock_inode_cache", "filp", "eventpoll_epi", "eventpoll_pwq"];

/// Returns the kernel's memory for connections, in kB, or `None` if the kernel does not report it.
pub(crate) fn kernel_memory() -> Option<u64> {
    slab_bytes(&fs::read_to_string("/proc/slabinfo").ok()?).map(|bytes| bytes / 1024)
}

fn slab_bytes(slabinfo: &str) -> Option<u64> {
    let bytes = |line: &str| {
        let mut fields = line.split_whitespace();
        let name = fields.next()?;
        let active: u64 = fields.next()?.parse().ok()?;
        let size: u64 = fields.nth(1)?.parse().ok()?;
        CACHES.contains(&name).then_some(active * size)
    };
    let all: Vec<u64> = slabinfo.lines().filter_map(bytes).collect();
    (!all.is_empty()).then(|| all.iter().sum())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_found_behind_any_name() {
        let fields = "S 1 2 3 0 -1 4194560 10 11 12 13 250 77 5 6 20 0 1 0 100";
        assert_eq!(ticks(&format!("42 (nginx) {fields}")), Some((250, 77)));
        assert_eq!(ticks(&format!("42 (a (b) 9 9) {fields}")), Some((250, 77)));
        assert_eq!(ticks("42 (nginx) S 1"), None);
        assert_eq!(ticks(""), None);
    }

    #[test]
    fn the_whole_is_divided_as_the_ticks_are() {
        let cost = Cost { nanos: 1_000_000_000, user_ticks: 30, system_ticks: 90 };
        assert_eq!(cost.system(), Duration::from_millis(750));
        assert_eq!(cost.user(), Duration::from_millis(250));
        let unsampled = Cost { nanos: 10_000, ..Cost::default() };
        assert_eq!(unsampled.user() + unsampled.system(), unsampled.total());
    }

    #[test]
    fn this_process_costs_something() {
        let before = cost_of(std::process::id()).unwrap();
        let mut work: u64 = 0;
        while cost_of(std::process::id()).unwrap().nanos == before.nanos {
            work = std::hint::black_box(work.wrapping_add(1));
        }
        assert!(cost_of(0).is_err());
    }

    #[test]
    fn memory_of_connections_is_summed_over_its_caches() {
        let text = "slabinfo - version: 2.1\n\
                    # name            <active_objs> <num_objs> <objsize> <objperslab>\n\
                    TCP                   100    130   2368   13    8 : tunables    0    0    0\n\
                    filp                   10    903    192   21    1 : tunables    0    0    0\n\
                    dentry               9999   9999    192   21    1 : tunables    0    0    0\n";
        assert_eq!(slab_bytes(text), Some(100 * 2368 + 10 * 192));
        assert_eq!(slab_bytes("nothing"), None);
    }
}
