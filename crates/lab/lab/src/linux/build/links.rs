//! The links between namespaces: their names, their ends, and the router at each.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::IpNet;
use uturn_model::network::{Network, NetworkMode};

use crate::LabError;
use crate::linux::kernel::namespace::Namespace;
use crate::linux::kernel::netlink::{End, Index, Mac, Netlink};
use crate::linux::kernel::system::During;
use crate::linux::run::state::Run;

/// The link-local address of the router at the other end of each link.
pub(crate) const ROUTER: [IpAddr; 2] = [
    IpAddr::V4(Ipv4Addr::new(169, 254, 1, 1)),
    IpAddr::V6(Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 1)),
];

/// Returns the names of a node's links in the fabric.
pub(crate) fn links_of(network: &Network, number: usize) -> Vec<String> {
    match network.mode.value {
        NetworkMode::GlobalRouter | NetworkMode::Routed => vec![uplink(number)],
        NetworkMode::VpcCni => vec![uplink(number), card(number)],
    }
}

/// Returns the name of a node's link in the fabric.
pub(crate) fn uplink(number: usize) -> String {
    format!("n{number}")
}

/// Returns the name of a node's second card in the fabric.
pub(crate) fn card(number: usize) -> String {
    format!("e{number}")
}

/// A veth pair, seen from one end.
pub(crate) struct Wire {
    pub(crate) here: String,
    pub(crate) there: &'static str,
    /// The hardware address of the other end.
    pub(crate) mac: Mac,
}

impl Wire {
    /// Creates the pair between the calling thread's namespace and another, whose end stays down.
    pub(crate) fn lay(
        &self,
        netlink: &mut Netlink,
        mac: Mac,
        other: &Namespace,
    ) -> io::Result<Index> {
        let here = End { name: &self.here, mac };
        netlink.add_pair(&here, &End { name: self.there, mac: self.mac }, other)?;
        let link = netlink.index(&self.here)?;
        netlink.up(link)?;
        Ok(link)
    }
}

pub(crate) fn everything(of: IpAddr) -> IpNet {
    match of {
        IpAddr::V4(_) => IpNet::new_assert(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0),
        IpAddr::V6(_) => IpNet::new_assert(IpAddr::V6(Ipv6Addr::UNSPECIFIED), 0),
    }
}

/// Returns a hardware address that encodes its purpose and the number of its owner.
pub(crate) fn mac(what: u8, number: usize) -> Mac {
    let [.., high, middle, low] = number.to_be_bytes();
    [0x02, 0x75, what, high, middle, low]
}

pub(crate) fn namespace(run: &Run, what: &str) -> Result<Namespace, LabError> {
    // A file name has at most 255 bytes.
    let name = run.namespace(&what[..what.len().min(200)]);
    Namespace::new(name).during(&format!("make the namespace of {what}"))
}
