//! The network that packets stay in: clients, the load balancer and targets, each in a namespace.
//!
//! Where the source is replaced, everything runs in the load balancer's namespace, on its loopback
//! interface. Where it is kept, clients and targets are elsewhere, and targets answer through the
//! load balancer, which takes for itself what comes from their side.

use std::net::{IpAddr, Ipv4Addr};

use crate::failure::Failure;
use crate::process::run;

/// How many addresses clients have: ports of one are used up by many new connections.
const CLIENTS: u8 = 16;

/// The load balancer's address on its loopback interface.
pub(crate) const LOCAL_VIP: IpAddr = IpAddr::V4(Ipv4Addr::new(127, 0, 0, 2));
/// The targets' address there.
pub(crate) const LOCAL_TARGET: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
/// The load balancer's address towards clients elsewhere.
pub(crate) const VIP: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 253, 1, 1));
/// The targets' address elsewhere.
pub(crate) const TARGET: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 253, 2, 2));

/// Three namespaces that are there until this is dropped.
#[derive(Debug)]
pub(crate) struct Namespaces {
    pub(crate) clients: String,
    pub(crate) balancer: String,
    pub(crate) targets: String,
}

impl Namespaces {
    /// Makes and links them.
    pub(crate) fn make() -> Result<Self, Failure> {
        let name = |what: &str| format!("uturn-bench-{}-{what}", std::process::id());
        let made = Self { clients: name("c"), balancer: name("b"), targets: name("t") };
        for namespace in made.all() {
            run(&["ip", "netns", "add", namespace])?;
            run(&["ip", "-n", namespace, "link", "set", "lo", "up"])?;
        }
        made.link(&made.clients, "c0", &made.balancer, "b1")?;
        made.link(&made.targets, "t0", &made.balancer, "b2")?;
        made.address(&made.balancer, "b1", VIP)?;
        made.address(&made.balancer, "b2", [10, 253, 2, 1].into())?;
        made.address(&made.targets, "t0", TARGET)?;
        for client in clients() {
            made.address(&made.clients, "c0", client)?;
        }
        let (balancer, targets) = (&made.balancer, &made.targets);
        run(&["ip", "-n", targets, "route", "add", "default", "via", "10.253.2.1"])?;
        let setting = ["net.ipv4.conf.all.rp_filter=0", "net.ipv4.conf.b2.rp_filter=0"];
        run(&["ip", "netns", "exec", balancer, "sysctl", "-qw", setting[0], setting[1]])?;
        run(&["ip", "-n", balancer, "rule", "add", "iif", "b2", "lookup", "100"])?;
        let to_here = ["route", "add", "local", "default", "dev", "lo", "table", "100"];
        run(&[&["ip", "-n", balancer], &to_here[..]].concat())?;
        Ok(made)
    }

    fn all(&self) -> [&str; 3] {
        [&self.clients, &self.balancer, &self.targets]
    }

    fn link(&self, here: &str, device: &str, there: &str, other: &str) -> Result<(), Failure> {
        let peer = ["type", "veth", "peer", "name", other, "netns", there];
        run(&[&["ip", "-n", here, "link", "add", device], &peer[..]].concat())?;
        run(&["ip", "-n", here, "link", "set", device, "up"])?;
        run(&["ip", "-n", there, "link", "set", other, "up"])
    }

    fn address(&self, namespace: &str, device: &str, address: IpAddr) -> Result<(), Failure> {
        run(&["ip", "-n", namespace, "address", "add", &format!("{address}/24"), "dev", device])
    }
}

impl Drop for Namespaces {
    fn drop(&mut self) {
        for namespace in self.all() {
            let _ = run(&["ip", "netns", "del", namespace]);
        }
    }
}

/// The addresses of clients elsewhere.
pub(crate) fn clients() -> Vec<IpAddr> {
    (2..2 + CLIENTS).map(|last| [10, 253, 1, last].into()).collect()
}

/// The addresses of clients on the loopback interface.
pub(crate) fn local_clients() -> Vec<IpAddr> {
    (1..=CLIENTS).map(|last| [127, 0, 1, last].into()).collect()
}
