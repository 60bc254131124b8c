//! Makes a server serve a configuration.
//!
//! # Guarantees
//! - Nothing changes if a configuration cannot be served.
//! - A listener that has not changed costs only a comparison, if only changes are asked for.
//! - When the configuration is served, the sockets of removed listeners are closed.

use std::collections::HashMap;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, mpsc};

use socket2::{Domain, Protocol as SocketProtocol, Socket, Type};
use uturn_lb::config::{Config, ListenerSettings};
use uturn_lb::nft::Forwarded;
use uturn_model::lb::{self, ListenerProtocol};
use uturn_model::network::SecurityRule;
use uturn_model::{LoadBalancer, Protocol, Text};

use super::{BACKLOG, Server};
use crate::access_log;
use crate::admin::{Overview, ShownListener};
use crate::capability::needs_to_listen;
use crate::error::StartError;
use crate::l4::{self, Layer4};
use crate::peer;
use crate::probe::{self, Probed};
use crate::state::{Listener, Slot};
use crate::tls;
use crate::upstream;
use crate::worker_thread::Command;

/// The listeners that a configuration change makes anew.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Renewal {
    /// Every listener.
    All,
    /// Only listeners that differ from before.
    Changed,
}

/// The address and the transport of a listener.
type Key = (SocketAddr, Protocol);

/// The listeners that are served.
pub(super) type Loaded = HashMap<Key, LoadedListener>;

/// A listener that is served.
#[derive(Debug)]
pub(super) struct LoadedListener {
    load_balancer: Text,
    listener: lb::Listener,
    settings: ListenerSettings,
    security: Option<Vec<SecurityRule>>,
    is_forwarded: bool,
    shown: Arc<ShownListener>,
}

/// A listener of a configuration that is to be served.
struct Wanted<'a> {
    load_balancer: &'a LoadBalancer,
    address: SocketAddr,
    listener: &'a lb::Listener,
    settings: &'a ListenerSettings,
    /// The rules of its security groups; `None` if it has no group.
    security: Option<Vec<SecurityRule>>,
    /// Whether the kernel serves the listener.
    is_forwarded: bool,
}

/// The fate of a listener in a configuration change.
enum Step<'a> {
    /// The listener stays as it is.
    Keep(Key),
    /// The listener is made anew. Without a [`Change`] the kernel serves it.
    Make(Box<Wanted<'a>>, Option<Box<Change>>),
}

/// A listener, and the sockets that workers are to accept its connections at.
struct Change {
    listener: Listener,
    /// One socket for each worker, or more; empty if the listener listens already.
    sockets: Vec<TcpListener>,
}

impl LoadedListener {
    fn is(&self, wanted: &Wanted<'_>) -> bool {
        self.load_balancer == wanted.load_balancer.name
            && self.is_forwarded == wanted.is_forwarded
            && self.listener == *wanted.listener
            && self.settings == *wanted.settings
            && self.security == wanted.security
    }
}

impl Wanted<'_> {
    fn key(&self) -> Key {
        (self.address, self.listener.protocol.transport())
    }

    fn forwarded(self) -> Forwarded {
        Forwarded {
            vip: self.load_balancer.vip,
            listener: self.listener.clone(),
            settings: self.settings.clone(),
            security: self.security,
            alive: Vec::new(),
        }
    }
}

impl Server {
    /// Serves a configuration.
    ///
    /// # Errors
    /// When the configuration cannot be served; then nothing changes.
    pub(super) fn serve(&mut self, config: &Config, renewal: Renewal) -> Result<(), StartError> {
        let access_log = open_access_log(config)?;
        let admin = self.admin.prepare(&config.process, &self.inherited)?;
        let mut steps = Vec::new();
        for wanted in wanted(config, self.layer_4.is_some()) {
            let key = wanted.key();
            let known = self.loaded.get(&key).filter(|_| renewal == Renewal::Changed);
            steps.push(match known.filter(|known| known.is(&wanted)) {
                Some(_) => Step::Keep(key),
                None => {
                    let change = self.prepare(&wanted)?;
                    Step::Make(Box::new(wanted), change.map(Box::new))
                }
            });
        }
        if let Some(layer_4) = &self.layer_4
            && (renewal == Renewal::All || self.changes_layer_4(&steps))
        {
            let all = wanted(config, true).filter(|wanted| wanted.is_forwarded);
            layer_4.load(all.map(Wanted::forwarded).collect(), config.process.drain)?;
        }
        let overview = self.follow(steps);
        self.process.access_log.switch(access_log);
        self.admin.change(admin, overview, config);
        Ok(())
    }

    /// Makes a listener, unless the kernel serves it, and checks whether it can be served.
    fn prepare(&self, wanted: &Wanted<'_>) -> Result<Option<Change>, StartError> {
        let Wanted { load_balancer, address, listener, .. } = *wanted;
        let change = if wanted.is_forwarded {
            None
        } else {
            Some(self.change(wanted).map_err(|source| {
                let doing = format!("listen on {address} of {}", load_balancer.name);
                StartError { doing, source }
            })?)
        };
        if !wanted.is_forwarded {
            upstream::check_source(address, listener)?;
        }
        probe::check_source(address, listener)?;
        Ok(change)
    }

    fn change(&self, wanted: &Wanted<'_>) -> io::Result<Change> {
        let Wanted { address, listener, settings, .. } = *wanted;
        let speaks_http2 = settings.http2 && listener.protocol == ListenerProtocol::Https;
        let tls = if listener.protocol.ends_tls() {
            Some(tls::server(
                &settings.certificates,
                settings.client_certificates.as_ref(),
                speaks_http2,
            )?)
        } else {
            None
        };
        let known = self.listeners.get(&address).map(|slot| slot.current());
        let sockets = match known {
            Some(_) => Ok(Vec::new()),
            None => self.listen(address),
        }?;
        let security = wanted.security.clone();
        let listener = Listener::new(address, listener, settings, tls, security, known.as_deref());
        Ok(Change { listener, sockets })
    }

    /// Returns sockets for all workers: those of the previous process, and new ones if it had fewer
    /// workers.
    fn listen(&self, address: SocketAddr) -> io::Result<Vec<TcpListener>> {
        let mut sockets = self.inherited.at(address)?;
        for _ in sockets.len()..self.workers.len() {
            sockets.push(listen(address)?);
        }
        Ok(sockets)
    }

    /// Returns whether the kernel has to serve anything different.
    fn changes_layer_4(&self, steps: &[Step<'_>]) -> bool {
        let mut kept = 0;
        for step in steps {
            match step {
                Step::Keep(key) => kept += usize::from(self.loaded[key].is_forwarded),
                Step::Make(wanted, _) if wanted.is_forwarded => return true,
                Step::Make(..) => {}
            }
        }
        kept != self.loaded.values().filter(|loaded| loaded.is_forwarded).count()
    }

    /// Serves these listeners, and no others. Returns the administrator's view.
    fn follow(&mut self, steps: Vec<Step<'_>>) -> Overview {
        let mut before = std::mem::take(&mut self.loaded);
        let mut slots = std::mem::take(&mut self.listeners);
        let (mut overview, mut kept, mut probed) = (Overview::default(), Vec::new(), Vec::new());
        self.changed = 0;
        for step in steps {
            match step {
                Step::Keep(key) => {
                    let Some(loaded) = before.remove(&key) else { continue };
                    self.listeners
                        .extend(slots.remove_entry(&key.0).filter(|_| !loaded.is_forwarded));
                    overview.listeners.push(Arc::clone(&loaded.shown));
                    kept.push(Arc::clone(&loaded.shown));
                    self.loaded.insert(key, loaded);
                }
                Step::Make(wanted, change) => {
                    let key = wanted.key();
                    let slot = change.map(|change| self.place(key.0, *change, &mut slots));
                    let previous = before.remove(&key);
                    let (loaded, work) = self.load(*wanted, slot, previous.as_ref());
                    overview.listeners.push(Arc::clone(&loaded.shown));
                    probed.push(work);
                    self.loaded.insert(key, loaded);
                    self.changed += 1;
                }
            }
        }
        self.changed += before.len();
        self.prober.probe(kept, probed);
        self.close(slots.into_keys());
        overview
    }

    /// Replaces the listener at the address, or lets workers listen there.
    fn place(
        &mut self,
        address: SocketAddr,
        change: Change,
        slots: &mut HashMap<SocketAddr, Arc<Slot>>,
    ) -> Arc<Slot> {
        let Change { listener, sockets } = change;
        let slot = match slots.remove(&address) {
            Some(slot) => {
                slot.replace(listener);
                slot
            }
            None => Arc::new(Slot::new(listener, self.workers.len())),
        };
        let mut shares: Vec<_> = self.workers.iter().map(|worker| (worker, Vec::new())).collect();
        let count = shares.len();
        for (number, socket) in sockets.into_iter().enumerate() {
            shares[number % count].1.push(socket);
        }
        for (worker, sockets) in shares.into_iter().filter(|(_, sockets)| !sockets.is_empty()) {
            worker.tell(Command::Listen(sockets, Arc::clone(&slot)));
        }
        self.listeners.insert(address, Arc::clone(&slot));
        slot
    }

    /// Returns a listener as it is served from now on, and what its health checks need.
    fn load(
        &self,
        wanted: Wanted<'_>,
        slot: Option<Arc<Slot>>,
        previous: Option<&LoadedListener>,
    ) -> (LoadedListener, Probed) {
        let Wanted { load_balancer, address, listener, settings, security, is_forwarded } = wanted;
        let name = &load_balancer.name;
        let previous = previous.map(|loaded| &*loaded.shown);
        let shown = Arc::new(ShownListener::new(name, address, listener, slot.clone(), previous));
        let layer_4 = self.layer_4.as_ref().filter(|_| is_forwarded).map(Layer4::health_reports);
        let work = Probed {
            address,
            listener: listener.clone(),
            settings: settings.clone(),
            records: shown.targets.iter().map(|target| Arc::clone(&target.probes)).collect(),
            slot,
            layer_4,
        };
        let (listener, settings) = (listener.clone(), settings.clone());
        let load_balancer = name.clone();
        (LoadedListener { load_balancer, listener, settings, security, is_forwarded, shown }, work)
    }

    /// Lets workers accept nothing more at these addresses, and waits until their sockets are
    /// closed.
    fn close(&self, addresses: impl Iterator<Item = SocketAddr>) {
        let (answer, answers) = mpsc::channel();
        for address in addresses {
            for worker in &self.workers {
                worker.tell(Command::Close(address, answer.clone()));
            }
        }
        drop(answer);
        // The iteration ends when every worker has answered, or is gone.
        for () in answers {}
    }
}

/// Returns the listeners of a configuration.
fn wanted(config: &Config, has_layer_4: bool) -> impl Iterator<Item = Wanted<'_>> {
    config.load_balancers.iter().flat_map(move |served| {
        let load_balancer = &served.load_balancer;
        let listeners = load_balancer.listeners.iter().zip(&served.listeners);
        listeners.map(move |(listener, settings)| Wanted {
            load_balancer,
            address: SocketAddr::new(load_balancer.vip, listener.port.number()),
            listener,
            settings,
            security: security_rules(config, load_balancer),
            is_forwarded: l4::is_in_kernel(listener, settings, has_layer_4),
        })
    })
}

fn open_access_log(config: &Config) -> Result<access_log::Output, StartError> {
    access_log::open(&config.process.access_log)
        .map_err(|source| StartError { doing: "open the access log".into(), source })
}

/// Returns the rules of all groups of a load balancer, in their order. Returns `None` if it has no
/// group that the configuration knows.
fn security_rules(config: &Config, load_balancer: &LoadBalancer) -> Option<Vec<SecurityRule>> {
    let group = |name: &Text| config.security_groups.iter().find(|group| group.name == *name);
    let groups: Vec<_> = load_balancer.security_groups.iter().filter_map(group).collect();
    let rules = || groups.iter().flat_map(|group| group.inbound.iter().cloned()).collect();
    (!groups.is_empty()).then(rules)
}

/// Returns a socket whose address others can share, as each worker has one. The machine need not
/// have the address yet: of a pair of load balancers, only the active one has it.
fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let socket =
        Socket::new(Domain::for_address(address), Type::STREAM, Some(SocketProtocol::TCP))?;
    socket.set_reuse_address(true)?;
    socket.set_reuse_port(true)?;
    match address {
        SocketAddr::V4(_) => socket.set_freebind_v4(true)?,
        SocketAddr::V6(_) => socket.set_freebind_v6(true)?,
    }
    socket.set_nonblocking(true)?;
    // Accepted connections inherit both settings, which saves system calls for each.
    socket.set_tcp_nodelay(true)?;
    peer::set_keepalive(&socket)?;
    socket.bind(&address.into()).map_err(|error| needs_to_listen(error, address))?;
    socket.listen(BACKLOG)?;
    Ok(socket.into())
}
