//! The index key of an nftables rule, so that long chains without a map use the same index as
//! iptables chains.

use super::super::index::{Key, are_few};
use super::Rule;
use super::value::{Field, Op, Test, Value};
use crate::iptables::PortRange;
use crate::packet::IpProtocol;

/// The most selective condition at the start of a rule. Only conditions without side effects may
/// come before it, since an indexed rule is skipped without being evaluated.
pub(super) fn key(rule: &Rule) -> Key {
    let mut best = Key::None;
    for op in &rule.ops {
        let Op::Test { left, test: Test::Within { not, first, last }, .. } = op else { break };
        let [Value::Field(field)] = &left[..] else { break };
        // The result may depend on something that is not modelled.
        if matches!(field, Field::Fib(_) | Field::CtStatus) {
            break;
        }
        if *not {
            continue;
        }
        let found = match field {
            Field::Destination { v6 } => {
                network(*v6, *first, *last).map(|(length, bits)| Key::Destination(length, bits))
            }
            Field::Source { v6 } => {
                network(*v6, *first, *last).map(|(length, bits)| Key::Source(length, bits))
            }
            Field::DestinationPort(Some(protocol)) => ports(*protocol, *first, *last),
            _ => None,
        };
        if let Some(found) = found.filter(|found| rank(found) > rank(&best)) {
            best = found;
        }
    }
    best
}

fn rank(key: &Key) -> u8 {
    match key {
        Key::Endpoint(..) => 5,
        Key::Destination(32.., _) => 4,
        Key::Ports(..) => 3,
        Key::Destination(..) => 2,
        Key::Source(..) => 1,
        Key::None | Key::Inert => 0,
    }
}

/// A range of addresses as a network, if it is one.
fn network(v6: bool, first: u128, last: u128) -> Option<(u8, u128)> {
    let width: u32 = if v6 { 128 } else { 32 };
    let free = last.checked_sub(first)?;
    let open = 128 - free.leading_zeros();
    let whole = free.trailing_ones() == open && first.trailing_zeros() >= open;
    // A network of all addresses selects nothing.
    (whole && open < width).then(|| ((width - open) as u8, first >> open))
}

fn ports(protocol: u8, first: u128, last: u128) -> Option<Key> {
    let (first, last) = (u16::try_from(first).ok()?, u16::try_from(last).ok()?);
    let ranges = vec![PortRange { first, last }];
    (first <= last && are_few(&ranges)).then_some(Key::Ports(IpProtocol(protocol), ranges))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_that_are_networks() {
        assert_eq!(network(false, 0x0a000000, 0x0a0000ff), Some((24, 0x0a0000)));
        assert_eq!(network(false, 7, 7), Some((32, 7)));
        assert_eq!(network(true, 7, 7), Some((128, 7)));
        assert_eq!(network(false, 0, 0xffff_ffff), None);
        assert_eq!(network(true, 0, u128::MAX), None);
        assert_eq!(network(false, 1, 2), None);
        assert_eq!(network(false, 2, 1), None);
        assert_eq!(network(true, 0, u128::MAX >> 1), Some((1, 0)));
    }
}
