//! A relay from the loopback of this machine to the API server in its namespace, so that kubectl
//! reaches it without a change to the machine's network.

use std::io::{self, PipeReader};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;

use rustix::event::{PollFd, PollFlags, poll};

use crate::linux::kernel::namespace::Namespace;
use crate::linux::run::worker::Worker;

/// The running relay. It stops accepting when this is dropped.
#[derive(Debug)]
pub(super) struct Relay {
    /// The port that the relay listens on.
    pub(super) port: u16,
    _worker: Worker,
}

impl Relay {
    /// Starts a relay to `to`, which is reached from `space`.
    pub(super) fn start(space: &Namespace, to: SocketAddr) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let port = listener.local_addr()?.port();
        let space = Arc::new(space.handle()?);
        let serve = move |end: PipeReader| loop {
            let mut waiting =
                [PollFd::new(&end, PollFlags::IN), PollFd::new(&listener, PollFlags::IN)];
            if poll(&mut waiting, None).is_err() {
                continue;
            }
            if !waiting[0].revents().is_empty() {
                return;
            }
            if let Ok((client, _)) = listener.accept() {
                let space = Arc::clone(&space);
                // A connection that cannot be relayed is closed.
                let _ = thread::Builder::new().name("relay".into()).spawn(move || {
                    let server = space.run(|| TcpStream::connect(to));
                    server.and_then(|server| relay(client, server))
                });
            }
        };
        Ok(Self { port, _worker: Worker::start("relay", serve)? })
    }
}

/// Copies in both directions until both ends have closed.
fn relay(client: TcpStream, server: TcpStream) -> io::Result<()> {
    let (from_client, to_server) = (client.try_clone()?, server.try_clone()?);
    let back = thread::Builder::new().name("relay".into()).spawn(move || copy(server, client))?;
    copy(from_client, to_server);
    let _ = back.join();
    Ok(())
}

fn copy(mut from: TcpStream, mut to: TcpStream) {
    // A reset is forwarded as an end.
    let _ = io::copy(&mut from, &mut to);
    let _ = to.shutdown(Shutdown::Write);
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};

    use super::*;

    #[test]
    fn bytes_go_both_ways_until_both_ends_close() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let near = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let mut caller = TcpStream::connect(near.local_addr().unwrap()).unwrap();
        let client = near.accept().unwrap().0;
        let server = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let mut far = listener.accept().unwrap().0;
        let relaying = thread::spawn(move || relay(client, server));
        caller.write_all(b"ask").unwrap();
        caller.shutdown(Shutdown::Write).unwrap();
        let mut asked = String::new();
        far.read_to_string(&mut asked).unwrap();
        far.write_all(b"answer").unwrap();
        drop(far);
        let mut answered = String::new();
        caller.read_to_string(&mut answered).unwrap();
        relaying.join().unwrap().unwrap();
        assert_eq!((asked.as_str(), answered.as_str()), ("ask", "answer"));
    }
}
