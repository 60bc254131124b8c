//! The requirements of a cluster on the kernel.

use uturn_model::ProxyMode;

use crate::linux::build::availability::available;
use crate::linux::build::kernel_parts;
use crate::linux::run::state::Run;
use crate::{KernelPart, LabError};

/// Fails if this kernel cannot run a cluster with this mode of kube-proxy.
pub(crate) fn can_keep(mode: ProxyMode) -> Result<(), LabError> {
    available()?;
    match needed(mode) {
        None => Ok(()),
        needed => kernel_parts::check(needed.as_slice(), &Run::new()?),
    }
}

/// Returns the kernel part that a mode of kube-proxy needs.
pub(super) fn needed(mode: ProxyMode) -> Option<KernelPart> {
    match mode {
        ProxyMode::Ipvs => Some(KernelPart::IpVs),
        ProxyMode::Nftables => Some(KernelPart::NfTables),
        _ => None,
    }
}
