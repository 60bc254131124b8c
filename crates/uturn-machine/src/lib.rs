//! The small machine: a Linux kernel of its own, as a process of whoever asks.
//!
//! **Owns** a User Mode Linux with all of netfilter and ip_vs, for kernels that lack them
//! and for users who are not root: whether one can be had ([`Machine::find`]), starting it,
//! running one [`Job`] in it, passing on what the job says and how it ends, and its end:
//! whether the job is over, the time is, or the one who asked was killed, no process and no
//! file of it is left. It owns the inside too ([`inside`]): the same executable is the
//! machine's first process.
//!
//! **Refuses** to know what the job is about. The machine sees the host's own files, so
//! there is no image to build, but it writes to none of them: its root is a layer in memory
//! over them. It has no network, unless root gives it a link to a namespace of the host.
//!
//! **Start reading** at [`Machine::run`] in `linux/outside.rs`; then `linux/inside.rs`, and
//! `linux/tape.rs`, through which the two talk.
//!
//! ```text
//!  uturn ── memory without a name ── [User Mode Linux: uturn as init ── job]
//!        ── line: wakes the reader; once it is cut, the machine goes
//! ```

mod job;
#[cfg(target_os = "linux")]
mod linux;
#[cfg(not(target_os = "linux"))]
mod unsupported;

pub use job::{Ended, Job, JobOutput, MachineError, Unavailable};

#[cfg(target_os = "linux")]
pub use linux::{Machine, inside, is_inside};
#[cfg(not(target_os = "linux"))]
pub use unsupported::{Machine, inside, is_inside};
