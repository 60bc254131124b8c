//! The sysctls that affect the path of packets.

use crate::machine::Machine;

const ROOT: &str = "/proc/sys/net";

/// Those that a machine has once, by folder. A name that ends in `*` stands for all that begin so.
const COMMON: [(&str, &[&str]); 7] = [
    (
        "ipv4",
        &[
            "ip_forward",
            "ip_local_port_range",
            "ip_local_reserved_ports",
            "ip_nonlocal_bind",
            "fib_multipath_hash_policy",
            "fwmark_reflect",
            "tcp_fwmark_accept",
        ],
    ),
    ("ipv6", &["bindv6only", "ip_nonlocal_bind", "fib_multipath_hash_policy"]),
    ("ipv6/conf/all", &["forwarding"]),
    ("bridge", &["bridge-nf-*"]),
    (
        "netfilter",
        &[
            "nf_conntrack_max",
            "nf_conntrack_count",
            "nf_conntrack_buckets",
            "nf_conntrack_tcp_*",
            "nf_conntrack_udp_*",
            "nf_conntrack_acct",
        ],
    ),
    ("ipv4/vs", &["*"]),
    ("core", &["somaxconn"]),
];

/// Those that each interface has.
const OF_INTERFACES: [(&str, &[&str]); 2] = [
    (
        "ipv4/conf",
        &[
            "accept_local",
            "arp_announce",
            "arp_ignore",
            "forwarding",
            "route_localnet",
            "rp_filter",
            "src_valid_mark",
        ],
    ),
    ("ipv6/conf", &["disable_ipv6", "forwarding"]),
];

/// The sysctls as `sysctl -a` prints them. Those that cannot be read are left out.
pub(crate) fn read(machine: &impl Machine) -> String {
    let mut text = String::new();
    let mut add = |folder: &str, name: &str| {
        if let Ok(value) = machine.read(&format!("{ROOT}/{folder}/{name}")) {
            let key = format!("net/{folder}/{name}");
            // A dot in the name of an interface is written as a slash, as sysctl does.
            let key = key.replace('.', "\0").replace('/', ".").replace('\0', "/");
            text.push_str(&format!("{key} = {}\n", value.trim_end()));
        }
    };
    for (folder, names) in COMMON {
        let there = machine.list(&format!("{ROOT}/{folder}"));
        let is_asked = |name: &&String| {
            names.iter().any(|asked| match asked.strip_suffix('*') {
                Some(start) => name.starts_with(start),
                None => name == asked,
            })
        };
        there.iter().filter(is_asked).for_each(|name| add(folder, name));
    }
    for (folder, names) in OF_INTERFACES {
        for interface in machine.list(&format!("{ROOT}/{folder}")) {
            names.iter().for_each(|name| add(&format!("{folder}/{interface}"), name));
        }
    }
    text
}
