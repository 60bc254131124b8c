//! The state of each kernel of a lab: its local addresses, and its IPVS virtual servers without a
//! real server.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use uturn_netfilter::ipvs::VirtualAddress;

use super::places::places;
use crate::LabError;
use crate::linux::build::lab_cluster::LabCluster;
use crate::linux::kernel::ipvs::Ipvs;
use crate::linux::kernel::system::During;

/// The state of one kernel.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct KernelState {
    /// The local addresses, on any link.
    pub(super) own: BTreeSet<IpAddr>,
    /// Virtual servers without a real server.
    pub(super) without_server: BTreeSet<SocketAddr>,
}

impl KernelState {
    /// Reads the state of every place.
    pub(crate) fn read(lab_cluster: &LabCluster) -> Result<Vec<Self>, LabError> {
        let read = |place: super::places::Place<'_>| {
            let doing = format!("look what addresses {} has", place.what);
            place.space.run(Self::here).during(&doing)
        };
        places(lab_cluster).into_iter().map(read).collect()
    }

    /// Reads the state of the calling thread's namespace.
    fn here() -> io::Result<Self> {
        let mut own = own_v4(&fs::read_to_string("/proc/thread-self/net/fib_trie")?);
        // A kernel without IPv6 has no such file.
        let v6 = fs::read_to_string("/proc/thread-self/net/if_inet6").unwrap_or_default();
        own.extend(v6.lines().filter_map(own_v6));
        let mut without_server = BTreeSet::new();
        if Ipvs::is_loaded() {
            let servers = Ipvs::open()?.list()?.0.into_iter();
            let empty = servers.filter(|server| server.servers.is_empty());
            without_server.extend(empty.filter_map(|server| match server.at {
                VirtualAddress::Address { address, .. } => Some(address),
                VirtualAddress::Mark { .. } => None,
            }));
        }
        Ok(Self { own, without_server })
    }
}

/// Returns the local addresses in `fib_trie`, which lists each address before its routes.
fn own_v4(text: &str) -> BTreeSet<IpAddr> {
    let mut own = BTreeSet::new();
    let mut latest: Option<IpAddr> = None;
    for line in text.lines().map(str::trim) {
        if let Some(leaf) = line.strip_prefix("|-- ") {
            latest = leaf.parse().ok();
        } else if line == "/32 host LOCAL" {
            own.extend(latest);
        }
    }
    own
}

/// Returns the address of a line such as `fe80…01 02 40 20 80 eth0`, which begins with its 32
/// digits.
fn own_v6(line: &str) -> Option<IpAddr> {
    let bits = u128::from_str_radix(line.split(' ').next()?, 16).ok()?;
    Some(Ipv6Addr::from_bits(bits).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_addresses_are_read() {
        let text = "Main:\n  +-- 0.0.0.0/0 3 0 5\n     |-- 0.0.0.0\n        /0 universe UNICAST\n\
                    Local:\n     |-- 10.0.0.11\n        /32 host LOCAL\n     |-- 10.0.0.255\n\
                    \x20       /32 link BROADCAST\n";
        assert_eq!(own_v4(text), BTreeSet::from(["10.0.0.11".parse().unwrap()]));
        let line = "fd000000000000000000000000000001 02 40 00 80 eth0";
        assert_eq!(own_v6(line), "fd00::1".parse().ok());
        assert_eq!(own_v6(""), None);
    }
}
