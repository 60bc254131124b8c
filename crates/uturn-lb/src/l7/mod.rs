//! The data plane on layer 7: a process that does what [`decide`](crate::decide) says,
//! keeping the client's address.
//!
//! A thread a connection and blocking calls: it is easy to see that it is right. Listeners
//! on layer 4 are not its business; those are rules in the kernel.
//!
//! # Caveats
//! - VIPs, and the address of a replaced source ([`replaced_source`]), must be bound where
//!   it runs; for a kept source [`steer`] says what the kernel has to be told.
//! - One request a connection; HTTPS is not served yet and said so
//!   ([`Event::Unserved`]).
//! - Targets are taken for alive: health checks are not made yet.

mod connect;
mod event;
mod exchange;
mod http;
pub mod steer;

use std::fmt;
use std::fs::File;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::AsFd;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use socket2::{Domain, Protocol, Socket, Type};
use uturn_model::LoadBalancer;
use uturn_model::lb::ListenerProtocol;

pub use connect::replaced_source;
pub use event::Event;
use exchange::{Exchange, Service};

/// How soon a wish to stop is noticed.
const ATTENTION: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };

/// Why the load balancer did not start.
#[derive(Debug)]
pub struct StartError {
    doing: String,
    source: io::Error,
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot {}: {}", self.doing, self.source)
    }
}

impl std::error::Error for StartError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.source)
    }
}

/// Moves the calling thread, and the threads it starts from now on, into a network
/// namespace: a path, or a name as `ip netns` knows it.
pub fn enter(namespace: &str) -> Result<(), StartError> {
    let path = if namespace.contains('/') {
        namespace.into()
    } else {
        Path::new("/run/netns").join(namespace)
    };
    File::open(&path)
        .and_then(|file| {
            Ok(move_into_link_name_space(file.as_fd(), Some(LinkNameSpaceType::Network))?)
        })
        .map_err(|source| StartError {
            doing: format!("enter the network namespace {}", path.display()),
            source,
        })
}

/// Raises `stop` when standard input ends: whoever started this process is gone.
pub fn stop_with_stdin(stop: Arc<AtomicBool>) {
    thread::spawn(move || {
        let _ = io::copy(&mut io::stdin().lock(), &mut io::sink());
        stop.store(true, Ordering::Relaxed);
    });
}

/// Serves every HTTP listener until `stop` is raised. `report` hears of everything that
/// happens, from many threads.
///
/// # Errors
/// When a listener cannot listen; then none does.
pub fn run(
    load_balancers: &[LoadBalancer],
    report: &Arc<dyn Fn(&Event) + Send + Sync>,
    stop: &AtomicBool,
) -> Result<(), StartError> {
    let mut services = Vec::new();
    for lb in load_balancers {
        for listener in &lb.listeners {
            let address = SocketAddr::new(lb.vip, listener.port.number());
            match listener.protocol {
                ListenerProtocol::Http => {
                    let (profile, rules) = (listener.profile.clone(), listener.rules.clone());
                    let socket = listen(address).map_err(|source| StartError {
                        doing: format!("listen on {address} of {}", lb.name),
                        source,
                    })?;
                    services.push((socket, Arc::new(Service::new(address, profile, rules))));
                }
                ListenerProtocol::Https => report(&Event::Unserved {
                    listener: address,
                    why: "HTTPS is not served yet".into(),
                }),
                ListenerProtocol::Tcp | ListenerProtocol::Udp | ListenerProtocol::TcpSsl => {}
            }
        }
    }
    report(&Event::Ready { listeners: services.iter().map(|(_, one)| one.address).collect() });
    accept_all(&services, report, stop);
    Ok(())
}

fn accept_all(
    services: &[(TcpListener, Arc<Service>)],
    report: &Arc<dyn Fn(&Event) + Send + Sync>,
    stop: &AtomicBool,
) {
    let connections = AtomicU64::new(0);
    let mut waiting: Vec<PollFd<'_>> =
        services.iter().map(|(socket, _)| PollFd::new(socket, PollFlags::IN)).collect();
    while !stop.load(Ordering::Relaxed) {
        // Interrupted or timed out: look at `stop` again.
        if poll(&mut waiting, Some(&ATTENTION)).is_err() {
            continue;
        }
        for (fd, (socket, service)) in waiting.iter().zip(services) {
            if fd.revents().is_empty() {
                continue;
            }
            let (stream, client) = match socket.accept() {
                Ok(accepted) => accepted,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => continue,
                Err(_) => {
                    // Out of descriptors, most likely: let some connections end first.
                    thread::sleep(Duration::from_millis(10));
                    continue;
                }
            };
            let connection = connections.fetch_add(1, Ordering::Relaxed);
            let (service, report) = (Arc::clone(service), Arc::clone(report));
            let serve = move || {
                Exchange { service: &service, connection, client, report: &*report }.run(&stream);
            };
            // Without a thread to be had, the connection is closed with its stream.
            let _ = thread::Builder::new().spawn(serve);
        }
    }
}

fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    socket.set_reuse_address(true)?;
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    socket.listen(4096)?;
    Ok(socket.into())
}
