//! Resolves a name as a pod's C library does: by `/etc/hosts`, then by `resolv.conf` with its
//! search list, with real queries to its servers.

use std::fmt::Write as _;
use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::time::Duration;

use uturn_dns::{Data, Question, Record, RecordType, wire};
use uturn_model::pod::DnsPolicy;
use uturn_model::{Family, Pod, Text};

/// The time limit for a server's answer.
const PATIENCE: Duration = Duration::from_secs(2);

/// The number of servers that the C library uses. Further ones are ignored.
const SERVERS: usize = 3;

/// The contents of `resolv.conf` and `/etc/hosts`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Resolver {
    servers: Vec<IpAddr>,
    search: Vec<String>,
    ndots: usize,
    hosts: Vec<(Text, IpAddr)>,
}

/// The settings that the resolvers of a cluster's pods share.
pub(crate) struct Settings<'a> {
    /// The server of pods with the policy `ClusterFirst`.
    pub(crate) cluster: IpAddr,
    /// The server of nodes.
    pub(crate) node: IpAddr,
    pub(crate) domain: &'a str,
}

impl Resolver {
    /// Returns the resolver of a node.
    pub(crate) fn of_node(settings: &Settings<'_>) -> Self {
        let servers = vec![settings.node];
        Self { servers, search: Vec::new(), ndots: 1, hosts: Vec::new() }
    }

    /// Returns the resolver that the kubelet configures for a pod.
    pub(crate) fn of_pod(settings: &Settings<'_>, pod: &Pod) -> Self {
        let spec = &pod.spec;
        let of_node = Self::of_node(settings);
        let mut made = match spec.dns_policy {
            DnsPolicy::None => Self { servers: Vec::new(), ..of_node },
            DnsPolicy::Default => of_node,
            DnsPolicy::ClusterFirst if spec.host_network => of_node,
            DnsPolicy::ClusterFirst | DnsPolicy::ClusterFirstWithHostNet => {
                let domain = settings.domain;
                let namespace = &pod.name.namespace;
                let search = vec![
                    format!("{namespace}.svc.{domain}"),
                    format!("svc.{domain}"),
                    domain.to_owned(),
                ];
                Self { servers: vec![settings.cluster], search, ndots: 5, ..of_node }
            }
        };
        made.servers.extend(&spec.dns_nameservers);
        made.servers.truncate(SERVERS);
        made.search.extend(spec.dns_searches.iter().map(ToString::to_string));
        made.ndots = spec.dns_ndots.map_or(made.ndots, usize::from);
        made.hosts = spec.host_aliases.clone();
        made
    }

    /// Returns the text of `resolv.conf`.
    pub(crate) fn to_resolv_conf(&self) -> String {
        let mut text = String::new();
        for server in &self.servers {
            let _ = writeln!(text, "nameserver {server}");
        }
        if !self.search.is_empty() {
            let _ = writeln!(text, "search {}", self.search.join(" "));
        }
        if self.ndots != 1 {
            let _ = writeln!(text, "options ndots:{}", self.ndots);
        }
        text
    }

    /// Returns the addresses of a name; empty if it has none. Must run in the client's network
    /// namespace.
    pub(super) fn resolve(&self, name: &str, families: &[Family]) -> io::Result<Vec<IpAddr>> {
        let bare = name.trim_end_matches('.');
        let hosts = self.hosts.iter().filter(|(host, _)| host.eq_ignore_ascii_case(bare));
        let mut found: Vec<IpAddr> = hosts.map(|(_, ip)| *ip).collect();
        found.retain(|ip| families.contains(&Family::of(*ip)));
        if !found.is_empty() {
            return Ok(found);
        }
        for candidate in self.candidates(name) {
            for family in families {
                match self.ask(&candidate, *family)? {
                    Some(addresses) => found.extend(addresses),
                    // Without a server, other names fail too.
                    None => return Ok(found),
                }
            }
            if !found.is_empty() {
                break;
            }
        }
        Ok(found)
    }

    /// Returns the names to try, in order.
    fn candidates(&self, name: &str) -> Vec<String> {
        if let Some(whole) = name.strip_suffix('.') {
            return vec![whole.to_owned()];
        }
        let mut all: Vec<String> = self
            .search
            .iter()
            .map(|domain| format!("{name}.{}", domain.trim_end_matches('.')))
            .collect();
        let dots = name.matches('.').count();
        all.insert(if dots >= self.ndots { 0 } else { all.len() }, name.to_owned());
        all
    }

    /// Returns the addresses in the first answer of a server, or `None` if no server answers.
    fn ask(&self, name: &str, family: Family) -> io::Result<Option<Vec<IpAddr>>> {
        for server in &self.servers {
            if let Some(addresses) = ask(*server, name, family)? {
                return Ok(Some(addresses));
            }
        }
        Ok(None)
    }
}

/// Returns the addresses in a server's answer, whatever name they belong to, or `None` if the
/// server does not answer.
fn ask(server: IpAddr, name: &str, family: Family) -> io::Result<Option<Vec<IpAddr>>> {
    let here: SocketAddr = match server {
        IpAddr::V4(_) => ([0, 0, 0, 0], 0).into(),
        IpAddr::V6(_) => ([0u16; 8], 0).into(),
    };
    let socket = UdpSocket::bind(here)?;
    let id = socket.local_addr()?.port();
    let Some(query) = wire::encode_query(id, &Question::new(name, RecordType::of(family))) else {
        return Ok(Some(Vec::new()));
    };
    socket.set_read_timeout(Some(PATIENCE))?;
    let mut room = [0; 4096];
    let asked = socket
        .connect((server, 53))
        .and_then(|()| socket.send(&query))
        .and_then(|_| socket.recv(&mut room));
    match asked {
        Ok(count) => {
            let response = wire::decode_response(&room[..count]).filter(|found| found.id == id);
            Ok(response.map(|response| addresses(&response.reply.records, family)))
        }
        // The server refused, is unreachable, or did not answer.
        Err(_) => Ok(None),
    }
}

fn addresses(records: &[Record], family: Family) -> Vec<IpAddr> {
    let address = |record: &Record| match record.data {
        Data::Address(ip) => Some(ip).filter(|ip| Family::of(*ip) == family),
        _ => None,
    };
    records.iter().filter_map(address).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resolver(search: &[&str], ndots: usize) -> Resolver {
        let search = search.iter().map(ToString::to_string).collect();
        Resolver { servers: Vec::new(), search, ndots, hosts: Vec::new() }
    }

    #[test]
    fn names_with_few_dots_are_searched_first() {
        let resolver = resolver(&["shop.svc.cluster.local", "example.com."], 2);
        let searched = ["web.a.shop.svc.cluster.local", "web.a.example.com", "web.a"];
        assert_eq!(resolver.candidates("web.a"), searched);
        assert_eq!(resolver.candidates("a.b.c")[0], "a.b.c");
        assert_eq!(resolver.candidates("web."), ["web"]);
    }

    #[test]
    fn own_hosts_come_before_any_server() {
        let ip = "10.9.9.9".parse().unwrap();
        let mut resolver = resolver(&[], 1);
        resolver.hosts.push(("Shop.example.com".into(), ip));
        assert_eq!(resolver.resolve("shop.example.com", &[Family::V4]).unwrap(), [ip]);
        assert!(resolver.resolve("shop.example.com", &[Family::V6]).unwrap().is_empty());
    }
}
