//! How many connections each client has.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::{Arc, Mutex};

use crate::lock::locked;

/// Counts connections by client.
#[derive(Debug, Default)]
pub(crate) struct ByClient(Mutex<HashMap<IpAddr, usize>>);

/// A connection that counts as its client's until this is dropped.
#[derive(Debug)]
pub(crate) struct Counted {
    counts: Arc<ByClient>,
    client: IpAddr,
}

impl ByClient {
    /// Counts another connection of a client. Returns `None` if it has as many as it may have.
    pub(crate) fn count(self: &Arc<Self>, client: IpAddr, most: usize) -> Option<Counted> {
        let client = counted_as(client);
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
    /// Whether another address is the same client's.
    pub(crate) fn is_of(&self, client: IpAddr) -> bool {
        self.client == counted_as(client)
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

/// What a client's connections are counted by: its address, or the first 64 bits of an IPv6
/// address, all others of which are the client's own to choose. IPv4 addresses inside of IPv6 ones,
/// mapped or from a translator, are counted as such.
fn counted_as(client: IpAddr) -> IpAddr {
    match client.to_canonical() {
        IpAddr::V4(v4) => v4.into(),
        IpAddr::V6(v6) => match v6.segments() {
            [0x64, 0xff9b, 0, 0, 0, 0, high, low] => {
                Ipv4Addr::from_bits(u32::from(high) << 16 | u32::from(low)).into()
            }
            [a, b, c, d, ..] => Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0).into(),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ipv6_client_is_its_network() {
        for (first, second, is_same) in [
            ("2001:db8::1", "2001:db8::2", true),
            ("2001:db8::1", "2001:db8::ffff:ffff:ffff:ffff", true),
            ("2001:db8::1", "2001:db8:0:1::1", false),
            ("192.0.2.1", "192.0.2.2", false),
            ("192.0.2.1", "::ffff:192.0.2.1", true),
            ("::ffff:192.0.2.1", "::ffff:192.0.2.2", false),
            ("64:ff9b::192.0.2.1", "64:ff9b::192.0.2.2", false),
            ("64:ff9b::192.0.2.1", "192.0.2.1", true),
        ] {
            let counts = Arc::new(ByClient::default());
            let counted = counts.count(first.parse().unwrap(), 1).unwrap();
            let second = second.parse().unwrap();
            assert_eq!(counts.count(second, 1).is_none(), is_same, "{first} {second}");
            assert_eq!(counted.is_of(second), is_same, "{first} {second}");
        }
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
