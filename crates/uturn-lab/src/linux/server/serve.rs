//! The loop: who waits at which door, and who goes on.

use std::io::PipeReader;
use std::net::{SocketAddr, UdpSocket};

use rustix::event::{PollFd, PollFlags, poll};

use super::visitor::Visitor;
use super::{Answer, Door, Server};

/// Serves until the other end of `end` is gone.
pub(super) fn serve(servers: &[Server], end: &PipeReader) {
    let mut visitors: Vec<Visitor<'_>> = Vec::new();
    loop {
        let mut waiting = vec![PollFd::new(end, PollFlags::IN)];
        waiting.extend(servers.iter().map(|server| match &server.door {
            Door::Tcp(listener, _) => PollFd::new(listener, PollFlags::IN),
            Door::Udp(socket) => PollFd::new(socket, PollFlags::IN),
        }));
        waiting.extend(visitors.iter().map(Visitor::waits_for));
        if poll(&mut waiting, None).is_err() {
            continue;
        }
        let ready: Vec<bool> = waiting.iter().map(|fd| !fd.revents().is_empty()).collect();
        drop(waiting);
        if ready[0] {
            return;
        }
        let (of_doors, of_visitors) = ready[1..].split_at(servers.len());
        let mut at = 0;
        visitors.retain_mut(|visitor| {
            at += 1;
            !of_visitors[at - 1] || visitor.go_on()
        });
        for (server, _) in servers.iter().zip(of_doors).filter(|(_, ready)| **ready) {
            match &server.door {
                Door::Udp(socket) => answer_datagrams(socket, &server.name),
                Door::Tcp(listener, tls) => {
                    while let Ok((stream, peer)) = listener.accept() {
                        if stream.set_nonblocking(true).is_ok() {
                            visitors.push(Visitor::new(stream, peer, &server.name, tls.as_ref()));
                        }
                    }
                }
            }
        }
    }
}

/// Says back what was asked, and who answers.
fn answer_datagrams(socket: &UdpSocket, name: &str) {
    let mut bytes = [0; 4096];
    while let Ok((count, peer)) = socket.recv_from(&mut bytes) {
        let answer = answer(name, peer, None);
        let text = [&bytes[..count], b"\n", answer.to_text().as_bytes()].concat();
        // Who cannot be answered gets no answer.
        let _ = socket.send_to(&text, peer);
    }
}

pub(super) fn answer(name: &str, peer: SocketAddr, forwarded_for: Option<String>) -> Answer {
    Answer { by: name.to_owned(), source: peer.ip().to_canonical(), forwarded_for }
}
