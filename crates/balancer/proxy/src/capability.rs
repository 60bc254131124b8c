//! The capabilities of the process, and messages that name a missing one.

use std::io;
use std::net::SocketAddr;

use rustix::thread::{
    CapabilitySet, capabilities, configure_capability_in_ambient_set, set_capabilities,
};

/// Ports below this one are privileged unless the system says otherwise.
const PRIVILEGED: u16 = 1024;

/// Takes the capabilities that this thread may have, and lets the programs that it starts have
/// `CAP_NET_ADMIN`, which nft needs. A process already has them if a service manager or root
/// started it, but not if they come from its file (setcap, as in a container without root).
pub fn take_capabilities() {
    let Ok(mut sets) = capabilities(None) else { return };
    sets.effective = sets.permitted;
    sets.inheritable |= sets.permitted & CapabilitySet::NET_ADMIN;
    // A refusal here is reported later, where the capability is missing.
    let taken = set_capabilities(None, sets);
    if taken.is_ok() && sets.permitted.contains(CapabilitySet::NET_ADMIN) {
        let _ = configure_capability_in_ambient_set(CapabilitySet::NET_ADMIN, true);
    }
}

/// Adds the missing requirement to an error, if it is a refusal.
pub(crate) fn needs(error: io::Error, what: &str) -> io::Error {
    match error.kind() {
        kind @ io::ErrorKind::PermissionDenied => io::Error::new(kind, format!("{error}: {what}")),
        _ => error,
    }
}

/// Adds the requirement for listening at an address to an error, if it is a refusal.
pub(crate) fn needs_to_listen(error: io::Error, address: SocketAddr) -> io::Error {
    match address.port() {
        0..PRIVILEGED => needs(error, "ports below 1024 need the capability CAP_NET_BIND_SERVICE"),
        _ => error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_refusal_is_explained() {
        let refused = || io::Error::from(io::ErrorKind::PermissionDenied);
        let port = |port| SocketAddr::from(([127, 0, 0, 1], port));
        let text = |error: io::Error| error.to_string();
        assert!(text(needs_to_listen(refused(), port(80))).contains("CAP_NET_BIND_SERVICE"));
        assert_eq!(text(needs_to_listen(refused(), port(8080))), text(refused()));
        let taken = io::Error::from(io::ErrorKind::AddrInUse);
        assert!(!text(needs(taken, "CAP")).contains("CAP"));
    }
}
