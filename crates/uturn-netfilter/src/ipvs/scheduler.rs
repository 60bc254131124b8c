//! How often each real server is picked.

use super::{RealServer, VirtualServer};

/// How a scheduler picks, as far as that can be said beforehand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Picks {
    /// In turns.
    Turns,
    /// By the connections that real servers have at the time.
    ByLoad,
    /// Always the same one for a client.
    ByClient,
    /// Always the same one for a destination.
    ByDestination,
    /// Always the one of the greatest weight.
    First,
    /// Nobody knows this scheduler.
    Unknown,
}

impl VirtualServer {
    /// The real servers that can get a new connection, with their odds.
    pub(crate) fn odds(&self) -> (Picks, Vec<(usize, f64)>) {
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
            return (picks, best.map(|(at, _)| (*at, 1.0)).into_iter().collect());
        }
        let part = |real: &RealServer| if weighted { f64::from(real.weight) } else { 1.0 };
        let whole: f64 = able.iter().map(|(_, real)| part(real)).sum();
        (picks, able.into_iter().map(|(at, real)| (at, part(real) / whole)).collect())
    }
}
