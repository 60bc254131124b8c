//! `uturn collect --here`: the state of a node, saved.

use std::path::Path;
use std::time::Duration;

use uturn_cli::{Failure, Printer, Status};
use uturn_model::{CaptureFile, Name};
use uturn_node::{Local, Machine as _, Manifest, Options, Part, PartState};
use uturn_snapshot::bundle::{AddError, NodeCaptured, add_node};

use crate::cli::Here;

pub(super) fn run(args: &Here, bundle: &Path, printer: &Printer) -> Result<Status, Failure> {
    let machine = Local { limit: Duration::from_secs(args.timeout) };
    let node = match args.nodes.as_slice() {
        [node] => node.clone(),
        [] => own_name(&machine)?,
        _ => return Err(Failure::usage("--here captures one node: name it once with --node")),
    };
    let options = Options { conntrack: args.conntrack, counters: args.counters };
    let captured = uturn_node::capture(&machine, &node, options);
    let manifest = captured.manifest.clone();
    if captured.files.is_empty() {
        let mut messages = vec!["nothing could be captured here".to_owned()];
        messages.extend(manifest.lacks().map(line));
        return Err(Failure::unavailable(messages.join("\n")));
    }
    let listed = NodeCaptured { node: node.to_string(), taken_at: manifest.taken_at.clone() };
    let added = add_node(bundle, &listed, &captured.into_files());
    let folder = added.map_err(|why| match why {
        AddError::Io(..) => Failure::unavailable(why.to_string()),
        AddError::Exists(_) | AddError::Archive(_) | AddError::Manifest(..) => {
            Failure::usage(why.to_string())
        }
    })?;
    warn(&manifest, None, printer);
    printer.text(&format!("captured node {node}: {}\n", folder.display()));
    Ok(Status::Clean)
}

/// Returns the machine's name, as kubelet uses it: in small letters.
fn own_name(machine: &Local) -> Result<Name, Failure> {
    let name = machine.read("/proc/sys/kernel/hostname").unwrap_or_default();
    let name = name.trim().to_lowercase();
    Name::new(name.as_str()).map_err(|_| {
        let found = format!("the machine's own name {name:?} is not a valid name of a node");
        Failure::usage(format!("{found}: give the name with --node NAME"))
    })
}

/// Warns of missing parts of the capture, and of their consequences.
pub(super) fn warn(manifest: &Manifest, node: Option<&Name>, printer: &Printer) {
    let node = node.map_or_else(String::new, |node| format!("node {node}: "));
    for part in manifest.lacks() {
        printer.note(&format!("warning: {node}{}", line(part)));
    }
    if !manifest.settled {
        printer.note(&format!(
            "warning: {node}the rules kept changing during the capture: `uturn check nodes` will \
             not compare them"
        ));
    }
}

fn line(part: &Part) -> String {
    let why = part.why.as_deref().unwrap_or_default();
    let what = match part.state {
        PartState::Missing => format!("{} is missing", part.from),
        _ => format!("{}: {why}", part.from),
    };
    match rests_on(&part.file) {
        Some(unknown) => format!("{what}: {unknown}"),
        None => what,
    }
}

/// Returns what is unknown without a file.
fn rests_on(file: &str) -> Option<&'static str> {
    let file = CaptureFile::ALL.into_iter().find(|known| known.file_name() == file)?;
    Some(match file {
        CaptureFile::Iptables => "the IPv4 rules of iptables are unknown",
        CaptureFile::Ip6tables => "the IPv6 rules of iptables are unknown",
        CaptureFile::OtherIptables | CaptureFile::OtherIp6tables => {
            "it is unknown whether this back end of iptables has rules too"
        }
        CaptureFile::Ipset => "the members of the sets that rules name are unknown",
        CaptureFile::Ipvs => "the virtual servers of IPVS are unknown",
        CaptureFile::Nft | CaptureFile::NftJson => "the rules of nftables are unknown",
        CaptureFile::Addresses => "the node's addresses are unknown",
        CaptureFile::Routes | CaptureFile::Rules => "its routes are unknown",
        CaptureFile::Sysctls => "its sysctls are unknown",
        CaptureFile::Manifest => return None,
    })
}
