//! The two system calls that Rust cannot check: unsharing this thread's network namespace, and
//! creating a TAP device in it.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;

use rustix::ioctl::{Updater, ioctl, opcode};
use rustix::thread::{UnshareFlags, unshare_unsafe};

/// `struct ifreq` as `TUNSETIFF` reads it.
#[repr(C)]
struct Request {
    name: [u8; 16],
    flags: u16,
    rest: [u8; 22],
}

const TAP_WITHOUT_HEADER: u16 = 0x0002 | 0x1000;

/// Moves this thread, and the processes that it starts, to a new network namespace.
#[expect(unsafe_code, reason = "unshare is unsafe only where file descriptors are unshared")]
pub(crate) fn leave_network() -> io::Result<()> {
    // SAFETY: the table of file descriptors stays shared.
    Ok(unsafe { unshare_unsafe(UnshareFlags::NEWNET) }?)
}

/// Creates a TAP device that exists while the file is open.
#[expect(unsafe_code, reason = "what an ioctl reads and writes is between it and the kernel")]
pub(crate) fn tap(name: &str) -> io::Result<File> {
    const TUNSETIFF: rustix::ioctl::Opcode = opcode::write::<i32>(b'T', 202);
    let nonblocking = rustix::fs::OFlags::NONBLOCK.bits() as i32;
    let mut options = OpenOptions::new();
    let file = options.read(true).write(true).custom_flags(nonblocking).open("/dev/net/tun")?;
    let mut request = Request { name: [0; 16], flags: TAP_WITHOUT_HEADER, rest: [0; 22] };
    request.name[..name.len()].copy_from_slice(name.as_bytes());
    // SAFETY: TUNSETIFF reads and writes one `struct ifreq`, and that is what it is given.
    unsafe { ioctl(&file, Updater::<TUNSETIFF, Request>::new(&mut request)) }?;
    Ok(file)
}
