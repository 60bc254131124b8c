//! The data plane on layer 7: a process that does what [`decide`](crate::decide) says,
//! keeping the client's address; and the probes of every listener, on both layers.
//!
//! Each connection has a thread that makes blocking calls: this is easy to verify. It
//! leaves listeners on layer 4 to rules in the kernel, except those that end TLS. The results of their targets' probes are reported ([`Event::Health`]), so that the
//! program that keeps those rules can act on them.
//!
//! # Caveats
//! - VIPs, the address of a replaced source ([`replaced_source`]) and the one that probes
//!   come from ([`probe_address`]) must be bound where it runs; for a kept
//!   source [`steer`] has the settings that the kernel needs.
//! - One request for each connection.
//! - A listener that ends TLS shows a self-signed certificate.

mod connect;
mod event;
mod exchange;
mod probe;
pub mod steer;
mod tls;

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
use thiserror::Error;
use uturn_model::LoadBalancer;
use uturn_model::lb::{Listener, ListenerProtocol};

pub use connect::replaced_source;
pub use event::Event;
use exchange::{Exchange, Service};
use probe::Probe;
pub use probe::ProbeResult;

use crate::profile::probe_address;

/// How soon a wish to stop is noticed.
const ATTENTION: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };

/// Why the load balancer did not start.
#[derive(Debug, Error)]
#[error("cannot {doing}: {source}")]
pub struct StartError {
    doing: String,
    source: io::Error,
}

/// Moves the calling thread, and the threads it starts from now on, into a network
/// namespace: a path, or a name as `ip netns` knows it.
///
/// # Errors
/// Fails if there is no such namespace, or the process may not enter it.
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

/// Raises `stop` when standard input ends: the process that started this one is gone.
pub fn stop_with_stdin(stop: Arc<AtomicBool>) {
    thread::spawn(move || {
        let _ = io::copy(&mut io::stdin().lock(), &mut io::sink());
        stop.store(true, Ordering::Relaxed);
    });
}

/// Serves what needs a process, and probes every target, until `stop` is raised. `report`
/// hears of everything that happens, from many threads.
///
/// # Errors
/// When a listener cannot listen, or probes cannot be sent; then nothing is served.
pub fn run(
    load_balancers: &[LoadBalancer],
    report: &Arc<dyn Fn(&Event) + Send + Sync>,
    stop: &AtomicBool,
) -> Result<(), StartError> {
    let (services, probes) = set_up(load_balancers)?;
    report(&Event::Ready {
        listeners: services.iter().map(|(_, service)| service.address).collect(),
    });
    thread::scope(|scope| {
        for probe in &probes {
            let spawned = thread::Builder::new().spawn_scoped(scope, || probe.run(&**report, stop));
            if let Err(source) = spawned {
                // Ends the other threads, which would be waited for forever.
                stop.store(true, Ordering::Relaxed);
                return Err(StartError { doing: format!("probe {}", probe.target), source });
            }
        }
        accept_all(&services, report, stop);
        Ok(())
    })
}

type Served = (TcpListener, Arc<Service>);

fn set_up(load_balancers: &[LoadBalancer]) -> Result<(Vec<Served>, Vec<Probe>), StartError> {
    let (mut services, mut probes) = (Vec::new(), Vec::new());
    let mut tls = None;
    for lb in load_balancers {
        for listener in &lb.listeners {
            let address = SocketAddr::new(lb.vip, listener.port.number());
            let alive: Vec<Arc<[AtomicBool]>> = listener
                .rules
                .iter()
                .map(|rule| rule.targets.iter().map(|_| AtomicBool::new(true)).collect())
                .collect();
            probes.extend(probes_of(address, listener, &alive)?);
            if matches!(listener.protocol, ListenerProtocol::Tcp | ListenerProtocol::Udp) {
                continue;
            }
            let cannot = |source| StartError {
                doing: format!("listen on {address} of {}", lb.name),
                source,
            };
            if listener.protocol.ends_tls() && tls.is_none() {
                tls = Some(tls::server().map_err(cannot)?);
            }
            let tls = tls.clone().filter(|_| listener.protocol.ends_tls());
            let socket = listen(address).map_err(cannot)?;
            services.push((socket, Arc::new(Service::new(address, listener, alive, tls))));
        }
    }
    Ok((services, probes))
}

fn probes_of(
    address: SocketAddr,
    listener: &Listener,
    alive: &[Arc<[AtomicBool]>],
) -> Result<Vec<Probe>, StartError> {
    let Some(check) = &listener.profile.health_check else { return Ok(Vec::new()) };
    let transport = listener.protocol.transport();
    let source = probe_address(check.source, address.ip());
    let rules = listener.rules.iter().zip(alive).enumerate();
    let probes: Vec<Probe> = rules
        .flat_map(|(rule, (own, alive))| {
            own.targets.iter().enumerate().map(move |(place, target)| Probe {
                listener: address,
                transport,
                rule,
                place,
                target: target.address,
                check: check.clone(),
                source,
                alive: Arc::clone(alive),
            })
        })
        .collect();
    if !probes.is_empty() {
        probe::can_ask_from(source, transport).map_err(|error| StartError {
            doing: format!("send the health checks of {address} from {source}"),
            source: error,
        })?;
    }
    Ok(probes)
}

fn accept_all(services: &[Served], report: &Arc<dyn Fn(&Event) + Send + Sync>, stop: &AtomicBool) {
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
                Exchange { service: &service, connection, client, report: &*report }.run(stream);
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
