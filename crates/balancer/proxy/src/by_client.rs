//! The number of connections of each client.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex};

use uturn_model::client_network;

use crate::lock::locked;

/// The number of connections, by client.
#[derive(Debug, Default)]
pub(crate) struct ByClient(Mutex<HashMap<IpAddr, usize>>);

/// A connection that counts as its client's until this is dropped.
#[derive(Debug)]
pub(crate) struct Counted {
    counts: Arc<ByClient>,
    client: IpAddr,
}

impl ByClient {
    /// Counts another connection of a client. Returns `None` if the client already has `most`.
    pub(crate) fn count(self: &Arc<Self>, client: IpAddr, most: usize) -> Option<Counted> {
        let client = client_network(client);
        let mut counts = locked(&self.0);
        let count = counts.get(&client).copied().unwrap_or(0);
        if count >= most {
            return None;
        }
        counts.insert(client, count + 1);
        Some(Counted { counts: Arc::clone(self), client })
    }
}

impl Counted {
    /// Returns whether an address belongs to the same client.
    pub(crate) fn is_of(&self, client: IpAddr) -> bool {
        self.client == client_network(client)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        let mut counts = locked(&self.counts.0);
        if let Some(count) = counts.get_mut(&self.client) {
            *count -= 1;
            if *count == 0 {
                counts.remove(&self.client);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ipv6_client_is_its_network() {
        let counts = Arc::new(ByClient::default());
        let counted = counts.count("2001:db8::1".parse().unwrap(), 1).unwrap();
        let (same, other) = ("2001:db8::2".parse().unwrap(), "2001:db8:0:1::1".parse().unwrap());
        assert!(counted.is_of(same) && counts.count(same, 1).is_none());
        assert!(!counted.is_of(other) && counts.count(other, 1).is_some());
    }

    #[test]
    fn clients_without_connections_take_no_memory() {
        let counts = Arc::new(ByClient::default());
        let client = "192.0.2.1".parse().unwrap();
        let both = [counts.count(client, 2).unwrap(), counts.count(client, 2).unwrap()];
        assert!(counts.count(client, 2).is_none());
        drop(both);
        assert!(locked(&counts.0).is_empty());
    }
}
