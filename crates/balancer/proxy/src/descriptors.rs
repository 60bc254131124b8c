//! Keeps descriptors back, so that clients leave some for targets, for the admin address and for
//! health checks.
//!
//! The kernel gives a new descriptor the lowest free number, and refuses one whose number reaches
//! the limit of open files. So the number of a new socket shows how many are in use, and nothing
//! has to be counted.

use std::fs;
use std::os::fd::{AsRawFd, RawFd};

use rustix::process::{Resource, Rlimit, setrlimit};

/// The most connections from clients at a time, unless the configuration states a number.
const CONNECTIONS: usize = 20_000;

/// The limit of open files that is assumed if it cannot be read.
const ASSUMED: u64 = 1024;

/// The bounds of the number that is kept back for each purpose.
const KEPT: std::ops::RangeInclusive<u64> = 8..=256;

/// The purpose of a socket. Each may use descriptors that the previous ones have to leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// A client's connection.
    Client,
    /// A connection to a target for a client that was taken in.
    Target,
    /// A connection of the administrator.
    Admin,
}

/// The limit of the process's descriptors, and the number that is kept back for each purpose.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Descriptors {
    limit: u64,
    kept: u64,
}

impl Descriptors {
    /// Returns the descriptors of this process.
    pub(crate) fn of_process() -> Self {
        Self::within(file_limits().map_or(ASSUMED, |limits| limits.current.unwrap_or(u64::MAX)))
    }

    fn within(limit: u64) -> Self {
        Self { limit, kept: (limit / 16).clamp(*KEPT.start(), *KEPT.end()) }
    }

    /// Returns whether a socket that was just opened leaves enough descriptors for other purposes.
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

    /// Returns the most connections from clients at a time, unless the configuration states a
    /// number. Each may need a connection to a target.
    pub(crate) fn connections(self) -> usize {
        self.pairs().clamp(1, CONNECTIONS)
    }

    /// Returns for how many clients' connections, each with one to a target, the descriptors
    /// suffice.
    pub(crate) fn pairs(self) -> usize {
        let pairs = self.limit.saturating_sub(3 * self.kept) / 2;
        usize::try_from(pairs).unwrap_or(usize::MAX)
    }
}

/// Raises the limit of open files of this process as far as permitted. Service managers start
/// processes with a low limit, because old programs cannot handle a higher one.
pub fn raise_file_limit() {
    if let Some(Rlimit { current, maximum }) = file_limits()
        && current != maximum
    {
        // If this fails, fewer connections are possible.
        let _ = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum });
    }
}

/// Returns the limits of open files. They are read from a file, as a service manager may forbid the
/// system call (systemd's `@resources`), and packaging/systemd does.
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
