//! `uturn walk`: one packet through one captured node.

use std::collections::BTreeSet;

use uturn_model::{Capture, CaptureFile, Family, Name};
use uturn_netfilter::{
    DropReason, End, EndKind, Entry, Kernel, NodeState, Packet, ParseError, iptables,
};
use uturn_report::walk::{self, WalkEnd};
use uturn_snapshot::Source;

use super::print;
use crate::cli::Walk;
use crate::printer::Printer;
use crate::status::{Failure, Status};

pub(super) fn run(args: &Walk, printer: &Printer) -> Result<Status, Failure> {
    if args.src.is_ipv4() != args.dst.is_ipv4() {
        return Err(Failure::usage("--src and --dst are of different families"));
    }
    // What the node is called matters to nobody here.
    let name = Name::new("node").map_err(|why| Failure::usage(why.to_string()))?;
    let capture = uturn_snapshot::read_capture(&args.capture, name).map_err(|all| said(&all))?;
    let mut state = NodeState::from_capture(&capture).map_err(|all| said(&all))?;
    warn(&NodeState::warnings(&capture), printer);
    state.complete(&capture);
    load(&mut state, &capture, args, printer)?;
    let entry = match &args.interface {
        None => Entry::Local,
        Some(interface) => {
            let known = interfaces(&state);
            let says = [CaptureFile::Addresses, CaptureFile::Routes]
                .iter()
                .any(|file| capture.files.contains_key(file));
            if says && !known.is_empty() && !known.contains(interface.as_str()) {
                let known: Vec<&str> = known.into_iter().collect();
                return Err(Failure::usage(format!(
                    "the node has no interface {interface:?}: it has {}",
                    known.join(", ")
                )));
            }
            Entry::Interface(interface.as_str().into())
        }
    };
    let kernel = Kernel::new(state).map_err(|all| said(&all))?;
    let packet = Packet::new(args.proto, args.src, args.dst);
    let ends: Vec<WalkEnd> = kernel
        .walk(&packet, &entry, &[])
        .into_iter()
        .map(|end| shown(end, args.interface.as_deref()))
        .collect();
    print(printer, args.output, |style| walk::text(&ends, style), || walk::json(&ends));
    Ok(Status::Clean)
}

/// Loads the rules of `--noflush` onto the captured ones of the packet's family.
fn load(
    state: &mut NodeState,
    capture: &Capture,
    args: &Walk,
    printer: &Printer,
) -> Result<(), Failure> {
    let (family, file) = match Family::of(args.dst.ip()) {
        Family::V4 => (Family::V4, CaptureFile::Iptables),
        Family::V6 => (Family::V6, CaptureFile::Ip6tables),
    };
    if !args.noflush.is_empty() && !capture.files.contains_key(&file) {
        let name = file.file_name();
        return Err(Failure::usage(format!(
            "--noflush loads onto the {name} of the capture, which has none"
        )));
    }
    let mut faults = Vec::new();
    for path in &args.noflush {
        if path.is_dir() {
            faults.push(format!("{}: expected a file, found a folder", path.display()));
            continue;
        }
        let (sources, unread) = uturn_snapshot::gather(std::slice::from_ref(path));
        faults.extend(unread.iter().map(ToString::to_string));
        let Some(Source { name, text }) = sources.into_iter().next() else { continue };
        warn(&iptables::warnings(name.clone(), &text), printer);
        let rules = match family {
            Family::V4 => &mut state.iptables,
            Family::V6 => &mut state.ip6tables,
        };
        match iptables::parse_fragment(std::mem::take(rules), name, &text, family) {
            Ok(loaded) => *rules = loaded,
            Err(all) => faults.extend(all.iter().map(ToString::to_string)),
        }
    }
    if faults.is_empty() { Ok(()) } else { Err(Failure::input(faults)) }
}

fn warn(warnings: &[ParseError], printer: &Printer) {
    for warning in warnings {
        printer.note(&format!("warning: {warning}"));
    }
}

/// Every interface that the capture speaks of: a list of addresses may be a part of them.
fn interfaces(state: &NodeState) -> BTreeSet<&str> {
    let addressed = state.interfaces.iter().map(|one| &*one.name);
    addressed.chain(state.routes.iter().filter_map(|route| route.dev.as_deref())).collect()
}

fn said<T: ToString>(faults: &[T]) -> Failure {
    Failure::input(faults.iter().map(ToString::to_string).collect())
}

fn shown(end: End, came_in: Option<&str>) -> WalkEnd {
    let (word, reason) = match &end.kind {
        EndKind::Local => ("local", None),
        EndKind::Forward => ("forward", None),
        EndKind::Drop(reason) => ("drop", Some(why_dropped(reason))),
        EndKind::Reject(with) => ("reject", Some(with.to_string())),
        EndKind::Unsettled => ("unsettled", None),
    };
    WalkEnd {
        share: end.share,
        end: word,
        reason,
        came_in: came_in.map(str::to_owned),
        leaves_by: end.out.as_deref().map(str::to_owned),
        leg: end.packet.leg(),
        steps: end.steps,
        unknown: end.unknown.iter().map(ToString::to_string).collect(),
        supposed: end.supposed,
    }
}

fn why_dropped(reason: &DropReason) -> String {
    match reason {
        DropReason::Rule(by) | DropReason::Policy(by) => by.to_string(),
        DropReason::LocalSource => "local-source-drop".to_owned(),
        DropReason::ReversePathFilter => "reverse-path-filter".to_owned(),
        DropReason::MartianSource => "the source is no unicast address".to_owned(),
        DropReason::MartianDestination => "the destination is no address to route to".to_owned(),
        DropReason::NoRoute => "no route".to_owned(),
        DropReason::Unreachable => "an unreachable route".to_owned(),
        DropReason::Prohibited => "a prohibiting route".to_owned(),
        DropReason::Blackhole => "a blackhole route".to_owned(),
        DropReason::NotForwarding => "the node does not forward".to_owned(),
        DropReason::Invalid => "connection tracking finds it invalid".to_owned(),
    }
}
