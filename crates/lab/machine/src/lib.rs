//! The small machine: a separate Linux kernel that runs as a child process of the caller.
//!
//! **Owns** a User Mode Linux with all of netfilter and ip_vs, for kernels that lack them and for
//! users who are not root. It finds out whether the machine can run here ([`Machine::find`]),
//! starts it, runs one [`Job`] in it, and passes on the job's output and exit status. While the job
//! runs, a [`MachineClient`] can run others and connect to servers inside. When the job ends, the
//! time limit is reached or the calling process is killed, no process and no file of the machine
//! remains. A kernel that panics, or never gets to the job, is recognised and ended, and the last
//! lines of its console are the error (`linux/boot.rs`, `linux/console.rs`). `preload/ptrace.rs`,
//! the one library in `unsafe` Rust, makes kernels run on processors for which they were not made.
//! The crate owns the inside too ([`inside`]): the same executable is the machine's first process.
//!
//! **Out of scope:** what the job does. The machine sees the host's files, so there is no image
//! to build, but it writes to none of them: its root is an overlay in memory. It has no network
//! unless the caller, as root, gives it a link to a network namespace of the host.
//!
//! **Start reading** at [`Machine::run`] in `linux/outside.rs`; then `linux/inside.rs`, and
//! `linux/channel.rs`, through which the two sides communicate.
//!
//! ```text
//!  uturn ── anonymous memory (memfd) ── [User Mode Linux: uturn as init ── job]
//!    │   ── socket: wakes the reader; once it is closed, the machine ends  ├─ jobs of clients
//!    │                                                                     └─ connections
//!    └─ control socket ── clients
//! ```

mod job;
#[cfg(target_os = "linux")]
mod linux;
#[cfg(not(target_os = "linux"))]
mod unsupported;

pub use job::{Ended, Job, JobOutput, MachineError, Unavailable};

#[cfg(target_os = "linux")]
pub use linux::{Machine, MachineClient, inside, is_inside};
#[cfg(not(target_os = "linux"))]
pub use unsupported::{Machine, MachineClient, inside, is_inside};
