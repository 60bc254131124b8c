//! When the kernel has dealt with a packet, however busy the machine is.
//!
//! What a processor sends into virtual links and the loopback interface goes through one queue of
//! that processor, in order: at each link to its end again, and so do answers that the kernel gives.
//! So a packet that takes many turns comes back only after one that takes fewer. A packet that waits
//! for a hardware address leaves the order, as another processor may have asked for the address: the
//! ends of links know each other's.

use std::net::{Ipv4Addr, UdpSocket};

use rustix::thread::{CpuSet, sched_getcpu, sched_setaffinity};

use crate::wait::PATIENCE;

/// The turns that a connection's first packet and its answer may take: two links each way. Twelve
/// times as many as that.
const TURNS: usize = 48;

/// The queue of the processor that a thread runs on, and stays on from then on.
pub(crate) struct Queue {
    /// Sends to itself, which takes one turn.
    socket: UdpSocket,
}

impl Queue {
    pub(crate) fn of_this_processor() -> Self {
        let mut one = CpuSet::new();
        one.set(sched_getcpu());
        sched_setaffinity(None, &one).unwrap();
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        socket.connect(socket.local_addr().unwrap()).unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        Self { socket }
    }

    /// Whether something is so before all is done that the packets bring about which this thread
    /// has sent.
    pub(crate) fn comes_before_its_end(&self, is_so: impl Fn() -> bool) -> bool {
        for _ in 0..TURNS {
            if is_so() {
                return true;
            }
            self.socket.send(b"?").unwrap();
            self.socket.recv(&mut [0]).unwrap();
        }
        is_so()
    }
}
