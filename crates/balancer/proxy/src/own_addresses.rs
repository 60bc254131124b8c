//! The addresses of this machine.

use std::net::IpAddr;

use nix::ifaddrs::getifaddrs;

/// Returns the current addresses of the interfaces in this network namespace. The list is empty if
/// the kernel does not report them.
pub fn own_addresses() -> Vec<IpAddr> {
    let Ok(interfaces) = getifaddrs() else { return Vec::new() };
    let address = |storage: nix::sys::socket::SockaddrStorage| -> Option<IpAddr> {
        let v4 = storage.as_sockaddr_in().map(|address| IpAddr::V4(address.ip()));
        v4.or_else(|| storage.as_sockaddr_in6().map(|address| IpAddr::V6(address.ip())))
    };
    interfaces.filter_map(|interface| interface.address.and_then(address)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loopback_address_is_one() {
        assert!(own_addresses().contains(&IpAddr::from([127, 0, 0, 1])));
    }
}
