//! A Corefile as CoreDNS loads it: listeners, zones and plugins.

mod ask;
mod bind;
mod plugin;

use std::collections::{HashMap, HashSet};
use std::net::IpAddr;

use uturn_model::{Evidence, Origin, dns};

use crate::blocks::{self, Block, Files};
use crate::dispenser::Dispenser;
use crate::fault::Fault;
use crate::name;
pub use ask::QueryContext;
use bind::Bind;
use plugin::{ORDER, Plugin, SETTINGS, Setup, external};

/// A valid Corefile.
#[derive(Debug)]
pub struct Corefile {
    /// The display name of the Corefile: `coredns`.
    pub(crate) called: String,
    pub(crate) servers: Vec<Server>,
    pub(crate) origin: Origin,
}

impl Corefile {
    /// Returns the addresses to which the servers are bound by number, each once.
    pub fn bound_addresses(&self) -> Vec<IpAddr> {
        let mut all: Vec<IpAddr> = Vec::new();
        for ip in self.servers.iter().flat_map(Server::bound_addresses) {
            if !all.contains(&ip) {
                all.push(ip);
            }
        }
        all
    }

    /// Returns a name for each rule that rewrites names and whose text, or one of `hosts` or
    /// `services`, tells such a name, once for each block that has the rule. Only names that reach
    /// the block of the rule are returned.
    pub fn rewritten_names(&self, hosts: &[String], services: &[String]) -> Vec<RewrittenName> {
        let in_full = |names: &[String]| names.iter().map(|own| name::qualified(own)).collect();
        let (hosts, services): (Vec<String>, Vec<String>) = (in_full(hosts), in_full(services));
        let plain = |name: String| name.trim_end_matches('.').to_owned();
        let mut all = Vec::new();
        for server in self.servers.iter().filter(|server| !server.view) {
            for entry in &server.plugins {
                let Plugin::Rewrite(rewrite) = &entry.plugin else { continue };
                for (name, becomes, line) in rewrite.examples(&hosts, &services) {
                    if !server.serves(&name) {
                        continue;
                    }
                    let by = entry.evidence(&self.called, line);
                    let (name, becomes) = (plain(name), plain(becomes));
                    all.push(RewrittenName { name, becomes, by });
                }
            }
        }
        all
    }
}

/// A name that a rule of `rewrite` is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RewrittenName {
    /// The name that is asked, without the last dot.
    pub name: String,
    /// The name that becomes of it, without the last dot.
    pub becomes: String,
    /// The rule.
    pub by: Evidence,
}

/// A server block.
#[derive(Debug)]
pub(crate) struct Server {
    pub(crate) sites: Vec<Site>,
    /// The addresses to which the server is bound; `None` for all.
    binds: Option<Vec<Bind>>,
    pub(crate) plugins: Vec<Entry>,
    /// Whether a `view` restricts the server to some clients.
    pub(crate) view: bool,
    /// Whether the server has no plugin that answers queries.
    pub(crate) idle: bool,
}

/// A zone and port that a server block serves.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Site {
    /// The zone as it is written, which is the form in which it is compared.
    pub(crate) zone: String,
    pub(crate) scheme: &'static str,
    pub(crate) port: u16,
}

/// A plugin and its place.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) name: String,
    pub(crate) plugin: Plugin,
    /// The display name of the plugin's file.
    pub(crate) file: String,
    pub(crate) line: u32,
    /// The origin of the first line of that file.
    pub(crate) start: Origin,
}

impl Entry {
    /// Returns a line of the plugin as evidence.
    pub(crate) fn evidence(&self, called: &str, line: u32) -> Evidence {
        let rule = format!("{} plugin, {called} {}:{line}", self.name, self.file);
        Evidence::Corefile { plugin: rule.into(), origin: self.start.within(line, 0) }
    }
}

impl Corefile {
    /// Reads a Corefile, which error messages call `called`.
    ///
    /// # Errors
    /// Returns all faults with which CoreDNS would not start, as far as they concern plugins that
    /// affect addresses, and all settings whose effect the input does not determine, such as
    /// environment variables.
    pub fn read(called: &str, corefile: &dns::Corefile) -> Result<Self, Vec<Fault>> {
        let files = Files::new(corefile);
        let blocks = blocks::read(&files).map_err(|fault| vec![fault])?;
        let mut faults = Vec::new();
        let mut servers: Vec<Server> = Vec::new();
        let mut served = Served::new();
        for block in &blocks {
            match Server::read(block, &files, corefile) {
                Ok(server) => {
                    faults.extend(server.taken(&servers, &served, block, &files));
                    for site in server.sites.iter().filter(|_| !server.view) {
                        served.entry(site.clone()).or_default().push(servers.len());
                    }
                    servers.push(server);
                }
                Err(more) => faults.extend(more),
            }
        }
        if faults.is_empty() {
            let origin = corefile.origin.clone();
            Ok(Self { called: called.to_owned(), servers, origin })
        } else {
            Err(faults)
        }
    }
}

impl Server {
    fn read(
        block: &Block,
        files: &Files<'_>,
        corefile: &dns::Corefile,
    ) -> Result<Self, Vec<Fault>> {
        let mut faults = Vec::new();
        let mut sites = Vec::new();
        for key in &block.keys {
            match site(&key.text) {
                Ok(Some(site)) => sites.push(site),
                Ok(None) => {}
                Err(message) => faults.push(files.fault(key, message)),
            }
        }
        let zones: Vec<String> = sites.iter().map(|site| site.zone.to_lowercase()).collect();
        let setup = Setup { zones: &zones, release: corefile.release };
        let place = |name: &str| {
            let name = external::stands_at(name);
            ORDER.iter().position(|known| *known == name)
        };
        let mut directives: Vec<_> = block.directives.iter().collect();
        // An unknown plugin comes first: it is unknown which queries it leaves to others.
        directives.sort_by_key(|(name, _)| place(name).map_or(0, |at| at + 1));
        let mut plugins = Vec::new();
        for (name, words) in &directives {
            if name == "view" {
                continue;
            }
            let mut dispenser = Dispenser::new(words, files);
            match Plugin::read(name, &mut dispenser, &setup) {
                Ok(None) => {}
                Ok(Some(plugin)) => plugins.push(Entry {
                    name: name.clone(),
                    plugin,
                    file: files.called(&words[0]).to_owned(),
                    line: words[0].line,
                    start: match words[0].file {
                        0 => corefile.origin.clone(),
                        number => corefile.beside[number - 1].origin.clone(),
                    },
                }),
                Err(fault) => faults.push(fault),
            }
        }
        let bind = block.directives.iter().find(|(name, _)| name == "bind");
        let binds = bind.map(|(_, words)| bind::read(&mut Dispenser::new(words, files)));
        let binds = binds.transpose().unwrap_or_else(|fault| {
            faults.push(fault);
            None
        });
        let setting = |name: &str| SETTINGS.contains(&name) || name == "view";
        let server = Self {
            sites,
            binds,
            plugins,
            view: block.directives.iter().any(|(name, _)| name == "view"),
            idle: block.directives.iter().all(|(name, _)| setting(name)),
        };
        if faults.is_empty() { Ok(server) } else { Err(faults) }
    }

    /// Returns whether the server listens on an address; `None` matches every server.
    pub(crate) fn listens(&self, address: Option<IpAddr>) -> bool {
        let fits = |bind: &Bind| match bind {
            Bind::Address(ip) => address.is_none_or(|address| *ip == address),
            Bind::Other(_) => true,
        };
        self.binds.as_ref().is_none_or(|binds| binds.iter().any(fits))
    }

    /// Returns the addresses to which the server is bound by number.
    fn bound_addresses(&self) -> impl Iterator<Item = IpAddr> {
        self.binds.iter().flatten().filter_map(|bind| match bind {
            Bind::Address(ip) => Some(*ip),
            Bind::Other(_) => None,
        })
    }

    /// Returns whether a name is in one of the server's zones.
    fn serves(&self, name: &str) -> bool {
        self.sites.iter().any(|site| name::is_within(&site.zone, name))
    }

    /// Returns whether the server is bound to certain addresses.
    pub(crate) fn is_bound(&self) -> bool {
        self.binds.is_some()
    }

    /// Returns a fault if one of the server's zones is already served at the same address and port,
    /// by this block or another.
    fn taken(
        &self,
        others: &[Self],
        served: &Served,
        block: &Block,
        files: &Files<'_>,
    ) -> Option<Fault> {
        let shares = |other: &Self| match (&self.binds, &other.binds) {
            (Some(mine), Some(theirs)) => mine.iter().any(|bind| theirs.contains(bind)),
            _ => true,
        };
        let key = block.keys.first().filter(|_| !self.view)?;
        let mut listed = HashSet::new();
        let bound_twice = !self.binds.iter().flatten().all(|bind| listed.insert(bind));
        let mut own = HashSet::new();
        let site = self.sites.iter().find(|site| {
            let mut there = served.get(site).into_iter().flatten();
            bound_twice || !own.insert(*site) || there.any(|at| shares(&others[*at]))
        })?;
        Some(files.fault(key, format!("zone {} is served twice on port {}", site.zone, site.port)))
    }
}

/// The blocks that serve a zone for every client.
type Served = HashMap<Site, Vec<usize>>;

/// Parses a key of a server block. Returns `None` for an address range, whose reverse names are
/// never queried here.
fn site(key: &str) -> Result<Option<Site>, String> {
    let (scheme, rest) = name::scheme(key);
    let (scheme, usual) = match scheme {
        "dns" => ("dns", 53),
        "tls" => ("tls", 853),
        "quic" => ("quic", 853),
        "grpc" => ("grpc", 443),
        "https" => ("https", 443),
        _ => return Err(format!("{key} is not a zone")),
    };
    let Some((zone, port)) = name::split_port(rest) else {
        return Err(format!("expected a port after the last colon of {key}"));
    };
    if zone.contains('/') && zone.parse::<ipnet::IpNet>().is_ok() {
        return Ok(None);
    }
    let zone = name::qualified(zone);
    if name::is_domain_name(&zone) {
        Ok(Some(Site { zone, scheme, port: port.unwrap_or(usual) }))
    } else {
        Err(format!("{key} is not a zone"))
    }
}
