//! How a client learns that its packet was refused on the way.
//!
//! The refusing kernel sends the reason in an ICMP message, and the client's kernel turns it into
//! an error: any message for a connection that is being made, for a datagram only those that are
//! final.

use uturn_model::{Family, Outcome};
use uturn_netfilter::{DropReason, IpProtocol, RejectWith};

/// Returns the outcome of a packet that a rule rejects.
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

/// Returns the outcome for the sender of a dropped packet, if the sender gets an error.
pub(crate) fn of_drop(reason: &DropReason, protocol: IpProtocol) -> Option<Outcome> {
    match reason {
        DropReason::NoRoute | DropReason::Unreachable => Some(passing(protocol)),
        DropReason::Prohibited => Some(Outcome::Unreachable),
        _ => None,
    }
}

/// Returns the ICMP error that a node sends for a packet dropped for this reason.
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

/// Returns the outcome of a packet for which the sender's own kernel has no route: the sender gets
/// an error at once.
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

/// Returns the outcome of a lack of a route that may be temporary: a datagram's sender gets no
/// error.
fn passing(protocol: IpProtocol) -> Outcome {
    if protocol == IpProtocol::UDP { Outcome::Hangs } else { Outcome::Unreachable }
}
