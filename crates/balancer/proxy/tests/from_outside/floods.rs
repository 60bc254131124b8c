//! Clients of HTTP/2 that send frames without end, and read all that comes back.

use std::thread;

use crate::frames::{
    CONTINUATION, DATA, END_HEADERS, HEADERS, Http2, PING, RST_STREAM, SETTINGS, frame, get,
};
use crate::support::{Balancer, Host};

const PRIORITY: u8 = 2;
const WINDOW_UPDATE: u8 = 8;

/// The error `ENHANCE_YOUR_CALM`.
const CALM: u32 = 11;

/// No flood gets this far. An honest client sends less in a day.
const FRAMES: usize = 1_000_000;

#[test]
fn floods_end_with_a_goaway_also_while_a_request_is_answered() {
    let mute = Host::start(|mut wire| {
        wire.rest();
    });
    let balancer = Balancer::start(&[mute.address]);
    let one = [0, 0, 0, 1];
    for (number, (name, flood)) in [
        ("PING", frame(PING, 0, 0, &[0; 8])),
        ("SETTINGS", frame(SETTINGS, 0, 0, &[])),
        ("SETTINGS with a value", frame(SETTINGS, 0, 0, &[0, 4, 0, 0, 255, 255])),
        ("WINDOW_UPDATE of the connection", frame(WINDOW_UPDATE, 0, 0, &one)),
        ("WINDOW_UPDATE of a stream", frame(WINDOW_UPDATE, 0, 1, &one)),
        ("PRIORITY", frame(PRIORITY, 0, 3, &[0, 0, 0, 0, 1])),
        ("empty DATA", frame(DATA, 0, 1, &[])),
        ("DATA that is all padding", frame(DATA, 8, 1, &[3, 0, 0, 0])),
        ("an unknown kind", frame(0xbe, 0, 0, b"x")),
        ("RST_STREAM", frame(RST_STREAM, 0, 1, &[0, 0, 0, 8])),
        ("HEADERS of a request that is there", frame(HEADERS, END_HEADERS, 1, &get())),
        ("SETTINGS with many values", frame(SETTINGS, 0, 0, &[0, 4, 0, 0, 255, 255].repeat(500))),
        ("acknowledged PING", frame(PING, 1, 0, &[0; 8])),
        ("empty CONTINUATION", frame(CONTINUATION, 0, 3, &[])),
    ]
    .into_iter()
    .enumerate()
    {
        let mut client = Http2::begin(balancer.client(), None);
        let mut received = Http2::accepted(client.clone_wire());
        // The body of this request does not end, and its answer does not begin.
        client.send(frame(HEADERS, END_HEADERS, 1, &get())).unwrap();
        while mute.accepted() <= number {
            thread::yield_now();
        }
        if flood[3] == CONTINUATION {
            client.send(frame(HEADERS, 0, 3, &get())).unwrap();
        }
        let end = thread::spawn(move || received.end());
        let many = flood.repeat(100);
        let cut = (0..FRAMES / 100).find(|_| client.send(&many).is_err());
        assert!(cut.is_some(), "{name}: {FRAMES} frames were taken");
        assert_eq!(end.join().unwrap(), Some(CALM), "{name}");
    }
}
