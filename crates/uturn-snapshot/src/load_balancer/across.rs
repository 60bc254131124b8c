//! What has to fit across documents: names, addresses and security groups.

use std::collections::{HashMap, HashSet};
use std::net::SocketAddr;

use uturn_model::{Origin, Protocol, Text};

use crate::document::Node;
use crate::fault::Fault;

use super::form::Form;

/// Where something is written.
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

/// What the documents so far have said about each other.
#[derive(Debug, Default)]
pub(super) struct Across {
    data_plane: Option<Location>,
    balancers: HashMap<Text, Location>,
    listeners: HashMap<(SocketAddr, Protocol), Location>,
    groups: HashMap<Text, Location>,
    /// Groups that other documents define.
    known_groups: HashSet<Text>,
    named_groups: Vec<(Text, Location)>,
    admin: Option<(SocketAddr, Location)>,
    faults: Vec<Fault>,
}

impl Across {
    /// For documents beside others, which define these security groups.
    pub(super) fn beside(known_groups: HashSet<Text>) -> Self {
        Self { known_groups, ..Self::default() }
    }

    /// There is one process.
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
            let message = format!("load balancer {name} is there twice: first at {}", first.origin);
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
            let message =
                format!("security group {name} is there twice: first at {}", first.origin);
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
        if !self.faults.is_empty() {
            faults.append(&mut self.faults);
            // Of one file in the order of their places; the sort keeps the order of equals.
            faults.sort_by(|a, b| place_in_file(a).cmp(&place_in_file(b)));
        }
    }
}

fn place_in_file(fault: &Fault) -> (Option<&str>, u32, u32) {
    (fault.origin.path(), fault.origin.line(), fault.origin.column())
}
