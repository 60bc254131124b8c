//! Rules that the pod network adds to a node beside kube-proxy's.

use std::fmt::Write;

use uturn_model::{Family, IpNet, network::Network};

/// The chain that decides whether a pod's packet gets its node's address.
const CHAIN: &str = "POD-MASQUERADE";

/// What masquerades the packets that pods send beyond the ranges in which they are known, as
/// `iptables-restore --noflush` takes it; nothing where none is masqueraded.
///
/// Plugins masquerade IPv6 only where they are told to, which is not modelled.
pub fn masquerade(network: &Network, family: Family) -> Option<String> {
    let of = |nets: &[IpNet]| -> Vec<IpNet> {
        nets.iter().copied().filter(|net| Family::of(net.addr()) == family).collect()
    };
    let pods = of(&network.pod_cidrs.value);
    if !network.masquerades.value || pods.is_empty() || family == Family::V6 {
        return None;
    }
    let mut text = format!("*nat\n:{CHAIN} - [0:0]\n");
    for net in &pods {
        let _ = writeln!(text, "-A POSTROUTING -s {net} -j {CHAIN}");
    }
    let mut kept = of(&network.non_masquerade_cidrs.value);
    kept.sort_unstable();
    kept.dedup();
    for net in &kept {
        let _ = writeln!(text, "-A {CHAIN} -d {net} -j RETURN");
    }
    let _ = write!(text, "-A {CHAIN} -j MASQUERADE\nCOMMIT\n");
    Some(text)
}
