//! Takeover: one process takes over from another of the same program, without clients noticing.
//!
//! Both processes listen at the same sockets for a while. The kernel resets connections that wait
//! at a socket when the socket is closed, so no socket is closed. The serving process offers a Unix
//! socket that only its user may reach ([`offer`]). The process that takes over ([`Predecessor`])
//! makes three requests there, in this order:
//!
//! 1. Send duplicates of the listening sockets. Both processes accept connections from then on.
//! 2. Leave the kernel's rules, which stay until the other process has replaced them.
//! 3. Stop: the other process serves everything.
//!
//! If the process that takes over ends before that, the first one continues to serve.

mod offer;
mod place;
mod predecessor;
mod sockets;

pub use offer::{Offer, offer};
pub(crate) use predecessor::Predecessor;
pub(crate) use sockets::Inherited;

use std::time::Duration;

/// The request for the listening sockets.
const SHARE: u8 = b'S';

/// The request to leave the kernel's rules, and the answer that they are left.
const LEAVE: u8 = b'L';

/// The message that everything is served.
const DONE: u8 = b'D';

/// The longest time that the serving process may take for a step.
const STEP: Duration = Duration::from_secs(5);

/// The longest time that the process that takes over may take between two steps.
const BETWEEN_STEPS: Duration = Duration::from_secs(60);
