//! Names of network interfaces. They occur in the output of every tool of a node, and in settings
//! of kube-proxy: a name has the same replacement everywhere.

use crate::names::Names;
use crate::text::{NAMES, redact};

/// The names that programs use on every node.
const WHOLE: [&str; 46] = [
    "lo",
    "docker0",
    "podman0",
    "virbr0",
    "lxdbr0",
    "cni0",
    "cbr0",
    "flannel.1",
    "flannel-v6.1",
    "flannel-wg",
    "kube-ipvs0",
    "kube-bridge",
    "kube-dummy-if",
    "nodelocaldns",
    "tunl0",
    "vxlan.calico",
    "vxlan-v6.calico",
    "wireguard.cali",
    "wg-v6.cali",
    "bpfin.cali",
    "bpfout.cali",
    "cilium_host",
    "cilium_net",
    "cilium_vxlan",
    "cilium_geneve",
    "cilium_wg0",
    "lxc_health",
    "weave",
    "datapath",
    "vxlan-6784",
    "vethwe-bridge",
    "vethwe-datapath",
    "antrea-gw0",
    "antrea-tun0",
    "genev_sys_6081",
    "vxlan_sys_4789",
    "ovs-system",
    "br-int",
    "br-ex",
    "ovn-k8s-mp0",
    "tailscale0",
    "ip6tnl0",
    "gre0",
    "gretap0",
    "erspan0",
    "sit0",
];

/// The prefixes of names that end in a small number.
const NUMBERED: [&str; 12] =
    ["eth", "ens", "eno", "bond", "dummy", "tun", "tap", "tunl", "wlan", "sit", "gre", "if"];
/// The prefixes of names that end in a hash.
const HASHED: [&str; 10] =
    ["cali", "veth", "lxc", "eni", "azv", "gke", "vnet", "nic", "tapcali", "br-"];

/// Returns the replacement of an interface's name. Rules may name all interfaces with a common
/// prefix (`cali+`, `"veth*"`), and `ip` a label or a VLAN (`eth0:1`, `eth0.100`).
pub(crate) fn link(text: &str, names: &mut Names) -> String {
    if WHOLE.contains(&text) {
        return text.to_owned();
    }
    if let Some(begins) = text.strip_suffix(['+', '*']) {
        let is_known = begins.is_empty()
            || NUMBERED.contains(&begins)
            || HASHED.contains(&begins)
            || WHOLE.iter().any(|whole| whole.starts_with(begins));
        let wildcard = &text[begins.len()..];
        return if is_known {
            text.to_owned()
        } else {
            format!("{}{wildcard}", link(begins, names))
        };
    }
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|own| own.is_ascii_digit());
    for separator in ['.', '/', ':'] {
        if let Some((own, number)) = text.rsplit_once(separator).filter(|(_, end)| is_number(end)) {
            return format!("{}{separator}{number}", link(own, names));
        }
    }
    if let Some(hash) = text.strip_prefix("br-").filter(|hash| is_hash(hash)) {
        return format!("br-{}", names.word(hash));
    }
    redact(text, names, NAMES)
}

/// Returns the replacement of a word that is the name of an interface whose prefix shows the
/// program that made it.
pub(crate) fn of_word(word: &str, names: &mut Names) -> Option<String> {
    let is_numbered = NUMBERED.iter().any(|begins| {
        word.strip_prefix(begins).is_some_and(|rest| {
            (1..=3).contains(&rest.len()) && rest.bytes().all(|byte| byte.is_ascii_digit())
        })
    });
    if is_numbered {
        return Some(word.to_owned());
    }
    let (begins, rest) =
        HASHED.iter().find_map(|begins| Some((begins, word.strip_prefix(begins)?)))?;
    is_hash(rest).then(|| format!("{begins}{}", names.word(rest)))
}

fn is_hash(text: &str) -> bool {
    text.len() >= 6 && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}
