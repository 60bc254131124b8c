//! The namespaces of a lab, with their roles and their listening sockets.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use crate::LabNamespace;
use crate::linux::build::lab_cluster::LabCluster;
use crate::linux::kernel::namespace::Namespace;

/// A function that converts a link's name to a file's name.
pub(super) type FileName = Box<dyn Fn(&str) -> String + Send>;

/// A namespace, its role, and the naming of its links' capture files.
pub(crate) struct Place<'a> {
    pub(crate) space: &'a Namespace,
    pub(crate) what: String,
    pub(super) file: FileName,
}

/// Returns all namespaces of a lab, the fabric first.
pub(crate) fn places(lab_cluster: &LabCluster) -> Vec<Place<'_>> {
    let nodes: Vec<String> = lab_cluster.nodes.keys().map(ToString::to_string).collect();
    // Links of the fabric are named after the number of their node.
    let of_fabric = move |link: &str| {
        let node = |letter, end| {
            let number: usize = link.strip_prefix(letter)?.parse().ok()?;
            nodes.get(number).map(|name| format!("fabric-{name}{end}"))
        };
        node("n", "").or_else(|| node("e", "-eth1")).unwrap_or_else(|| format!("fabric-{link}"))
    };
    let fabric =
        Place { space: &lab_cluster.fabric, what: "fabric".into(), file: Box::new(of_fabric) };
    let mut all = vec![fabric];
    if let Some(edge) = &lab_cluster.edge {
        all.push(place(&edge.space, "edge".into(), "edge".into()));
        for (number, (address, space)) in edge.clients.iter().enumerate() {
            let what = address.map_or_else(|| "outside".into(), |ip| format!("outside/{ip}"));
            all.push(only_link(space, what, format!("outside-{number}")));
        }
    }
    for (name, space) in &lab_cluster.nodes {
        all.push(place(space, format!("node {name}"), name.to_string()));
    }
    for (name, space) in &lab_cluster.pods {
        let file = format!("pod-{}-{}", name.namespace, name.name);
        all.push(only_link(space, format!("pod {name}"), file));
    }
    all
}

fn place(space: &Namespace, what: String, file: String) -> Place<'_> {
    Place { space, what, file: Box::new(move |link| format!("{file}-{link}")) }
}

/// Returns a place without links other than `eth0` and the loopback.
fn only_link(space: &Namespace, what: String, file: String) -> Place<'_> {
    let name = move |link: &str| match link {
        "eth0" => file.clone(),
        other => format!("{file}-{other}"),
    };
    Place { space, what, file: Box::new(name) }
}

/// Lists the namespaces with their listening sockets.
pub(crate) fn lab_namespaces(lab_cluster: &LabCluster) -> io::Result<Vec<LabNamespace>> {
    let inside = |place: Place<'_>| {
        let listens = place.space.run(|| Ok(listens()))?;
        Ok(LabNamespace { namespace: place.space.name().to_owned(), what: place.what, listens })
    };
    places(lab_cluster).into_iter().map(inside).collect()
}

/// Returns the listening sockets in the calling thread's namespace.
fn listens() -> Vec<String> {
    let mut all = BTreeSet::new();
    for (protocol, state) in [("tcp", "0A"), ("tcp6", "0A"), ("udp", "07"), ("udp6", "07")] {
        // A kernel without IPv6 has no such file.
        let text = fs::read_to_string(format!("/proc/thread-self/net/{protocol}"));
        for line in text.unwrap_or_default().lines().skip(1) {
            let fields: Vec<&str> = line.split_whitespace().collect();
            if let [_, local, _, its, ..] = fields[..]
                && its == state
                && let Some(address) = address(local)
            {
                all.insert((protocol.trim_end_matches('6'), address));
            }
        }
    }
    all.into_iter().map(|(protocol, address)| format!("{protocol} {address}")).collect()
}

/// Parses an address such as `0100007F:0050`: words in the machine's own order, then the port.
fn address(text: &str) -> Option<SocketAddr> {
    let (ip, port) = text.split_once(':')?;
    let words: Vec<[u8; 4]> = (0..ip.len() / 8)
        .map(|at| u32::from_str_radix(&ip[at * 8..at * 8 + 8], 16).ok().map(u32::to_ne_bytes))
        .collect::<Option<_>>()?;
    let ip = match words[..] {
        [word] => IpAddr::V4(Ipv4Addr::from(word)),
        _ => IpAddr::V6(Ipv6Addr::from(<[u8; 16]>::try_from(words.concat()).ok()?)),
    };
    Some(SocketAddr::new(ip, u16::from_str_radix(port, 16).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_the_kernel_are_read() {
        let word = format!("{:08X}:0050", u32::from_ne_bytes([127, 0, 0, 1]));
        assert_eq!(address(&word), "127.0.0.1:80".parse().ok());
        assert_eq!(address(&format!("{}:0035", "0".repeat(32))), "[::]:53".parse().ok());
        assert_eq!(address("x"), None);
    }
}
