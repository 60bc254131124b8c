//! Errors of this machine itself, which say nothing about the other end of a connection.
//!
//! A process without descriptors, a kernel without memory, a source address without a free port or
//! a missing route make calls fail that no target has seen. Such an error decides nothing about a
//! target: it is counted here, and neither health checks nor requests blame the target.
//!
//! Two things tell such an error apart: its number, and its time. A call that fails before a packet
//! can have been answered was refused by this machine, whatever the number; only a target on this
//! machine refuses at once, with `ECONNREFUSED` or `ECONNRESET`.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rustix::io::Errno;

/// The time for which `/healthz` shows a shortage after the latest error.
const SHOWN: Duration = Duration::from_secs(10);

/// The cause of an error of this machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cause {
    /// The process, or the machine, has as many open files as it may have.
    Descriptors,
    /// The kernel lacks memory.
    Memory,
    /// The source address has no free port, or does not belong to this machine.
    Address,
    /// A rule of this machine forbids the call.
    Policy,
    /// This machine has no route, or one that leads nowhere.
    Route,
    /// Anything else that failed before a packet was answered.
    Other,
}

impl Cause {
    pub(crate) const ALL: [Self; 6] =
        [Self::Descriptors, Self::Memory, Self::Address, Self::Policy, Self::Route, Self::Other];

    pub(crate) fn label(self) -> &'static str {
        match self {
            Self::Descriptors => "descriptors",
            Self::Memory => "memory",
            Self::Address => "address",
            Self::Policy => "policy",
            Self::Route => "route",
            Self::Other => "other",
        }
    }

    /// Returns whether every other operation of the same kind fails for the same reason.
    pub(crate) fn is_shortage(self) -> bool {
        matches!(self, Self::Descriptors | Self::Memory)
    }

    /// Returns the cause of an error that may have come at any time. Returns `None` if another
    /// machine can have caused the error.
    pub(crate) fn of(error: &io::Error) -> Option<Self> {
        match Errno::from_io_error(error)? {
            Errno::MFILE | Errno::NFILE => Some(Self::Descriptors),
            // ENOSPC: no more sockets can be watched.
            Errno::NOBUFS | Errno::NOMEM | Errno::NOSPC => Some(Self::Memory),
            Errno::ADDRNOTAVAIL | Errno::ADDRINUSE => Some(Self::Address),
            Errno::PERM => Some(Self::Policy),
            Errno::NETDOWN
            | Errno::NODEV
            | Errno::AFNOSUPPORT
            | Errno::PROTONOSUPPORT
            | Errno::BADF
            | Errno::NOTSOCK
            | Errno::INVAL => Some(Self::Other),
            _ => None,
        }
    }

    /// Returns the cause of an error with which a call failed at once. Returns `None` if a target
    /// on this machine can have caused the error.
    fn at_once(error: &io::Error) -> Option<Self> {
        match Errno::from_io_error(error) {
            Some(Errno::CONNREFUSED | Errno::CONNRESET) => None,
            Some(Errno::NETUNREACH | Errno::HOSTUNREACH) => Some(Self::Route),
            // SELinux and routes of the type `prohibit` cause this error.
            Some(Errno::ACCESS) => Some(Self::Policy),
            _ => Some(Self::of(error).unwrap_or(Self::Other)),
        }
    }
}

/// An error of a socket towards another machine.
#[derive(Debug)]
pub(crate) struct SocketError {
    /// The cause; `None` if the other end, or the network between, can have caused the error.
    pub(crate) cause: Option<Cause>,
    pub(crate) source: io::Error,
}

impl SocketError {
    /// Returns the error of a call that failed before a packet can have been answered.
    pub(crate) fn at_once(source: io::Error) -> Self {
        Self { cause: Cause::at_once(&source), source }
    }

    /// Returns the error for a lack of descriptors: the free ones are kept for other purposes.
    pub(crate) fn no_descriptor() -> Self {
        Self::at_once(Errno::MFILE.into())
    }
}

impl From<io::Error> for SocketError {
    fn from(source: io::Error) -> Self {
        Self { cause: Cause::of(&source), source }
    }
}

impl From<tokio::time::error::Elapsed> for SocketError {
    fn from(elapsed: tokio::time::error::Elapsed) -> Self {
        io::Error::from(elapsed).into()
    }
}

/// An operation that an error of this machine can prevent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operation {
    /// Accepting a client's connection.
    Accept,
    /// Connecting to a target for a client.
    Connect,
    /// Probing a target's health.
    Probe,
}

impl Operation {
    pub(crate) const ALL: [Self; 3] = [Self::Accept, Self::Connect, Self::Probe];

    pub(crate) fn label(self) -> &'static str {
        match self {
            Self::Accept => "accept",
            Self::Connect => "connect",
            Self::Probe => "probe",
        }
    }

    /// Returns the operation in words that follow a shortage.
    pub(crate) fn what(self) -> &'static str {
        match self {
            Self::Accept => "for connections of clients",
            Self::Connect => "for connections to targets",
            Self::Probe => "for health checks",
        }
    }
}

/// The counts of this machine's errors.
#[derive(Debug)]
pub(crate) struct LocalErrors {
    counts: [[AtomicU64; Cause::ALL.len()]; Operation::ALL.len()],
    began: Instant,
    /// For each operation, the end of the time for which its latest shortage is shown, in
    /// milliseconds since `began`.
    shown_until: [AtomicU64; Operation::ALL.len()],
}

impl LocalErrors {
    pub(crate) fn new() -> Self {
        Self { counts: Default::default(), began: Instant::now(), shown_until: Default::default() }
    }

    /// Counts an error.
    pub(crate) fn count(&self, operation: Operation, cause: Cause) {
        self.count_at(operation, cause, Instant::now());
    }

    fn count_at(&self, operation: Operation, cause: Cause, now: Instant) {
        self.counts[operation as usize][cause as usize].fetch_add(1, Ordering::Relaxed);
        if cause.is_shortage() {
            let until = millis(now + SHOWN, self.began);
            self.shown_until[operation as usize].fetch_max(until, Ordering::Relaxed);
        }
    }

    /// Returns the number of errors for each operation and cause.
    pub(crate) fn counts(&self) -> impl Iterator<Item = (Operation, Cause, u64)> + '_ {
        Operation::ALL.into_iter().flat_map(move |operation| {
            Cause::ALL.into_iter().map(move |cause| {
                let count = &self.counts[operation as usize][cause as usize];
                (operation, cause, count.load(Ordering::Relaxed))
            })
        })
    }

    /// Returns the operations that failed recently for a lack of descriptors or memory.
    pub(crate) fn short(&self, now: Instant) -> impl Iterator<Item = Operation> + '_ {
        let now = millis(now, self.began);
        Operation::ALL.into_iter().filter(move |operation| {
            self.shown_until[*operation as usize].load(Ordering::Relaxed) > now
        })
    }
}

fn millis(time: Instant, began: Instant) -> u64 {
    u64::try_from(time.saturating_duration_since(began).as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_and_the_moment_of_an_error_tell_whose_it_is() {
        use Cause::{Address, Descriptors, Memory, Other, Policy, Route};
        for (errno, at_once, later) in [
            (Errno::MFILE, Some(Descriptors), Some(Descriptors)),
            (Errno::NFILE, Some(Descriptors), Some(Descriptors)),
            (Errno::NOBUFS, Some(Memory), Some(Memory)),
            (Errno::NOMEM, Some(Memory), Some(Memory)),
            (Errno::NOSPC, Some(Memory), Some(Memory)),
            (Errno::ADDRNOTAVAIL, Some(Address), Some(Address)),
            (Errno::ADDRINUSE, Some(Address), Some(Address)),
            (Errno::PERM, Some(Policy), Some(Policy)),
            (Errno::NETDOWN, Some(Other), Some(Other)),
            (Errno::AFNOSUPPORT, Some(Other), Some(Other)),
            (Errno::INVAL, Some(Other), Some(Other)),
            // A router may report these, too.
            (Errno::ACCESS, Some(Policy), None),
            (Errno::NETUNREACH, Some(Route), None),
            (Errno::HOSTUNREACH, Some(Route), None),
            (Errno::AGAIN, Some(Other), None),
            (Errno::TIMEDOUT, Some(Other), None),
            // A target on this machine may cause these at once.
            (Errno::CONNREFUSED, None, None),
            (Errno::CONNRESET, None, None),
            (Errno::PIPE, Some(Other), None),
        ] {
            assert_eq!(SocketError::at_once(errno.into()).cause, at_once, "{errno}");
            assert_eq!(SocketError::from(io::Error::from(errno)).cause, later, "{errno}");
        }
    }

    #[test]
    fn a_shortage_is_shown_for_a_while_and_other_causes_are_not() {
        let errors = LocalErrors::new();
        let now = errors.began;
        errors.count_at(Operation::Connect, Cause::Address, now);
        assert_eq!(errors.short(now).count(), 0);
        errors.count_at(Operation::Accept, Cause::Descriptors, now);
        errors.count_at(Operation::Probe, Cause::Memory, now + SHOWN / 2);
        let short = |after| errors.short(now + after).collect::<Vec<_>>();
        assert_eq!(short(Duration::ZERO), [Operation::Accept, Operation::Probe]);
        assert_eq!(short(SHOWN), [Operation::Probe]);
        assert_eq!(short(SHOWN * 2), []);
        assert_eq!(errors.counts().map(|(.., count)| count).sum::<u64>(), 3);
    }

    #[test]
    fn labels_are_in_the_order_of_the_counts() {
        assert_eq!(Operation::ALL.map(|operation| operation as usize), [0, 1, 2]);
        assert_eq!(Cause::ALL.map(|cause| cause as usize), [0, 1, 2, 3, 4, 5]);
    }
}
