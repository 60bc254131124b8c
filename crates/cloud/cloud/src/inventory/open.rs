//! An inventory that has every resource with a well-formed id. Ids of instances encode their
//! addresses.

use std::net::{IpAddr, Ipv4Addr};

use ipnet::{IpNet, Ipv4Net, Ipv6Net};

use super::{Instance, Network, Subnet};
use crate::ids::base_36;

/// The network of a load balancer whose request names none.
pub(super) const DEFAULT_NETWORK: &str = "vpc-00000000";

/// Returns whether a text has the form of a region: `ap-guangzhou`, `na-siliconvalley-2`.
pub(super) fn is_region(text: &str) -> bool {
    let is_word = |part: &str| {
        !part.is_empty()
            && part.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
    };
    text.contains('-') && text.len() <= 64 && text.split('-').all(is_word)
}

/// Returns whether a text is an id with this prefix: `vpc-3z1e9f2a`.
pub(super) fn is_id(text: &str, prefix: &str) -> bool {
    let rest = text.strip_prefix(prefix).and_then(|rest| rest.strip_prefix('-'));
    rest.is_some_and(|rest| {
        (1..=32).contains(&rest.len()) && rest.bytes().all(|byte| byte.is_ascii_alphanumeric())
    })
}

/// Returns the ranges of public addresses: the first half of the range for benchmarks, and a part
/// of the range for documentation.
pub(super) fn public_addresses() -> [IpNet; 2] {
    [v4(Ipv4Addr::new(198, 18, 0, 0), 16), v6("2001:db8:1::")]
}

/// Returns the ranges of private addresses: the second half of the range for benchmarks, and a part
/// of the range for documentation.
pub(super) fn private_addresses() -> [IpNet; 2] {
    [v4(Ipv4Addr::new(198, 19, 0, 0), 16), v6("2001:db8:2::")]
}

fn v4(address: Ipv4Addr, prefix: u8) -> IpNet {
    IpNet::V4(Ipv4Net::new_assert(address, prefix))
}

fn v6(address: &str) -> IpNet {
    IpNet::V6(Ipv6Net::new_assert(address.parse().expect("an address that is written here"), 64))
}

/// Returns the network with this id. Its addresses are those of private load balancers, because
/// this inventory assigns no others in it.
pub(super) fn network(id: &str) -> Option<Network> {
    let [addresses, _] = private_addresses();
    let network = || Network { id: id.to_owned(), addresses, subnets: Vec::new() };
    is_id(id, "vpc").then(network)
}

/// Returns the subnet with this id, in the region's first zone.
pub(super) fn subnet(id: &str, region: &str) -> Option<Subnet> {
    let [addresses, _] = private_addresses();
    let subnet = || Subnet { id: id.to_owned(), addresses, zone: Some(format!("{region}-1")) };
    is_id(id, "subnet").then(subnet)
}

/// Returns the instance with this id, whose eight letters and digits are its address in base 36.
pub(super) fn instance(id: &str) -> Option<Instance> {
    let digits = id.strip_prefix("ins-").filter(|digits| digits.len() == 8)?;
    let number = u64::from_str_radix(digits, 36).ok()?;
    let address = Ipv4Addr::from(u32::try_from(number).ok()?);
    let instance = instance_at(address.into())?;
    // A capital letter is the same digit, but makes another id.
    (instance.id == id).then_some(instance)
}

/// Returns the instance that has this address.
pub(super) fn instance_at(address: IpAddr) -> Option<Instance> {
    let IpAddr::V4(v4) = address else { return None };
    Some(Instance {
        id: format!("ins-{}", base_36(u32::from(v4).into(), 8)),
        name: format!("instance-{}", v4.to_string().replace('.', "-")),
        private_addresses: vec![address],
        public_addresses: Vec::new(),
        network: DEFAULT_NETWORK.to_owned(),
        zone: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_instances_id_is_its_address() {
        for address in ["10.0.0.1", "0.0.0.0", "255.255.255.255"] {
            let address: IpAddr = address.parse().unwrap();
            let at = instance_at(address).unwrap();
            assert_eq!(instance(&at.id), Some(at));
        }
        assert_eq!(instance("ins-zzzzzzzz"), None, "more than an address");
        assert_eq!(instance("ins-0000000A"), None);
        assert_eq!(instance("ins-0"), None);
    }

    #[test]
    fn ids_and_regions_have_a_form() {
        assert!(is_id("vpc-3z1e9f2a", "vpc") && !is_id("vpc-", "vpc") && !is_id("vpcx-1", "vpc"));
        assert!(is_region("ap-guangzhou") && is_region("na-siliconvalley-2"));
        assert!(!is_region("AP-guangzhou") && !is_region("guangzhou") && !is_region("ap-"));
    }
}
