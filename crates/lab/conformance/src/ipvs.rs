//! The kernel state of IPVS mode besides rules, as blocks of lines.
//!
//! Sets and virtual servers are compared without order, since kube-proxy processes Services in no
//! particular order.

use std::net::IpAddr;

use uturn_kubeproxy::Program;
use uturn_model::{Cluster, Family, Name};
use uturn_netfilter::{Interface, addr};

use crate::blocks::{self, Blocks};
use crate::dump::Dump;
use crate::fault::{During as _, Fault, Outcome};
use crate::workspace::Namespace;

/// The device that all addresses of Services are bound to.
const DEVICE: &str = "kube-ipvs0";

/// Prefixes of lines that are not from `iptables-save`.
const SET: &str = "ipset ";
const SERVER: &str = "ipvs ";
const BOUND: &str = "bound ";
const SWITCH: &str = "sysctl ";

/// Adds kube-proxy's state in a namespace to a dump.
pub(crate) fn take(namespace: &Namespace, dump: &mut Dump) -> Outcome<()> {
    dump.iptables = namespace.output(&["iptables-save"])?;
    dump.ip6tables = namespace.output(&["ip6tables-save"])?;
    dump.ipset = namespace.output(&["ipset", "save"])?;
    dump.ipvs = namespace.output(&["ipvsadm", "-Sn"])?;
    Ok(())
}

/// Returns whether these addresses are bound.
pub(crate) fn shows(namespace: &Namespace, addresses: &[String; 2]) -> Outcome<bool> {
    // The device does not exist before the first sync.
    let shown = namespace.output(&["ip", "addr", "show", "dev", DEVICE]).unwrap_or_default();
    Ok(addresses.iter().all(|address| shown.contains(&format!(" {address}/"))))
}

/// Returns the state of a family, as one text.
pub(crate) fn rules(dump: &Dump, family: Family) -> String {
    let saved = match family {
        Family::V4 => &dump.iptables,
        Family::V6 => &dump.ip6tables,
    };
    let sets =
        dump.ipset.lines().filter(|line| (family == Family::V6) == line.contains(" KUBE-6-"));
    let servers = dump.ipvs.lines().filter(|line| (family == Family::V6) == line.contains(" ["));
    let addresses = bound(&dump.addresses, family);
    let switches = dump.sysctls.lines().filter_map(|line| line.split_once(" = "));
    written(saved, sets, servers, addresses.into_iter(), switches)
}

/// Returns both sides as comparable blocks.
pub(crate) fn blocks(ours: &Program, theirs: &str) -> (Blocks, Blocks) {
    let switches = ours.sysctls.iter().map(|(key, value)| (key.as_str(), value.as_str()));
    let bound = ours.bound.iter().map(ToString::to_string);
    let (sets, servers) = (ours.ipset.lines(), ours.ipvs.lines());
    let ours = taken_apart(&written(&ours.iptables, sets, servers, bound, switches));
    let mut theirs = taken_apart(theirs);
    // The kernel has many other sysctls.
    theirs.retain(|name, _| !name.starts_with(SWITCH) || ours.contains_key(name));
    (ours, theirs)
}

/// Adds the node's addresses and kernel version to the cluster: kube-proxy reads both from the
/// kernel, and objects do not have them.
pub(crate) fn informed(cluster: &Cluster, node: &str, dump: &Dump) -> Outcome<Cluster> {
    let mut cluster = cluster.clone();
    let name = Name::new(node).map_err(|_| Fault::new(format!("{node} is not a valid name")))?;
    let Some(node) = cluster.nodes.get_mut(&name) else { return Ok(cluster) };
    let own = interfaces(&dump.addresses)?;
    let all = own.iter().filter(|interface| !["lo", DEVICE].contains(&&*interface.name));
    for (address, _) in all.flat_map(|interface| &interface.addresses) {
        let is_of_link = matches!(address, IpAddr::V6(ip) if ip.is_unicast_link_local());
        if !is_of_link && !node.internal_ips.contains(address) {
            node.internal_ips.push(*address);
        }
    }
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease");
    node.kernel = Some(release.during("the kernel's release")?.trim().into());
    Ok(cluster)
}

fn written<'t>(
    saved: &str,
    sets: impl Iterator<Item = &'t str>,
    servers: impl Iterator<Item = &'t str>,
    bound: impl Iterator<Item = String>,
    switches: impl Iterator<Item = (&'t str, &'t str)>,
) -> String {
    let mut text = saved.to_owned();
    sets.for_each(|line| text += &format!("{SET}{line}\n"));
    servers.for_each(|line| text += &format!("{SERVER}{line}\n"));
    bound.for_each(|address| text += &format!("{BOUND}{address}\n"));
    switches.for_each(|(key, value)| text += &format!("{SWITCH}{key} {value}\n"));
    text
}

fn taken_apart(text: &str) -> Blocks {
    let mut blocks = blocks::iptables(text);
    for line in text.lines() {
        let (name, line) = if let Some(line) = line.strip_prefix(SET) {
            let name = line.split(' ').nth(1).unwrap_or(line);
            // Each set has a random seed, which is left out.
            (format!("{SET}{name}"), line.split(" initval ").next().unwrap_or(line))
        } else if let Some(line) = line.strip_prefix(SERVER) {
            let words: Vec<&str> = line.split(' ').skip(1).take(2).collect();
            (format!("{SERVER}{}", words.join(" ")), line)
        } else if let Some(address) = line.strip_prefix(BOUND) {
            (DEVICE.to_owned(), address)
        } else if let Some((key, value)) =
            line.strip_prefix(SWITCH).and_then(|rest| rest.split_once(' '))
        {
            (format!("{SWITCH}{key}"), value)
        } else {
            continue;
        };
        blocks.entry(name).or_default().push(line.to_owned());
    }
    for (name, lines) in &mut blocks {
        if [SET, SERVER, DEVICE].iter().any(|kind| name.starts_with(kind)) {
            lines.sort();
        }
    }
    blocks
}

fn bound(addresses: &str, family: Family) -> Vec<String> {
    let own = interfaces(addresses).unwrap_or_default();
    let device = own.iter().filter(|interface| &*interface.name == DEVICE);
    let all = device.flat_map(|interface| &interface.addresses).map(|(address, _)| address);
    all.filter(|address| Family::of(**address) == family)
        .filter(|address| !matches!(address, IpAddr::V6(ip) if ip.is_unicast_link_local()))
        .map(ToString::to_string)
        .collect()
}

fn interfaces(addresses: &str) -> Outcome<Vec<Interface>> {
    addr::parse("addr", addresses).map_err(|errors| {
        let lines: Vec<String> = errors.iter().map(ToString::to_string).collect();
        Fault::new(lines.join("\n"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dump_is_taken_apart_by_family_and_kind() {
        let dump = Dump {
            iptables: "*nat\n:A - [0:0]\n-A A -j B\nCOMMIT\n".into(),
            ipset: "create KUBE-X hash:ip family inet initval 0x1\nadd KUBE-X 10.0.0.2\n\
                    add KUBE-X 10.0.0.1\ncreate KUBE-6-X hash:ip family inet6 initval 0x2\n"
                .into(),
            ipvs: "-A -t 10.0.0.1:80 -s rr\n-a -t 10.0.0.1:80 -r 10.1.0.2:8080 -m -w 1\n\
                   -A -t [fd00::1]:80 -s rr\n"
                .into(),
            addresses: "7: kube-ipvs0: <BROADCAST> mtu 1500\n    inet 10.0.0.1/32 scope global \
                        kube-ipvs0\n    inet6 fe80::1/64 scope link\n"
                .into(),
            sysctls: "net.ipv4.ip_forward = 1\n".into(),
            ..Dump::default()
        };
        let blocks = taken_apart(&rules(&dump, Family::V4));
        let names: Vec<&String> = blocks.keys().collect();
        let expected = [
            "ipset KUBE-X",
            "ipvs -t 10.0.0.1:80",
            "kube-ipvs0",
            "nat A",
            "sysctl net.ipv4.ip_forward",
        ];
        assert_eq!(names, expected);
        let set =
            ["add KUBE-X 10.0.0.1", "add KUBE-X 10.0.0.2", "create KUBE-X hash:ip family inet"];
        assert_eq!(blocks["ipset KUBE-X"], set);
        assert_eq!(blocks["ipvs -t 10.0.0.1:80"].len(), 2);
        assert_eq!(blocks["kube-ipvs0"], ["10.0.0.1"]);
        let other = taken_apart(&rules(&dump, Family::V6));
        assert!(other.contains_key("ipset KUBE-6-X") && other.contains_key("ipvs -t [fd00::1]:80"));
        assert!(!other.contains_key("kube-ipvs0"));
    }
}
