//! Checks what concerns several documents: names, addresses and security groups.

use std::collections::{HashMap, HashSet};
use std::net::{IpAddr, SocketAddr};

use uturn_document::{Fault, Node};
use uturn_lb::config::Config;
use uturn_lb::special_address::{Special, led_to};
use uturn_model::lb::Target;
use uturn_model::{Origin, Protocol, Text};

use super::form::Form;

/// The place of a value: its origin and the path of its field.
#[derive(Clone, Debug)]
struct Location {
    origin: Origin,
    field: Option<String>,
}

impl Location {
    fn of(form: &Form<'_, '_>, node: &Node<'_>) -> Self {
        Self { origin: form.origin(node), field: form.path_of(node, None) }
    }

    fn fault(&self, message: String) -> Fault {
        let Self { origin, field } = self.clone();
        Fault { field, ..Fault::new(origin, message) }
    }
}

/// The names and addresses that the documents read so far define or refer to.
#[derive(Debug, Default)]
pub(super) struct Across {
    data_plane: Option<Location>,
    balancers: HashMap<Text, Location>,
    listeners: HashMap<(SocketAddr, Protocol), Location>,
    groups: HashMap<Text, Location>,
    /// Security groups that are defined outside of these documents.
    known_groups: HashSet<Text>,
    named_groups: Vec<(Text, Location)>,
    admin: Option<(SocketAddr, Location)>,
    /// The addresses that documents from HTTP must not use. `None` if the documents come from
    /// files.
    over_http: Option<OverHttp>,
    /// The VIPs of all load balancers.
    vips: HashSet<IpAddr>,
    /// The targets of documents that came over HTTP, which [`Self::check`] compares with the VIPs
    /// and the admin address.
    targets: Vec<(SocketAddr, Origin)>,
    faults: Vec<Fault>,
}

/// A running load balancer, against which documents from its admin address are checked.
#[derive(Clone, Debug)]
pub struct RunningBalancer<'a> {
    /// The configuration that the load balancer serves.
    pub served: &'a Config,
    /// The addresses of the machine that runs the load balancer.
    pub addresses: &'a [IpAddr],
}

/// The limits on documents that came over HTTP.
#[derive(Debug)]
struct OverHttp {
    admin: Option<SocketAddr>,
    addresses: HashSet<IpAddr>,
    /// Whether targets may have addresses of this machine.
    local_targets: bool,
}

/// The hint that says how such targets are allowed in documents that come over HTTP.
const HOW: &str = "a configuration that comes over HTTP may name it only if the file has \
                   spec.admin.localTargets: true";

impl Across {
    /// Creates the checks for documents that came over HTTP.
    pub(super) fn over_http(running: &RunningBalancer<'_>) -> Self {
        let process = &running.served.process;
        let over_http = OverHttp {
            admin: process.admin,
            addresses: running.addresses.iter().copied().map(led_to).collect(),
            local_targets: process.local_targets,
        };
        Self { over_http: Some(over_http), ..Self::default() }
    }

    /// Adds the security groups and load balancers of a served configuration, which the documents
    /// extend.
    pub(super) fn beside(self, served: &Config) -> Self {
        Self {
            known_groups: served.security_groups.iter().map(|group| group.name.clone()).collect(),
            vips: served.load_balancers.iter().map(|it| led_to(it.load_balancer.vip)).collect(),
            ..self
        }
    }

    /// Checks and records the targets of a load balancer.
    pub(super) fn targets(&mut self, form: &Form<'_, '_>, vip: Option<IpAddr>) {
        self.vips.extend(vip.map(led_to));
        let targets = form.take_targets();
        let Some(over_http) = &self.over_http else { return };
        for (address, node) in targets {
            match Special::of(address.ip()) {
                // Such targets in documents that people wrote were reported where the documents
                // were read.
                Some(special) if special.is_nobodys() => {
                    if form.is_derived() {
                        let expected = "expected the address of a machine";
                        form.fault(node, format!("{expected}, found {address}, {special}"));
                    }
                }
                _ if over_http.local_targets => {}
                Some(special) => {
                    let expected = "expected the address of another machine";
                    form.fault(node, format!("{expected}, found {address}, {special}: {HOW}"));
                }
                None => self.targets.push((address, form.origin(node))),
            }
        }
    }

    /// Records the DataPlane document. A second one is a fault.
    pub(super) fn data_plane(&mut self, form: &Form<'_, '_>) {
        let location = Location::of(form, form.root);
        match &self.data_plane {
            Some(first) => {
                let message = format!("a second DataPlane: the first is at {}", first.origin);
                self.faults.push(location.fault(message));
            }
            None => self.data_plane = Some(location),
        }
    }

    pub(super) fn admin(&mut self, form: &Form<'_, '_>, node: &Node<'_>, address: SocketAddr) {
        self.admin = Some((address, Location::of(form, node)));
    }

    pub(super) fn balancer(&mut self, form: &Form<'_, '_>, node: &Node<'_>, name: &Text) {
        if form.is_derived() {
            return;
        }
        let location = Location::of(form, node);
        if let Some(first) = self.balancers.get(name) {
            let message = format!(
                "load balancer {name} is defined more than once, first at {}",
                first.origin
            );
            self.faults.push(location.fault(message));
        } else {
            self.balancers.insert(name.clone(), location);
        }
    }

    pub(super) fn listener(
        &mut self,
        form: &Form<'_, '_>,
        node: &Node<'_>,
        address: SocketAddr,
        transport: Protocol,
    ) {
        if form.is_derived() {
            return;
        }
        let location = Location::of(form, node);
        if let Some(first) = self.listeners.get(&(address, transport)) {
            let message =
                format!("{transport} {address} has a listener already, at {}", first.origin);
            self.faults.push(location.fault(message));
        } else {
            self.listeners.insert((address, transport), location);
        }
    }

    pub(super) fn group(&mut self, form: &Form<'_, '_>, node: &Node<'_>, name: &Text) {
        let location = Location::of(form, node);
        if let Some(first) = self.groups.get(name) {
            let message = format!(
                "security group {name} is defined more than once, first at {}",
                first.origin
            );
            self.faults.push(location.fault(message));
        } else {
            self.groups.insert(name.clone(), location);
        }
    }

    pub(super) fn named_group(&mut self, form: &Form<'_, '_>, node: &Node<'_>, name: Text) {
        if !form.is_derived() {
            self.named_groups.push((name, Location::of(form, node)));
        }
    }

    /// Returns whether there is a DataPlane document, which has the settings of the process.
    pub(super) fn has_data_plane(&self) -> bool {
        self.data_plane.is_some()
    }

    /// Reports a target that is the admin address of the same documents: its clients would read
    /// what is meant for the administrator. Reports a listener at the admin address of the running
    /// process.
    pub(super) fn check_admin(&mut self, config: &Config) {
        let served = self.over_http.as_ref().and_then(|it| it.admin);
        let Some((admin, location)) = &self.admin else {
            let taken = served.and_then(|admin| self.listeners.get(&(admin, Protocol::Tcp)));
            let fault = taken
                .zip(served)
                .map(|(listener, admin)| listener.fault(format!("{admin} is the admin address")));
            return self.faults.extend(fault);
        };
        let is_admin = |target: &Target| {
            let (ip, own) = (led_to(target.address.ip()), led_to(admin.ip()));
            let is_here = own.is_unspecified() && Special::of(ip) == Some(Special::Loopback);
            target.address.port() == admin.port() && (ip == own || is_here)
        };
        let owner = config.load_balancers.iter().find(|served| {
            let listeners = &served.load_balancer.listeners;
            let rules = listeners.iter().flat_map(|listener| &listener.rules);
            rules.flat_map(|rule| &rule.targets).any(is_admin)
        });
        if let Some(owner) = owner {
            let name = &owner.load_balancer.name;
            self.faults.push(location.fault(format!("{admin} is a target of {name}")));
        }
    }

    /// Adds the faults that only all documents together show.
    pub(super) fn check(mut self, faults: &mut Vec<Fault>) {
        for (name, location) in &self.named_groups {
            if !self.groups.contains_key(name) && !self.known_groups.contains(name) {
                let message = format!("no SecurityGroup document defines {name}");
                self.faults.push(location.fault(message));
            }
        }
        if let Some((address, location)) = &self.admin
            && let Some(listener) = self.listeners.get(&(*address, Protocol::Tcp))
        {
            let message = format!("{address} is a listener's address, at {}", listener.origin);
            self.faults.push(location.fault(message));
        }
        if let Some(over_http) = &self.over_http {
            for (address, origin) in &self.targets {
                let ip = led_to(address.ip());
                let what = match ip {
                    _ if over_http.is_admin(ip, address.port()) => "the admin address",
                    ip if self.vips.contains(&ip) => "a VIP of this load balancer",
                    _ => continue,
                };
                let expected = "expected the address of another machine";
                let message = format!("{expected}, found {address}, {what}: {HOW}");
                self.faults.push(Fault::new(origin.clone(), message));
            }
        }
        if !self.faults.is_empty() {
            faults.append(&mut self.faults);
            // The faults of one file are in the order of their places; the stable sort keeps the
            // order of equal places.
            faults.sort_by(|a, b| place_in_file(a).cmp(&place_in_file(b)));
        }
    }
}

impl OverHttp {
    /// Returns whether the admin listener answers at this address and port.
    fn is_admin(&self, ip: IpAddr, port: u16) -> bool {
        self.admin.is_some_and(|admin| {
            let own = led_to(admin.ip());
            let is_there =
                if own.is_unspecified() { self.addresses.contains(&ip) } else { ip == own };
            is_there && port == admin.port()
        })
    }
}

fn place_in_file(fault: &Fault) -> (Option<&str>, u32, u32) {
    (fault.origin.path(), fault.origin.line(), fault.origin.column())
}
