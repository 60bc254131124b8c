//! Creates and lists virtual servers of IPVS through generic netlink.
//!
//! Both directions use the model of `ipvsadm -Sn` output in `uturn-netfilter`.

mod wire;

use std::io;
use std::path::Path;

use uturn_netfilter::ipvs::{VirtualServer, VirtualServers};
use uturn_netns::netlink::Attributes;

use super::generic::{Family, Generic};
use wire::Fault;

const FAMILY: &str = "IPVS";
const VERSION: u8 = 1;
const NEW_SERVICE: u8 = 1;
const GET_SERVICE: u8 = 4;
const NEW_DEST: u8 = 5;
const GET_DEST: u8 = 8;

/// The kernel's IPVS, in the namespace of the thread that opened it.
pub(crate) struct Ipvs {
    netlink: Generic,
    family: Family,
}

impl Ipvs {
    /// Returns whether IPVS is loaded. Resolving its netlink family would load it.
    pub(crate) fn is_loaded() -> bool {
        Path::new("/proc/net/ip_vs").exists()
    }

    pub(crate) fn open() -> io::Result<Self> {
        let mut netlink = Generic::open()?;
        let family = netlink.family(FAMILY, VERSION)?;
        Ok(Self { netlink, family })
    }

    /// Creates virtual servers with their real servers.
    pub(crate) fn add(&mut self, all: &VirtualServers) -> io::Result<()> {
        for server in &all.0 {
            let with_context = |what: String| move |error: io::Error| context(&error, &what);
            let address = wire::server(server).map_err(|fault| refused(server, &fault))?;
            self.netlink
                .change(self.family, NEW_SERVICE, &address)
                .map_err(with_context(format!("-A {server}")))?;
            for real in &server.servers {
                let both = wire::real(server, real).map_err(|fault| refused(server, &fault))?;
                self.netlink
                    .change(self.family, NEW_DEST, &both)
                    .map_err(with_context(format!("-a {} {real}", server.at)))?;
            }
        }
        Ok(())
    }

    /// Returns all virtual servers of the kernel.
    pub(crate) fn list(&mut self) -> io::Result<VirtualServers> {
        let answers = self.netlink.list(self.family, GET_SERVICE, &Attributes::default())?;
        let mut all = Vec::new();
        for answer in answers {
            let mut server = wire::read_server(&answer).ok_or_else(unreadable)?;
            let reals = self.netlink.list(self.family, GET_DEST, &wire::address(&server.at))?;
            for real in reals {
                server.servers.push(wire::read_real(&server.at, &real).ok_or_else(unreadable)?);
            }
            all.push(server);
        }
        Ok(VirtualServers(all))
    }
}

fn refused(server: &VirtualServer, fault: &Fault) -> io::Error {
    let what = format!("-A {server}: {fault}");
    io::Error::new(io::ErrorKind::Unsupported, what)
}

fn context(error: &io::Error, what: &str) -> io::Error {
    io::Error::new(error.kind(), format!("{what}: {error}"))
}

fn unreadable() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "the kernel's list of virtual servers is cut")
}
