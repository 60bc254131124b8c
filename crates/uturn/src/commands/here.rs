//! `uturn collect --here`: the state of a node, saved.

use std::path::Path;
use std::time::Duration;

use uturn_model::{CaptureFile, Name};
use uturn_node::{Local, Machine as _, Manifest, Options, Part, PartState, WriteError};

use crate::cli::Here;
use crate::printer::Printer;
use crate::status::{Failure, Status};

pub(super) fn run(args: &Here, bundle: &Path, printer: &Printer) -> Result<Status, Failure> {
    let machine = Local { limit: Duration::from_secs(args.timeout) };
    let node = match &args.node {
        Some(node) => node.clone(),
        None => own_name(&machine)?,
    };
    let options = Options { conntrack: args.conntrack, counters: args.counters };
    let captured = uturn_node::capture(&machine, &node, options);
    let manifest = &captured.manifest;
    if captured.files.is_empty() {
        let mut messages = vec!["nothing could be captured here".to_owned()];
        messages.extend(manifest.lacks().map(line));
        return Err(Failure::not_here(messages.join("\n")));
    }
    let folder = uturn_node::write(&captured, bundle).map_err(|why| match why {
        WriteError::Exists(_) => Failure::usage(why.to_string()),
        WriteError::Io(..) => Failure::not_here(why.to_string()),
    })?;
    warn(manifest, printer);
    printer.result(&format!("captured node {node}: {}\n", folder.display()));
    Ok(Status::Clean)
}

/// The machine's name, as kubelet takes it: in small letters.
fn own_name(machine: &Local) -> Result<Name, Failure> {
    let name = machine.read("/proc/sys/kernel/hostname").unwrap_or_default();
    let name = name.trim().to_lowercase();
    Name::new(name.as_str()).map_err(|_| {
        let found = format!("the machine's own name {name:?} is no name of a node");
        Failure::usage(format!("{found}: state it with --node NAME"))
    })
}

/// What the capture lacks, and what rests on it.
fn warn(manifest: &Manifest, printer: &Printer) {
    for part in manifest.lacks() {
        printer.note(&format!("warning: {}", line(part)));
    }
    if !manifest.settled {
        printer.note(
            "warning: the rules changed all the time while they were captured: \
             `uturn check nodes` will not compare them",
        );
    }
}

fn line(part: &Part) -> String {
    let why = part.why.as_deref().unwrap_or_default();
    let what = match part.state {
        PartState::Missing => format!("{} is not there", part.from),
        _ => format!("{}: {why}", part.from),
    };
    match rests_on(&part.file) {
        Some(unknown) => format!("{what}: {unknown}"),
        None => what,
    }
}

/// What is not known without a file.
fn rests_on(file: &str) -> Option<&'static str> {
    let file = CaptureFile::ALL.into_iter().find(|known| known.file_name() == file)?;
    Some(match file {
        CaptureFile::Iptables => "the IPv4 rules of iptables are unknown",
        CaptureFile::Ip6tables => "the IPv6 rules of iptables are unknown",
        CaptureFile::OtherIptables | CaptureFile::OtherIp6tables => {
            "whether its back end of iptables has rules too is unknown"
        }
        CaptureFile::Ipset => "what the sets hold that rules name is unknown",
        CaptureFile::Ipvs => "the virtual servers of IPVS are unknown",
        CaptureFile::Nft | CaptureFile::NftJson => "the rules of nftables are unknown",
        CaptureFile::Addresses => "the node's addresses are unknown",
        CaptureFile::Routes | CaptureFile::Rules => "its routes are unknown",
        CaptureFile::Sysctls => "its sysctls are unknown",
        CaptureFile::Manifest => return None,
    })
}
