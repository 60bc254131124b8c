//! `uturn walk`: one packet through one captured node.

use std::collections::BTreeSet;

use uturn_cli::{Failure, Printer, Status, faulty, print};
use uturn_model::{Capture, CaptureFile, Family, Name};
use uturn_netfilter::{
    Assumptions, DropReason, End, EndKind, Entry, FactSubject, Kernel, NodeState, PacketFact,
    ParseError, iptables,
};
use uturn_report::schema::walk::Walk as WalkOutput;
use uturn_report::walk::{self, Case, WalkEnd};
use uturn_snapshot::Source;

use crate::cli::Walk;
use crate::packet;

pub(super) fn run(args: &Walk, printer: &Printer) -> Result<Status, Failure> {
    let packet = packet::first(args.proto, args.src, args.dst).map_err(Failure::usage)?;
    // The name of the node has no effect here.
    let name = Name::new("node").map_err(|why| Failure::usage(why.to_string()))?;
    let capture = uturn_snapshot::read_capture(&args.capture, name).map_err(|all| faulty(&all))?;
    let mut state = NodeState::from_capture(&capture).map_err(|all| faulty(&all))?;
    warn(&NodeState::warnings(&capture), printer);
    state.fill_capture_gaps(&capture);
    load(&mut state, &capture, args, printer)?;
    let entry = match &args.interface {
        None => Entry::Local,
        Some(interface) => {
            let known = interfaces(&state);
            let is_stated = [CaptureFile::Addresses, CaptureFile::Routes]
                .iter()
                .any(|file| capture.files.contains_key(file));
            if is_stated && !known.is_empty() && !known.contains(interface.as_str()) {
                let known: Vec<&str> = known.into_iter().collect();
                return Err(Failure::usage(format!(
                    "the node has no interface {interface:?}: it has {}",
                    known.join(", ")
                )));
            }
            Entry::Interface(interface.as_str().into())
        }
    };
    let kernel = Kernel::new(state).map_err(|all| faulty(&all))?;
    let ends: Vec<WalkEnd> = kernel
        .walk_assuming(&packet, &entry, &[], &sender(args))
        .into_iter()
        .map(|end| shown(end, &entry))
        .collect();
    let ends = walk::merged(ends);
    print(printer, args.output, |style| walk::text(&ends, style), || WalkOutput::from(&*ends));
    Ok(Status::Clean)
}

/// Loads the rules of `--noflush` onto the captured ones of the packet's family.
fn load(
    state: &mut NodeState,
    capture: &Capture,
    args: &Walk,
    printer: &Printer,
) -> Result<(), Failure> {
    let (family, file) = match Family::of(args.dst.ip) {
        Family::V4 => (Family::V4, CaptureFile::Iptables),
        Family::V6 => (Family::V6, CaptureFile::Ip6tables),
    };
    if !args.noflush.is_empty() && !capture.files.contains_key(&file) {
        let name = file.file_name();
        return Err(Failure::usage(format!(
            "--noflush adds to the {name} of the capture, which has no such file"
        )));
    }
    let mut faults = Vec::new();
    for path in &args.noflush {
        if path.is_dir() {
            faults.push(format!("{}: expected a file, found a folder", path.display()));
            continue;
        }
        let (sources, unread) = uturn_document::gather(std::slice::from_ref(path));
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

/// Returns every interface that the capture names: a list of addresses may contain only some of
/// them.
fn interfaces(state: &NodeState) -> BTreeSet<&str> {
    let addressed = state.interfaces.iter().map(|interface| &*interface.name);
    addressed.chain(state.routes.iter().filter_map(|route| route.dev.as_deref())).collect()
}

/// Returns the stated facts about the packet's sender.
fn sender(args: &Walk) -> Assumptions {
    let stated = [(FactSubject::User, args.uid), (FactSubject::Group, args.gid)];
    let stated = stated.into_iter().filter_map(|(subject, owner)| Some((subject, owner?.0)));
    stated.fold(Assumptions::default(), |assumed, (subject, number)| {
        assumed.with_fact(PacketFact::exactly(subject, number), true)
    })
}

fn shown(end: End, entry: &Entry) -> WalkEnd {
    let came_in = match entry {
        Entry::Local => None,
        Entry::Interface(interface) => Some(interface.to_string()),
    };
    let (word, reason) = match &end.kind {
        EndKind::Local => ("local", None),
        EndKind::Forward => ("forward", None),
        EndKind::Drop(reason) => ("drop", Some(why_dropped(reason, &end, came_in.is_none()))),
        EndKind::Reject(with) => ("reject", Some(with.to_string())),
        EndKind::Unsettled => ("unsettled", None),
    };
    let case = |(question, holds): &(uturn_netfilter::Question, bool)| Case {
        rule: question.by.to_string(),
        question: question.describe(true),
        holds: *holds,
        words: question.describe(*holds),
    };
    WalkEnd {
        share: end.share,
        end: word,
        reason,
        came_in,
        leaves_by: end.out.as_deref().map(str::to_owned),
        leg: end.packet.leg(),
        cases: vec![end.open_questions.iter().map(case).collect()],
        unknown: end.unknown.iter().map(ToString::to_string).collect(),
        supposed: end.supposed,
        steps: end.steps,
    }
}

/// Describes why a packet was dropped, and the error that its sender gets.
fn why_dropped(reason: &DropReason, end: &End, from_here: bool) -> String {
    let heard = |error: &str, v4: &str, v6: &str| match (from_here, end.packet.family()) {
        (true, _) => format!(": the sender's call fails with {error}"),
        (false, Family::V4) => format!(": the sender is told, ICMP {v4}"),
        (false, Family::V6) => format!(": the sender is told, ICMPv6 {v6}"),
    };
    let text = match reason {
        DropReason::Rule(by) | DropReason::Policy(by) => return by.to_string(),
        DropReason::LocalSource => "local-source-drop",
        DropReason::ReversePathFilter => "reverse-path-filter",
        DropReason::MartianSource => "the source is not a unicast address",
        DropReason::MartianDestination => "the destination is not an address to route to",
        DropReason::NoRoute => {
            return format!("no route{}", heard("ENETUNREACH", "network unreachable", "no route"));
        }
        DropReason::Unreachable => {
            let heard = heard("EHOSTUNREACH", "host unreachable", "no route");
            return format!("an unreachable route{heard}");
        }
        DropReason::Prohibited => {
            let prohibited = "administratively prohibited";
            return format!("a prohibiting route{}", heard("EACCES", prohibited, prohibited));
        }
        DropReason::Blackhole if from_here => {
            return "a blackhole route: the sender's call fails with EINVAL".to_owned();
        }
        DropReason::Blackhole => "a blackhole route: the sender hears nothing",
        DropReason::NotForwarding => "the node does not forward",
        DropReason::Invalid => "connection tracking finds it invalid",
    };
    text.to_owned()
}
