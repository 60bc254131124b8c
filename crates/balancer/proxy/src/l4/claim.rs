//! Decides which process of a network namespace has the table.
//!
//! The process that has the table holds an abstract socket. Each network namespace has its own
//! names for such sockets, and the kernel frees a name when its process ends. Every local user can
//! take a name, so a name counts only if its holder can have a table: it has `CAP_NET_ADMIN`, is
//! root, or is this process's user. A name that anybody else has taken is passed over for the next
//! one.

use std::fs;
use std::io;
use std::os::fd::OwnedFd;

use nix::sys::socket::sockopt::PeerCredentials;
use nix::sys::socket::{UnixCredentials, getsockopt};
use rustix::io::Errno;
use rustix::net::{AddressFamily, Shutdown, SocketAddrUnix, SocketFlags, SocketType};
use rustix::net::{bind, connect, listen, shutdown, socket_with};
use rustix::process::geteuid;
use rustix::thread::CapabilitySet;

/// The number of names. A process holds the first one that is free. If others have taken all of
/// them, the process serves without a name.
const NAMES: usize = 8;

/// The number of connections that may wait at a name. They are not accepted: a process that
/// connects only wants to know who listens.
const BACKLOG: i32 = 4096;

/// The claim to the table of this network namespace, until it is dropped or the process ends.
#[derive(Debug)]
pub(super) struct Claim {
    socket: Option<OwnedFd>,
}

impl Drop for Claim {
    /// Shuts the socket down before it is closed. Closing alone is not enough: a process that
    /// another thread is starting has a copy of the socket until it runs its program. A socket that
    /// was shut down takes no connections, so its name is passed over for as long as a copy exists.
    fn drop(&mut self) {
        if let Some(socket) = &self.socket {
            let _ = shutdown(socket, Shutdown::Both);
        }
    }
}

impl Claim {
    /// Claims the table of the network namespace of this thread.
    ///
    /// # Errors
    /// When another process has claimed the table.
    pub(super) fn new() -> io::Result<Self> {
        let mut held = None;
        for number in 0..NAMES {
            let address = address(number)?;
            if held.is_none() {
                held = hold(&address)?;
                if held.is_some() {
                    continue;
                }
            }
            if is_load_balancers(&address) {
                return Err(io::Error::new(
                    io::ErrorKind::AddrInUse,
                    "another load balancer has TCP and UDP listeners in this network namespace",
                ));
            }
        }
        Ok(Self { socket: held })
    }
}

/// Takes a name. Returns `None` if another process holds it.
fn hold(address: &SocketAddrUnix) -> io::Result<Option<OwnedFd>> {
    let socket = socket()?;
    match bind(&socket, address).and_then(|()| listen(&socket, BACKLOG)) {
        Ok(()) => Ok(Some(socket)),
        Err(Errno::ADDRINUSE) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

fn address(number: usize) -> io::Result<SocketAddrUnix> {
    let name = match number {
        0 => "uturn-lb/layer-4".to_owned(),
        number => format!("uturn-lb/layer-4/{number}"),
    };
    Ok(SocketAddrUnix::new_abstract_name(name.as_bytes())?)
}

/// Returns a socket that does not block, so that a holder that accepts nothing cannot delay this
/// process.
fn socket() -> io::Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    Ok(socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?)
}

/// Returns whether the holder of a name can have a table.
fn is_load_balancers(address: &SocketAddrUnix) -> bool {
    let Ok(socket) = socket() else { return false };
    // A socket of another type does not belong to a load balancer.
    if connect(&socket, address).is_err() {
        return false;
    }
    let Ok(holder) = getsockopt(&socket, PeerCredentials) else { return false };
    holder.uid() == 0 || holder.uid() == geteuid().as_raw() || may_have_table(&holder)
}

/// Returns whether a process of another user has `CAP_NET_ADMIN` in this process's user namespace.
/// In a user namespace of its own every process has it, where it means nothing here.
fn may_have_table(holder: &UnixCredentials) -> bool {
    let read = |process: &str, file: &str| fs::read_to_string(format!("/proc/{process}/{file}"));
    let id = holder.pid().to_string();
    let (Ok(status), Ok(users), Ok(own_users)) =
        (read(&id, "status"), read(&id, "uid_map"), read("self", "uid_map"))
    else {
        return false;
    };
    let field = |name: &str| status.lines().find_map(|line| line.strip_prefix(name));
    // The id may belong to another process by now.
    let user = field("Uid:").and_then(|ids| ids.split_whitespace().nth(1)?.parse().ok());
    let permitted = field("CapPrm:").and_then(|set| u64::from_str_radix(set.trim(), 16).ok());
    let permitted = CapabilitySet::from_bits_retain(permitted.unwrap_or_default());
    users == own_users && user == Some(holder.uid()) && permitted.contains(CapabilitySet::NET_ADMIN)
}
