//! Virtual servers and their endpoints.

use std::collections::BTreeMap;
use std::fmt::{self, Write as _};
use std::net::IpAddr;

use uturn_model::{Port, Protocol};

use crate::plan::{Backend, PortPlan};

/// All virtual servers of one family by address. If two Service ports claim the same address and
/// port, the later one has it.
pub(super) struct Servers<'p> {
    scheduler: &'p str,
    flags: &'static str,
    all: BTreeMap<(Protocol, IpAddr, Port), Server<'p>>,
}

struct Server<'p> {
    port: &'p PortPlan<'p>,
    choice: Choice,
}

/// The choice of a Service port's endpoints for a virtual server.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Choice {
    Cluster,
    Local,
}

impl Choice {
    /// Returns the endpoints that the policy allows. If the node has none of its own, all endpoints
    /// are used in versions that fall back.
    pub(super) fn of(port: &PortPlan<'_>, local: bool, falls_back: bool) -> Self {
        if local && (port.backends.any_local() || !falls_back) {
            Self::Local
        } else {
            Self::Cluster
        }
    }
}

impl<'p> Servers<'p> {
    pub(super) fn new(scheduler: &'p str, hashes_ports: bool) -> Self {
        let scheduler = if scheduler.is_empty() { "rr" } else { scheduler };
        let flags = if scheduler == "mh" && hashes_ports { " -b mh-port" } else { "" };
        Self { scheduler, flags, all: BTreeMap::new() }
    }

    /// Adds a virtual server.
    pub(super) fn insert(
        &mut self,
        port: &'p PortPlan<'p>,
        address: (IpAddr, Port),
        choice: Choice,
    ) {
        self.all.insert((port.protocol, address.0, address.1), Server { port, choice });
    }

    /// Prints all servers in the format of `ipvsadm -Sn`.
    pub(super) fn print(&self) -> String {
        let mut out = String::new();
        let printed = self.write(&mut out);
        debug_assert!(printed.is_ok(), "a string takes all");
        out
    }

    fn write(&self, out: &mut String) -> fmt::Result {
        let mut behind: Vec<&Backend> = Vec::new();
        for ((protocol, ip, port), server) in &self.all {
            let option = match protocol {
                Protocol::Tcp => "-t",
                Protocol::Udp => "-u",
                Protocol::Sctp => "--sctp-service",
            };
            let address = match ip {
                IpAddr::V4(ip) => format!("{option} {ip}:{port}"),
                IpAddr::V6(ip) => format!("{option} [{ip}]:{port}"),
            };
            write!(out, "-A {address} -s {}", self.scheduler)?;
            if let Some(seconds) = server.port.affinity_seconds {
                write!(out, " -p {seconds}")?;
            }
            writeln!(out, "{}", self.flags)?;
            behind.clear();
            behind.extend(server.port.backends.all.iter().filter(|backend| match server.choice {
                Choice::Cluster => backend.serves_cluster(),
                Choice::Local => backend.serves_local(),
            }));
            behind.sort_unstable_by_key(|backend| (backend.ip, backend.port));
            for backend in &behind {
                writeln!(out, "-a {address} -r {} -m -w 1", backend.text)?;
            }
        }
        Ok(())
    }
}
