//! The network of the measurements: clients, targets and the middles between them, each in a
//! network namespace that a process holds. A namespace is gone with its process, which ends with
//! this program, however that ends.
//!
//! Every [`Middle`] has links of its own to the same clients and the same targets, and both route
//! through it in both directions, so that the way is equally long whatever the middle does:
//!
//! ```text
//! clients ─ 10.253.1.0/24 ─ middle 0 ─ 10.253.2.0/24 ─ targets
//!         ─ 10.253.3.0/24 ─ middle 1 ─ 10.253.4.0/24 ─
//! ```
//!
//! On layer 7, unless a row keeps the source, everything runs in one middle, on its loopback
//! interface.

use std::net::{IpAddr, Ipv4Addr};
use std::process::{Command, Stdio};

use uturn_netns::Held;

use crate::contestant::Contestant;
use crate::failure::Failure;
use crate::process::run;

/// The number of clients' addresses. Many new connections would use up the ports of a single one.
const CLIENTS: u8 = 16;

/// The load balancer's address on the loopback interface of its namespace.
const LOCAL_VIP: IpAddr = IpAddr::V4(Ipv4Addr::new(127, 0, 0, 2));
/// The targets' address there.
const LOCAL_TARGET: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

/// A network namespace. It is gone when this is dropped.
#[derive(Debug)]
pub(crate) struct Space(Held);

/// How a middle handles packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Forwarding {
    /// The kernel forwards them.
    Routes,
    /// The middle keeps packets from the targets: they answer connections that a process in the
    /// middle opened with the clients' addresses.
    Takes,
}

/// A namespace between clients and targets.
#[derive(Debug)]
pub(crate) struct Middle {
    pub(crate) space: Space,
    /// The number of the middle. Its addresses towards clients and targets are the first of two
    /// networks, which follow from the number.
    number: u8,
}

/// The addresses on one path from clients to targets.
#[derive(Clone, Debug)]
pub(crate) struct Addresses {
    pub(crate) clients: Vec<IpAddr>,
    pub(crate) vip: IpAddr,
    pub(crate) target: IpAddr,
}

/// The namespaces of clients and targets, a middle for layer 7, and a middle for each contestant on
/// layer 4.
#[derive(Debug)]
pub(crate) struct Network {
    pub(crate) clients: Space,
    pub(crate) targets: Space,
    pub(crate) layer_7: Middle,
    layer_4: Vec<(Contestant, Middle)>,
}

impl Space {
    pub(crate) fn make() -> Result<Self, Failure> {
        Held::new().map(Self).map_err(Failure::of("make a network namespace"))
    }

    /// Returns the path of the namespace's file.
    pub(crate) fn path(&self) -> String {
        self.0.path()
    }

    /// Returns a command that runs in the namespace. The program ends with this process, however
    /// this process ends.
    pub(crate) fn command(&self, niceness: i32) -> Command {
        let mut command = self.0.command();
        command.args(["nice", "-n", &niceness.to_string()]).stdin(Stdio::null());
        command
    }

    /// Runs a program in the namespace to its end.
    pub(crate) fn run(&self, words: &[&str]) -> Result<(), Failure> {
        let net = format!("--net={}", self.path());
        run(&[&["nsenter", net.as_str()], words].concat())
    }

    pub(crate) fn set(&self, settings: &[&str]) -> Result<(), Failure> {
        self.run(&[&["sysctl", "-qw"], settings].concat())
    }

    /// Links the namespace to another by a pair of devices with these addresses.
    fn link(
        &self,
        (device, addresses): (&str, &[IpAddr]),
        other: &Self,
        (other_device, other_addresses): (&str, &[IpAddr]),
    ) -> Result<(), Failure> {
        let there = other.0.pid().to_string();
        let peer = ["type", "veth", "peer", "name", other_device, "netns", &there];
        self.run(&[&["ip", "link", "add", device], &peer[..]].concat())?;
        self.bring_up(device, addresses)?;
        other.bring_up(other_device, other_addresses)
    }

    fn bring_up(&self, device: &str, addresses: &[IpAddr]) -> Result<(), Failure> {
        for address in addresses {
            self.run(&["ip", "address", "add", &format!("{address}/24"), "dev", device])?;
        }
        self.run(&["ip", "link", "set", device, "up"])
    }
}

impl Middle {
    pub(crate) fn make(
        number: u8,
        forwarding: Forwarding,
        clients: &Space,
        targets: &Space,
    ) -> Result<Self, Failure> {
        let middle = Self { space: Space::make()?, number };
        let space = &middle.space;
        let Addresses { clients: of_clients, vip, target } = middle.addresses();
        let gateway = middle.gateway();
        // The setting of a device counts only where that of `all` is not higher.
        space.set(&["net.ipv4.conf.all.rp_filter=0", "net.ipv4.conf.default.rp_filter=0"])?;
        let (to_clients, to_targets) = (format!("c{number}"), format!("t{number}"));
        clients.link((&to_clients, &of_clients), space, ("clients", &[vip]))?;
        targets.link((&to_targets, &[target]), space, ("targets", &[gateway]))?;
        let (client_net, target_net) = (network_of(vip), network_of(target));
        clients.run(&["ip", "route", "add", &target_net, "via", &vip.to_string()])?;
        targets.run(&["ip", "route", "add", &client_net, "via", &gateway.to_string()])?;
        match forwarding {
            Forwarding::Routes => space.set(&["net.ipv4.ip_forward=1"])?,
            Forwarding::Takes => {
                space.run(&["ip", "rule", "add", "iif", "targets", "lookup", "100"])?;
                let here = ["local", "default", "dev", "lo", "table", "100"];
                space.run(&[&["ip", "route", "add"], &here[..]].concat())?;
            }
        }
        Ok(middle)
    }

    /// Returns the addresses on the path through the middle.
    pub(crate) fn addresses(&self) -> Addresses {
        Addresses {
            clients: (2..2 + CLIENTS).map(|last| self.address(1, last)).collect(),
            vip: self.address(1, 1),
            target: self.address(2, 2),
        }
    }

    /// Returns the middle's address towards targets.
    pub(crate) fn gateway(&self) -> IpAddr {
        self.address(2, 1)
    }

    fn address(&self, net: u8, last: u8) -> IpAddr {
        [10, 253, 2 * self.number + net, last].into()
    }
}

/// Returns the network of 256 addresses that the address is in.
fn network_of(address: IpAddr) -> String {
    let text = address.to_string();
    let net = text.rsplit_once('.').map_or(text.as_str(), |(net, _)| net);
    format!("{net}.0/24")
}

impl Addresses {
    /// Returns the addresses on the loopback interface.
    pub(crate) fn local() -> Self {
        Self {
            clients: (1..=CLIENTS).map(|last| [127, 0, 1, last].into()).collect(),
            vip: LOCAL_VIP,
            target: LOCAL_TARGET,
        }
    }
}

impl Network {
    /// Makes and links all namespaces.
    ///
    /// # Errors
    /// When `ip` fails, which it does without root privileges.
    pub(crate) fn make() -> Result<Self, Failure> {
        let (clients, targets) = (Space::make()?, Space::make()?);
        // Clients that open many connections need many ports.
        clients.set(&["net.ipv4.ip_local_port_range=10000 65535"])?;
        let layer_7 = Middle::make(0, Forwarding::Takes, &clients, &targets)?;
        let mut layer_4 = Vec::new();
        for (number, contestant, forwarding) in [
            (1, Contestant::Uturn, Forwarding::Routes),
            (2, Contestant::Routing, Forwarding::Routes),
            (3, Contestant::HaProxy, Forwarding::Takes),
        ] {
            layer_4.push((contestant, Middle::make(number, forwarding, &clients, &targets)?));
        }
        Ok(Self { clients, targets, layer_7, layer_4 })
    }

    /// Returns a contestant's middle on layer 4.
    pub(crate) fn layer_4(&self, contestant: Contestant) -> &Middle {
        let own = self.layer_4.iter().find(|(other, _)| *other == contestant);
        own.map_or(&self.layer_7, |(_, middle)| middle)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks_are_written_with_their_length() {
        assert_eq!(network_of([10, 253, 4, 2].into()), "10.253.4.0/24");
    }
}
