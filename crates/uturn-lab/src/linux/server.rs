//! The pods' servers: they answer every request with who they are and whom they saw.
//!
//! One thread for all of them: a socket stays in the namespace it was opened in.

use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::thread::{self, JoinHandle};

use rustix::event::{PollFd, PollFlags, poll};
use socket2::{Domain, Protocol, Socket, Type};
use uturn_model::{Cluster, Family, Pod, Port};

use super::build::Twin;
use super::system::During;
use crate::LabError;

/// What a server says of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) by: String,
    pub(crate) source: IpAddr,
    pub(crate) forwarded_for: Option<String>,
}

impl Answer {
    fn to_text(&self) -> String {
        let forwarded_for = self.forwarded_for.as_deref().unwrap_or_default();
        format!("by {}\nsource {}\nforwarded-for {forwarded_for}\n", self.by, self.source)
    }

    /// Reads what a server wrote.
    pub(crate) fn from_text(text: &str) -> Option<Self> {
        let mut lines = text.lines();
        let by = lines.next()?.strip_prefix("by ")?.to_owned();
        let source = lines.next()?.strip_prefix("source ")?.parse().ok()?;
        let forwarded_for = lines.next()?.strip_prefix("forwarded-for ")?;
        let forwarded_for = (!forwarded_for.is_empty()).then(|| forwarded_for.to_owned());
        Some(Self { by, source, forwarded_for })
    }
}

/// All servers of a twin; they stop when this is dropped.
#[derive(Debug)]
pub(crate) struct Servers {
    /// Its end is what stops them.
    life: Option<PipeWriter>,
    thread: Option<JoinHandle<()>>,
}

impl Servers {
    /// Starts a server on every TCP port of every pod that was built.
    pub(crate) fn start(cluster: &Cluster, twin: &Twin) -> Result<Self, LabError> {
        let mut listeners = Vec::new();
        for pod in cluster.pods.values().filter(|pod| pod.is_alive()) {
            let Some(space) = twin.of_pod(pod) else { continue };
            let addresses = addresses(cluster, pod);
            let sockets = space
                .run(|| addresses.into_iter().map(listen).collect::<io::Result<Vec<_>>>())
                .during(&format!("start the servers of pod {}", pod.name))?;
            let name = format!("pod {}", pod.name);
            listeners.extend(sockets.into_iter().map(|socket| (socket, name.clone())));
        }
        let during = "start the servers";
        let (end, life) = io::pipe().during(during)?;
        let serve = move || serve(&listeners, &end);
        let thread = thread::Builder::new().name("servers".into()).spawn(serve).during(during)?;
        Ok(Self { life: Some(life), thread: Some(thread) })
    }
}

impl Drop for Servers {
    fn drop(&mut self) {
        drop(self.life.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Where a pod's servers listen: on the ports its containers name, or, when they name none,
/// where Services expect them.
fn addresses(cluster: &Cluster, pod: &Pod) -> Vec<SocketAddr> {
    let tcp = uturn_model::Protocol::Tcp;
    let mut ports: Vec<Port> =
        pod.spec.ports().filter(|port| port.protocol == tcp).map(|port| port.port).collect();
    if pod.spec.ports().next().is_none() {
        let slices = cluster.endpoints.values().flatten();
        let its =
            slices.filter(|slice| slice.endpoints.iter().any(|one| pod.ips.contains(&one.address)));
        ports.extend(
            its.flat_map(|slice| &slice.ports)
                .filter(|port| port.protocol == tcp)
                .map(|port| port.port),
        );
    }
    ports.sort_unstable();
    ports.dedup();
    let families = Family::BOTH.into_iter().filter(|family| pod.address(*family).is_some());
    families
        .filter_map(|family| pod.address(family))
        .flat_map(|ip| ports.iter().map(move |port| SocketAddr::new(ip, port.number())))
        .collect()
}

fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    socket.set_reuse_address(true)?;
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    socket.listen(1024)?;
    Ok(socket.into())
}

struct Visitor {
    stream: TcpStream,
    server: usize,
    peer: SocketAddr,
    heard: Vec<u8>,
    answered: bool,
}

fn serve(listeners: &[(TcpListener, String)], end: &PipeReader) {
    let mut visitors: Vec<Visitor> = Vec::new();
    loop {
        let mut waiting = vec![PollFd::new(end, PollFlags::IN)];
        waiting.extend(listeners.iter().map(|(one, _)| PollFd::new(one, PollFlags::IN)));
        waiting.extend(visitors.iter().map(|one| PollFd::new(&one.stream, PollFlags::IN)));
        if poll(&mut waiting, None).is_err() {
            continue;
        }
        let ready: Vec<bool> = waiting.iter().map(|fd| !fd.revents().is_empty()).collect();
        drop(waiting);
        if ready[0] {
            return;
        }
        let (of_listeners, of_visitors) = ready[1..].split_at(listeners.len());
        let mut at = 0;
        visitors.retain_mut(|visitor| {
            at += 1;
            !of_visitors[at - 1] || visitor.go_on(&listeners[visitor.server].1)
        });
        for (server, _) in of_listeners.iter().enumerate().filter(|(_, ready)| **ready) {
            while let Ok((stream, peer)) = listeners[server].0.accept() {
                if stream.set_nonblocking(true).is_ok() {
                    let (heard, answered) = (Vec::new(), false);
                    visitors.push(Visitor { stream, server, peer, heard, answered });
                }
            }
        }
    }
}

impl Visitor {
    /// Reads what is there; whether the visitor stays.
    fn go_on(&mut self, name: &str) -> bool {
        let mut bytes = [0; 4096];
        loop {
            match self.stream.read(&mut bytes) {
                Ok(0) => return false,
                Ok(count) => self.heard.extend_from_slice(&bytes[..count]),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(_) => return false,
            }
        }
        let head_is_whole = self.heard.windows(4).any(|four| four == b"\r\n\r\n");
        if head_is_whole && !self.answered {
            self.answered = true;
            return self.answer(name).is_ok();
        }
        self.heard.len() < 1 << 20
    }

    fn answer(&mut self, name: &str) -> io::Result<()> {
        let head = String::from_utf8_lossy(&self.heard);
        let forwarded_for = head.lines().find_map(|line| {
            let (field, value) = line.split_once(':')?;
            field.eq_ignore_ascii_case("x-forwarded-for").then(|| value.trim().to_owned())
        });
        let source = self.peer.ip().to_canonical();
        let text = Answer { by: name.to_owned(), source, forwarded_for }.to_text();
        let length = text.len();
        // Small enough for any socket's buffer.
        self.stream.write_all(
            format!(
                "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: {length}\r\n\
                 Connection: close\r\n\r\n{text}"
            )
            .as_bytes(),
        )?;
        self.stream.shutdown(std::net::Shutdown::Write)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_can_be_read_back() {
        for forwarded_for in [None, Some("10.1.1.10, 10.0.0.1".to_owned())] {
            let by = "pod shop/front-1".to_owned();
            let answer = Answer { by, source: "10.1.1.10".parse().unwrap(), forwarded_for };
            assert_eq!(Answer::from_text(&answer.to_text()), Some(answer));
        }
        assert_eq!(Answer::from_text("hello"), None);
    }
}
