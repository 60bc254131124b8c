//! The servers' event loop.

use std::io::PipeReader;
use std::net::UdpSocket;

use rustix::event::{PollFd, PollFlags, poll};

use super::connection::Connection;
use super::{Answer, ServedSocket, Server};

/// Serves until the other end of `end` is closed.
pub(super) fn serve(servers: &[Server], end: &PipeReader) {
    let mut connections: Vec<Connection<'_>> = Vec::new();
    loop {
        let mut waiting = vec![PollFd::new(end, PollFlags::IN)];
        waiting.extend(servers.iter().map(|server| match &server.socket {
            ServedSocket::Tcp(listener, ..) => PollFd::new(listener, PollFlags::IN),
            ServedSocket::Udp(socket) => PollFd::new(socket, PollFlags::IN),
        }));
        waiting.extend(connections.iter().map(Connection::waits_for));
        if poll(&mut waiting, None).is_err() {
            continue;
        }
        let ready: Vec<bool> = waiting.iter().map(|fd| !fd.revents().is_empty()).collect();
        drop(waiting);
        if ready[0] {
            return;
        }
        let (of_sockets, of_connections) = ready[1..].split_at(servers.len());
        let mut at = 0;
        connections.retain_mut(|connection| {
            at += 1;
            !of_connections[at - 1] || connection.advance()
        });
        for (server, _) in servers.iter().zip(of_sockets).filter(|(_, ready)| **ready) {
            match &server.socket {
                ServedSocket::Udp(socket) => answer_datagrams(socket, &server.name),
                ServedSocket::Tcp(listener, tls, expects_header) => {
                    while let Ok((stream, peer)) = listener.accept() {
                        if stream.set_nonblocking(true).is_ok() {
                            connections.push(Connection::new(
                                stream,
                                peer,
                                &server.name,
                                tls.as_ref(),
                                *expects_header,
                            ));
                        }
                    }
                }
            }
        }
    }
}

/// Echoes datagrams and adds the server's name.
fn answer_datagrams(socket: &UdpSocket, name: &str) {
    let mut bytes = [0; 4096];
    while let Ok((count, peer)) = socket.recv_from(&mut bytes) {
        let answer = Answer::new(name, peer, None);
        let text = [&bytes[..count], b"\n", answer.to_text().as_bytes()].concat();
        // The client treats a failed answer like no answer.
        let _ = socket.send_to(&text, peer);
    }
}
