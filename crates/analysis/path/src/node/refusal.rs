//! What a client gets to see of a packet that was refused on its way.
//!
//! The kernel that refuses says why in an ICMP message, and the client's kernel makes an error
//! of it: any for a connection that is being made, for a datagram only those that it takes for
//! final.

use uturn_model::{Family, Outcome};
use uturn_netfilter::{DropReason, IpProtocol, RejectWith};

/// How a packet ends that a rule rejects.
pub(crate) fn of_reject(how: RejectWith, protocol: IpProtocol) -> Outcome {
    match how {
        RejectWith::TcpReset
        | RejectWith::IcmpPortUnreachable
        | RejectWith::Icmp6PortUnreachable => Outcome::Refused,
        RejectWith::IcmpNetUnreachable
        | RejectWith::IcmpHostUnreachable
        | RejectWith::Icmp6NoRoute
        | RejectWith::Icmp6AddrUnreachable => passing(protocol),
        RejectWith::IcmpProtoUnreachable
        | RejectWith::IcmpNetProhibited
        | RejectWith::IcmpHostProhibited
        | RejectWith::IcmpAdminProhibited
        | RejectWith::Icmp6AdmProhibited
        | RejectWith::Icmp6PolicyFail
        | RejectWith::Icmp6RejectRoute => Outcome::Unreachable,
    }
}

/// How a dropped packet ends for its sender, if the sender gets an error.
pub(crate) fn of_drop(reason: &DropReason, protocol: IpProtocol) -> Option<Outcome> {
    match reason {
        DropReason::NoRoute | DropReason::Unreachable => Some(passing(protocol)),
        DropReason::Prohibited => Some(Outcome::Unreachable),
        _ => None,
    }
}

/// The ICMP error that a node sends for a packet that it drops so.
pub(crate) fn notice_of_drop(reason: &DropReason, family: Family) -> Option<RejectWith> {
    Some(match (reason, family) {
        (DropReason::NoRoute, Family::V4) => RejectWith::IcmpNetUnreachable,
        (DropReason::NoRoute, Family::V6) => RejectWith::Icmp6NoRoute,
        (DropReason::Unreachable, Family::V4) => RejectWith::IcmpHostUnreachable,
        (DropReason::Unreachable, Family::V6) => RejectWith::Icmp6AddrUnreachable,
        (DropReason::Prohibited, Family::V4) => RejectWith::IcmpAdminProhibited,
        (DropReason::Prohibited, Family::V6) => RejectWith::Icmp6AdmProhibited,
        _ => return None,
    })
}

/// How a packet ends that its sender's own kernel has no route for: the sender gets an error at once.
pub(crate) fn of_unsent(reason: &DropReason) -> Option<Outcome> {
    let is_error = matches!(
        reason,
        DropReason::NoRoute
            | DropReason::Unreachable
            | DropReason::Prohibited
            | DropReason::Blackhole
    );
    is_error.then_some(Outcome::Unreachable)
}

/// There is no way now, which may pass: a datagram's sender gets no error.
fn passing(protocol: IpProtocol) -> Outcome {
    if protocol == IpProtocol::UDP { Outcome::Hangs } else { Outcome::Unreachable }
}
