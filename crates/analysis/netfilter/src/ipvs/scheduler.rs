//! The distribution of connections by schedulers.

use super::{RealServer, VirtualServer};
use uturn_model::Share;

/// The way a scheduler picks a real server, as far as it can be predicted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Picks {
    /// Round robin.
    Turns,
    /// By the number of current connections.
    ByLoad,
    /// By a hash of the client's address.
    ByClient,
    /// By a hash of the destination.
    ByDestination,
    /// Always the real server with the greatest weight.
    First,
    /// The scheduler is not modelled.
    Unknown,
}

impl VirtualServer {
    /// The real servers that can receive a new connection, with their probabilities.
    pub(crate) fn odds(&self) -> (Picks, Vec<(usize, Share)>) {
        let (picks, weighted) = match &*self.scheduler {
            "rr" => (Picks::Turns, false),
            "wrr" => (Picks::Turns, true),
            "lc" => (Picks::ByLoad, false),
            "wlc" | "sed" | "nq" | "twos" => (Picks::ByLoad, true),
            "sh" | "mh" => (Picks::ByClient, true),
            "dh" => (Picks::ByDestination, false),
            "lblc" | "lblcr" => (Picks::ByDestination, true),
            "fo" | "ovf" => (Picks::First, false),
            _ => (Picks::Unknown, false),
        };
        let takes = |(_, real): &(usize, &RealServer)| real.weight > 0;
        let able: Vec<(usize, &RealServer)> =
            self.servers.iter().enumerate().filter(takes).collect();
        if picks == Picks::First {
            let best = able.iter().rev().max_by_key(|(_, real)| real.weight);
            return (picks, best.map(|(at, _)| (*at, Share::ALL)).into_iter().collect());
        }
        let part = |real: &RealServer| if weighted { f64::from(real.weight) } else { 1.0 };
        let whole: f64 = able.iter().map(|(_, real)| part(real)).sum();
        (picks, able.into_iter().map(|(at, real)| (at, Share::ratio(part(real), whole))).collect())
    }
}
