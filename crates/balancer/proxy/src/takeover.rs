//! One process takes over from another of the same program, and no client notices.
//!
//! Both listen at the same sockets for a while: the kernel resets connections that wait at a socket
//! when it is closed, so no socket is. The process that serves offers itself at a Unix socket that
//! only its user may reach ([`offer`]); the one that takes over ([`Predecessor`]) asks there,
//! in this order:
//!
//! 1. for duplicates of its listening sockets. Both accept connections from here on.
//! 2. to leave the kernel's rules, which stay until the other one has replaced them.
//! 3. to stop: everything is served.
//!
//! If the process that takes over ends before that, the first one serves on as before.

mod offer;
mod place;
mod predecessor;
mod sockets;

pub use offer::{Offer, offer};
pub(crate) use predecessor::Predecessor;
pub(crate) use sockets::Inherited;

use std::time::Duration;

/// Asks for the listening sockets.
const SHARE: u8 = b'S';

/// Asks to leave the kernel's rules, and says that they are left.
const LEAVE: u8 = b'L';

/// Says that everything is served.
const DONE: u8 = b'D';

/// How long the process that serves may take for a step.
const STEP: Duration = Duration::from_secs(5);

/// How long the process that takes over may take between two.
const BETWEEN_STEPS: Duration = Duration::from_secs(60);
