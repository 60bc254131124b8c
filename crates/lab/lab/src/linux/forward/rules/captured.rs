//! Loads the captured rules of a node in place of what kube-proxy would program there.

use std::io;
use std::net::IpAddr;

use uturn_model::{Capture, CaptureFile, Family};
use uturn_netfilter::addr;

use super::node::{IPVS_DEVICE, add_ipvs_device, bind, load_nft, load_sets, load_virtual_servers};
use super::restore;
use crate::LabError;
use crate::captured::{own_tables, text};
use crate::linux::kernel::namespace::Namespace;
use crate::linux::kernel::system::During;

/// Sysctls that affect the path of packets, by their last component.
const SETTINGS: [&str; 12] = [
    "ip_forward",
    "forwarding",
    "rp_filter",
    "accept_local",
    "route_localnet",
    "src_valid_mark",
    "arp_ignore",
    "arp_announce",
    "nf_conntrack_tcp_be_liberal",
    "nf_conntrack_tcp_loose",
    "bridge-nf-call-iptables",
    "bridge-nf-call-ip6tables",
];

/// Loads the rules, sets, virtual servers and settings of a capture, and binds the addresses that
/// it has on `kube-ipvs0`. Links, addresses and routes are the lab's.
pub(crate) fn load(capture: &Capture, space: &Namespace) -> Result<(), LabError> {
    let doing = format!("load what was captured of node {}", capture.node);
    let file_text = |file| text(capture, file);
    space.run(|| set(file_text(CaptureFile::Sysctls))).during(&doing)?;
    load_sets(space, file_text(CaptureFile::Ipset), &doing)?;
    for (family, file) in
        [(Family::V4, CaptureFile::Iptables), (Family::V6, CaptureFile::Ip6tables)]
    {
        if !file_text(file).is_empty() {
            restore(space, family, file_text(file), &doing)?;
        }
    }
    load_nft(space, &own_tables(capture), &doing)?;
    let bound = bound(capture, &doing)?;
    if !bound.is_empty() {
        space.run(|| add_ipvs_device().and_then(|()| bind(&bound))).during(&doing)?;
    }
    let path = capture.files.get(&CaptureFile::Ipvs).map_or("", |file| &file.path);
    load_virtual_servers(space, path, file_text(CaptureFile::Ipvs), &doing)
}

/// Returns the addresses that kube-proxy has bound in IPVS mode.
fn bound(capture: &Capture, doing: &str) -> Result<Vec<IpAddr>, LabError> {
    let Some(captured) = capture.files.get(&CaptureFile::Addresses) else { return Ok(Vec::new()) };
    let interfaces = addr::parse(captured.path.clone(), &captured.text).map_err(|faults| {
        let faults: Vec<String> = faults.iter().map(ToString::to_string).collect();
        LabError::Program { doing: doing.into(), reason: faults.join("\n") }
    })?;
    let device = interfaces.iter().filter(|interface| &*interface.name == IPVS_DEVICE);
    let addresses = device.flat_map(|interface| &interface.addresses).map(|(ip, _)| *ip);
    // The kernel gives every link a link-local address.
    let is_own = |ip: &IpAddr| matches!(ip, IpAddr::V6(ip) if ip.is_unicast_link_local());
    Ok(addresses.filter(|ip| !is_own(ip)).collect())
}

/// Sets the sysctls that affect packets and exist here. A capture may have settings of links that
/// the lab does not have.
fn set(text: &str) -> io::Result<()> {
    for line in text.lines() {
        let Some((key, value)) = line.split_once('=') else { continue };
        let (key, value) = (key.trim(), value.trim());
        let last = key.rsplit('.').next().unwrap_or_default();
        if !SETTINGS.contains(&last) && !key.starts_with("net.ipv4.vs.") {
            continue;
        }
        match Namespace::set_sysctl(&key.replace('.', "/"), value) {
            Err(error) if is_absent(&error) => {}
            set => set?,
        }
    }
    Ok(())
}

/// Returns whether a sysctl is missing here, as some exist only in the host's namespace.
fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied)
}
