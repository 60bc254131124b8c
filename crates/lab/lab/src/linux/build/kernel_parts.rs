//! Checks for features of the kernel that only some clusters need.

use std::io;

use super::tunnel;
use crate::linux::kernel::ipvs::Ipvs;
use crate::linux::kernel::namespace::Namespace;
use crate::linux::kernel::system::{During, find, run};
use crate::linux::run::state::Run;
use crate::{KernelPart, LabError, Unavailable};

/// A table with a chain at each hook that kube-proxy uses.
const TABLE: &str = "table ip uturn-lab {\n\
    chain nat { type nat hook postrouting priority 100; }\n\
    chain filter { type filter hook prerouting priority -110; }\n\
    }\n";

/// Fails with the first feature or program that is missing.
pub(crate) fn check(parts: &[KernelPart], run: &Run) -> Result<(), LabError> {
    for part in parts {
        let needed = match part {
            KernelPart::IpVs => Some(("ipset", "ipset")),
            KernelPart::NfTables => Some(("nft", "nftables")),
            KernelPart::Vxlan => None,
        };
        if let Some((program, package)) = needed
            && find(program).is_none()
        {
            return Err(Unavailable::Missing { program, package }.into());
        }
        let is_here = match part {
            KernelPart::IpVs => Ipvs::is_loaded(),
            KernelPart::NfTables => has_nf_tables(run).during("try nf_tables")?,
            KernelPart::Vxlan => has_vxlan(run).during("try VXLAN")?,
        };
        if !is_here {
            return Err(Unavailable::Part(*part).into());
        }
    }
    Ok(())
}

fn has_nf_tables(own: &Run) -> io::Result<bool> {
    let space = Namespace::new(own.namespace("parts"))?;
    space.run(|| Ok(run("nft", &["-f", "-"], TABLE)?.is_ok()))
}

fn has_vxlan(own: &Run) -> io::Result<bool> {
    let space = Namespace::new(own.namespace("parts"))?;
    match space.run(tunnel::try_out) {
        Err(error) if error.kind() == io::ErrorKind::Unsupported => Ok(false),
        made => made.map(|()| true),
    }
}
