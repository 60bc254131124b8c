//! Descriptors are kept back: what clients do leaves some for targets, for the admin address and
//! for health checks.
//!
//! The kernel gives a new descriptor the lowest number that is free, and refuses one whose number
//! reaches the limit of open files. So the number of a new socket says how many are in use, and
//! nothing has to be counted.

use std::fs;
use std::os::fd::{AsRawFd, RawFd};

use rustix::process::{Resource, Rlimit, setrlimit};

/// The most connections from clients at a time where the configuration states no number.
const CONNECTIONS: usize = 20_000;

/// The limit of open files where it cannot be read.
const ASSUMED: u64 = 1024;

/// The bounds of what is kept back for each purpose.
const KEPT: std::ops::RangeInclusive<u64> = 8..=256;

/// What a socket is for. Each may use up what those before it have to leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// A client's connection.
    Client,
    /// A connection to a target for a client that was taken in.
    Target,
    /// The administrator's.
    Admin,
}

/// How many descriptors the process may have, and how many are kept back for each purpose.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Descriptors {
    limit: u64,
    kept: u64,
}

impl Descriptors {
    /// Those of this process.
    pub(crate) fn of_process() -> Self {
        Self::within(file_limits().map_or(ASSUMED, |limits| limits.current.unwrap_or(u64::MAX)))
    }

    fn within(limit: u64) -> Self {
        Self { limit, kept: (limit / 16).clamp(*KEPT.start(), *KEPT.end()) }
    }

    /// Whether a socket that was just opened leaves what is kept back for other purposes.
    pub(crate) fn allow(self, socket: &impl AsRawFd, purpose: Purpose) -> bool {
        self.allows(socket.as_raw_fd(), purpose)
    }

    fn allows(self, number: RawFd, purpose: Purpose) -> bool {
        let kept = match purpose {
            Purpose::Client => 3 * self.kept,
            Purpose::Target => 2 * self.kept,
            Purpose::Admin => self.kept,
        };
        u64::try_from(number).is_ok_and(|number| number < self.limit.saturating_sub(kept))
    }

    /// The most connections from clients at a time where the configuration states no number: each
    /// may need one to a target.
    pub(crate) fn connections(self) -> usize {
        self.pairs().clamp(1, CONNECTIONS)
    }

    /// How many connections from clients there can be that have one to a target each.
    pub(crate) fn pairs(self) -> usize {
        let pairs = self.limit.saturating_sub(3 * self.kept) / 2;
        usize::try_from(pairs).unwrap_or(usize::MAX)
    }
}

/// Raises the limit of open files of this process as far as it may. Service managers start
/// processes with a low one, because old programs cannot have more.
pub fn raise_file_limit() {
    if let Some(Rlimit { current, maximum }) = file_limits()
        && current != maximum
    {
        // Without it, there are fewer connections.
        let _ = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum });
    }
}

/// The limits of open files. The system call for them is one that a service manager may forbid
/// (systemd's `@resources`), as packaging/systemd does.
fn file_limits() -> Option<Rlimit> {
    read_limits(&fs::read_to_string("/proc/self/limits").ok()?)
}

fn read_limits(text: &str) -> Option<Rlimit> {
    let line = text.lines().find_map(|line| line.strip_prefix("Max open files"))?;
    let mut fields = line.split_whitespace();
    let mut limit = || match fields.next()? {
        "unlimited" => Some(None),
        number => number.parse().ok().map(Some),
    };
    Some(Rlimit { current: limit()?, maximum: limit()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_purpose_leaves_some_for_the_next() {
        use Purpose::{Admin, Client, Target};
        let few = Descriptors::within(64);
        for (number, allowed) in [
            (39, &[Client, Target, Admin][..]),
            (40, &[Target, Admin]),
            (47, &[Target, Admin]),
            (48, &[Admin]),
            (55, &[Admin]),
            (56, &[]),
        ] {
            let purposes = [Client, Target, Admin].into_iter();
            let allows: Vec<_> = purposes.filter(|it| few.allows(number, *it)).collect();
            assert_eq!(allows, allowed, "{number}");
        }
    }

    #[test]
    fn limits_are_read_as_the_kernel_prints_them() {
        let text = "Limit                     Soft Limit           Hard Limit           Units     \n\
                    Max processes             unlimited            unlimited            processes \n\
                    Max open files            1024                 unlimited            files     \n";
        assert_eq!(read_limits(text), Some(Rlimit { current: Some(1024), maximum: None }));
        assert_eq!(read_limits("Max open files many"), None);
        assert!(file_limits().is_some_and(|limits| limits.current > Some(0)));
    }

    #[test]
    fn the_default_limit_of_connections_follows_from_that_of_files() {
        for (files, connections) in
            [(0, 1), (64, 20), (1024, 416), (20_000, 9616), (65_536, 20_000), (u64::MAX, 20_000)]
        {
            assert_eq!(Descriptors::within(files).connections(), connections, "{files}");
        }
    }
}
