//! Resolves a name as a pod's C library does: `/etc/hosts`, then `resolv.conf` with its
//! search list, over real questions to its servers.

use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::time::Duration;

use uturn_model::pod::DnsPolicy;
use uturn_model::{Family, Pod, Text};

use super::message::{Answer, Question};

/// How long a server may take.
const PATIENCE: Duration = Duration::from_secs(2);

/// The C library looks at no more servers than these.
const SERVERS: usize = 3;

/// What stands in a `resolv.conf`, and in `/etc/hosts`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Resolver {
    servers: Vec<IpAddr>,
    search: Vec<String>,
    ndots: usize,
    hosts: Vec<(Text, IpAddr)>,
}

/// What the resolvers of a cluster's pods are made from.
pub(super) struct Settings<'a> {
    /// Where kubelet sends pods of the policy `ClusterFirst`.
    pub(super) cluster: IpAddr,
    /// Where nodes ask.
    pub(super) node: IpAddr,
    pub(super) domain: &'a str,
}

impl Resolver {
    /// A node's own.
    pub(super) fn of_node(settings: &Settings<'_>) -> Self {
        let servers = vec![settings.node];
        Self { servers, search: Vec::new(), ndots: 1, hosts: Vec::new() }
    }

    /// What kubelet writes for a pod.
    pub(super) fn of_pod(settings: &Settings<'_>, pod: &Pod) -> Self {
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

    /// The addresses of a name, from within the asker's namespace; none when it has none.
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
                    Some(answer) => found.extend(answer.addresses),
                    // Nobody is there to ask: other names will fare no better.
                    None => return Ok(found),
                }
            }
            if !found.is_empty() {
                break;
            }
        }
        Ok(found)
    }

    /// Names to try, in order.
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

    /// The first server's answer; none when no server gives any.
    fn ask(&self, name: &str, family: Family) -> io::Result<Option<Answer>> {
        for server in &self.servers {
            if let Some(answer) = ask(*server, name, family)? {
                return Ok(Some(answer));
            }
        }
        Ok(None)
    }
}

/// Asks one server; none when it does not answer.
pub(super) fn ask(server: IpAddr, name: &str, family: Family) -> io::Result<Option<Answer>> {
    let here: SocketAddr = match server {
        IpAddr::V4(_) => ([0, 0, 0, 0], 0).into(),
        IpAddr::V6(_) => ([0u16; 8], 0).into(),
    };
    let socket = UdpSocket::bind(here)?;
    let number = socket.local_addr()?.port();
    let question = Question { number, name: name.to_owned(), family: Some(family) };
    let Some(bytes) = question.to_bytes() else {
        return Ok(Some(Answer { number, code: super::message::NO_SUCH_NAME, addresses: vec![] }));
    };
    socket.set_read_timeout(Some(PATIENCE))?;
    let mut room = [0; 4096];
    let asked = socket
        .connect((server, 53))
        .and_then(|()| socket.send(&bytes))
        .and_then(|_| socket.recv(&mut room));
    match asked {
        Ok(count) => Ok(Answer::read(&room[..count], family).filter(|one| one.number == number)),
        // Refused, unreachable, or silent.
        Err(_) => Ok(None),
    }
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
