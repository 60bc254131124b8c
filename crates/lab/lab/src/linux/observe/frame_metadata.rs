//! Reads the metadata of a frame from a packet socket: its link, its direction and its time. This
//! needs raw kernel structures.

use std::ffi::c_long;
use std::io;
use std::mem::MaybeUninit;
use std::slice;
use std::time::Duration;

use rustix::ioctl::{Getter, ioctl};
use socket2::{SockAddr, Socket};

/// `SIOCGSTAMPNS`: the arrival time of the latest frame that was read.
const STAMP: u32 = 0x8907;

/// `PACKET_OUTGOING`.
const OUTGOING: u8 = 4;

/// Returns the link's number, and whether the frame left by it (`struct sockaddr_ll`).
pub(super) fn link_of(from: &SockAddr) -> Option<(u32, bool)> {
    let bytes = bytes(from);
    let index = bytes.get(4..8)?.try_into().ok()?;
    Some((u32::from_ne_bytes(index), *bytes.get(10)? == OUTGOING))
}

#[expect(unsafe_code, reason = "addresses of packet sockets can be had as bytes only")]
fn bytes(from: &SockAddr) -> &[u8] {
    // SAFETY: the kernel has written that many bytes there, and they live as long as `from`.
    unsafe { slice::from_raw_parts(from.as_ptr().cast(), from.len() as usize) }
}

/// Returns the first `length` bytes of a buffer that a read has filled.
#[expect(unsafe_code, reason = "reads into a buffer that need not be initialised first")]
pub(super) fn written(room: &[MaybeUninit<u8>], length: usize) -> &[u8] {
    let room = &room[..length];
    // SAFETY: the kernel has written these bytes.
    unsafe { slice::from_raw_parts(room.as_ptr().cast(), room.len()) }
}

/// Returns the arrival time of the latest frame, since 1970. The kernel records the times of frames
/// after the first request.
#[expect(unsafe_code, reason = "no crate in use knows how to ask for the time of a frame")]
pub(super) fn stamp(socket: &Socket) -> io::Result<Duration> {
    // SAFETY: this request writes a timespec: two numbers of the size of a C long.
    let [seconds, nanos] = unsafe { ioctl(socket, Getter::<STAMP, [c_long; 2]>::new()) }?;
    Ok(Duration::new(seconds.unsigned_abs(), u32::try_from(nanos).unwrap_or_default()))
}
