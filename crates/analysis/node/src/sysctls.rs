//! The sysctls that affect the path of packets.

use crate::machine::{Machine, ToolFailure};

const ROOT: &str = "/proc/sys/net";

/// The sysctls that a machine has once, by folder. A name that ends in `*` stands for all names
/// with that prefix.
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

/// The sysctls that each interface has, by folder.
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

/// Reads the sysctls in the format of `sysctl -a`. Those that cannot be read are left out.
///
/// # Errors
/// Returns an error if the machine cannot be reached.
pub(crate) fn read(machine: &impl Machine) -> Result<String, ToolFailure> {
    let of = |folder: &str, names: &[&str]| -> Vec<String> {
        names.iter().map(|name| format!("{ROOT}/{folder}/{name}")).collect()
    };
    let common = COMMON.iter().flat_map(|(folder, names)| of(folder, names));
    let of_interfaces =
        OF_INTERFACES.iter().flat_map(|(folder, names)| of(&format!("{folder}/*"), names));
    let patterns: Vec<String> = common.chain(of_interfaces).collect();
    let mut text = String::new();
    for (path, value) in machine.values(&patterns)? {
        let key = path.strip_prefix("/proc/sys/").unwrap_or(&path);
        // A dot in the name of an interface is written as a slash, as sysctl does.
        let key = key.replace('.', "\0").replace('/', ".").replace('\0', "/");
        text.push_str(&format!("{key} = {}\n", value.trim_end()));
    }
    Ok(text)
}
