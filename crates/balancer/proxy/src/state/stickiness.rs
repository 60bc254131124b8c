//! Remembers which target a client stays with.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use uturn_lb::hash::fnv1a;

use crate::lock::locked;

/// The number of clients that are remembered. Further clients get targets as if there were no
/// stickiness.
const MAX: usize = 200_000;

/// The targets that clients had, by the clients' addresses.
#[derive(Debug, Default)]
pub(super) struct Remembered(Mutex<HashMap<IpAddr, (SocketAddr, Instant)>>);

impl Remembered {
    /// Returns the target that a client had, unless its time is over.
    pub(super) fn get(&self, client: IpAddr, now: Instant) -> Option<SocketAddr> {
        let all = locked(&self.0);
        all.get(&client).filter(|(_, until)| now < *until).map(|(target, _)| *target)
    }

    /// Records that a client has a target, and stays with it for a time.
    pub(super) fn set(&self, client: IpAddr, target: SocketAddr, time: Duration, now: Instant) {
        let mut all = locked(&self.0);
        if all.len() >= MAX && !all.contains_key(&client) {
            all.retain(|_, (_, until)| now < *until);
            if all.len() >= MAX {
                return;
            }
        }
        all.insert(client, (target, now + time));
    }
}

/// Returns the cookie value for a target: the same in every process, and not the address.
pub(super) fn cookie_value(target: SocketAddr) -> String {
    format!("{:016x}", fnv1a(target.to_string().as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_is_remembered_for_its_time() {
        let remembered = Remembered::default();
        let (client, target) = ("10.1.1.10".parse().unwrap(), "10.0.0.11:80".parse().unwrap());
        let begin = Instant::now();
        let at = |seconds| begin + Duration::from_secs(seconds);
        remembered.set(client, target, Duration::from_secs(10), begin);
        assert_eq!(remembered.get(client, at(9)), Some(target));
        remembered.set(client, target, Duration::from_secs(10), at(9));
        assert_eq!(remembered.get(client, at(18)), Some(target));
        assert_eq!(remembered.get(client, at(19)), None);
        assert_eq!(remembered.get("10.1.1.11".parse().unwrap(), begin), None);
    }

    #[test]
    fn targets_have_cookies_of_their_own() {
        let value = |target: &str| cookie_value(target.parse().unwrap());
        assert_eq!(value("10.0.0.11:80").len(), 16);
        assert_ne!(value("10.0.0.11:80"), value("10.0.0.12:80"));
    }
}
