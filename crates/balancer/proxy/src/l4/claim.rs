//! Which process of a network namespace has the table.
//!
//! A process that has it holds an abstract socket: each network namespace has names of its own for
//! those, and the kernel frees them when the process ends. Every local user can take such a name.
//! So a name counts only where its holder can have a table: it has `CAP_NET_ADMIN`, or is root or
//! this process's user. A name that anybody else has taken is passed over for the next one.

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

/// The names, of which a process holds the first that is free. If others have taken them all, it
/// serves without.
const NAMES: usize = 8;

/// Connections that wait at a name. They are not accepted: who connects wants to know who listens.
const BACKLOG: i32 = 4096;

/// Says that the table of this network namespace is this process's, until it is dropped or the
/// process ends.
#[derive(Debug)]
pub(super) struct Claim {
    socket: Option<OwnedFd>,
}

impl Drop for Claim {
    /// Closing the socket is not enough: a process that another thread is starting has a copy of it
    /// until it runs its program. A socket that was shut down takes no connections, so its name is
    /// passed over for as long as a copy exists.
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
    /// When another process has it.
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

/// Takes a name. Returns `None` if another process has it.
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

/// A socket that does not wait: a holder that accepts nothing must not hold this process up.
fn socket() -> io::Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    Ok(socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?)
}

/// Whether who holds a name can have a table.
fn is_load_balancers(address: &SocketAddrUnix) -> bool {
    let Ok(socket) = socket() else { return false };
    // A socket of another kind is no load balancer's.
    if connect(&socket, address).is_err() {
        return false;
    }
    let Ok(holder) = getsockopt(&socket, PeerCredentials) else { return false };
    holder.uid() == 0 || holder.uid() == geteuid().as_raw() || may_have_table(&holder)
}

/// Whether a process of another user has `CAP_NET_ADMIN` where this one may need it. In a user
/// namespace of its own every process has it, and it means nothing here.
fn may_have_table(holder: &UnixCredentials) -> bool {
    let read = |process: &str, file: &str| fs::read_to_string(format!("/proc/{process}/{file}"));
    let id = holder.pid().to_string();
    let (Ok(status), Ok(users), Ok(own_users)) =
        (read(&id, "status"), read(&id, "uid_map"), read("self", "uid_map"))
    else {
        return false;
    };
    let field = |name: &str| status.lines().find_map(|line| line.strip_prefix(name));
    // The id may be another process's by now.
    let user = field("Uid:").and_then(|ids| ids.split_whitespace().nth(1)?.parse().ok());
    let permitted = field("CapPrm:").and_then(|set| u64::from_str_radix(set.trim(), 16).ok());
    let permitted = CapabilitySet::from_bits_retain(permitted.unwrap_or_default());
    users == own_users && user == Some(holder.uid()) && permitted.contains(CapabilitySet::NET_ADMIN)
}
