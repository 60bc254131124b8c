//! Captures of the cluster's nodes, for a bundle.

use std::io::{IsTerminal as _, stdin};
use std::time::Duration;

use serde_json::{Value, json};
use uturn_cli::{Failure, Printer};
use uturn_live::{
    CaptureSettings, NodeCapture, NodeChoice, NodePlan, POD_NAMESPACE, Reading, Session,
};
use uturn_node::Options;

use crate::cli::{Here, WhichNodes};
use crate::commands::here::warn;

/// The number of nodes that are named. The rest are counted.
const MAX: usize = 10;

/// Returns the choice of nodes to capture, or `None` if no node is captured.
pub(super) fn choice(args: &Here) -> Result<Option<NodeChoice>, Failure> {
    let choice = match (args.which, args.nodes.as_slice()) {
        (Some(WhichNodes::All), _) => Some(NodeChoice::All),
        (Some(WhichNodes::OneOfEachClass), _) => Some(NodeChoice::OneOfEachClass),
        (Some(WhichNodes::None), _) => None,
        (None, []) => args.image.is_some().then_some(NodeChoice::OneOfEachClass),
        (None, names) => Some(NodeChoice::Named(names.iter().cloned().collect())),
    };
    if choice.is_none() && (args.conntrack || args.counters || args.image.is_some()) {
        return Err(Failure::usage(
            "--conntrack, --counters and --image are for captures of nodes: name some with --nodes \
             or --node, or this machine with --here",
        ));
    }
    Ok(choice)
}

/// Captures nodes. Parts that cannot be captured are reported, and do not stop the rest.
pub(super) fn capture(
    session: &Session,
    reading: &Reading,
    choice: &NodeChoice,
    args: &Here,
    printer: &Printer,
) -> Result<Vec<NodeCapture>, Failure> {
    let plans = reading.nodes_to_capture(choice).map_err(Failure::usage)?;
    if plans.is_empty() {
        printer.note("warning: no node is captured: the API server lists none");
        return Ok(Vec::new());
    }
    let (with, without): (Vec<&NodePlan>, Vec<&NodePlan>) =
        plans.iter().partition(|plan| plan.proxy.is_some());
    if !with.is_empty() {
        let what = "iptables-save, nft, ipset, ip and the like run in the pod of kube-proxy on";
        printer.note(&format!("{what} {}; this changes nothing", named(&with)));
    }
    if let Some(image) = args.image.as_deref().filter(|_| !args.yes) {
        ask(image, &with, &without)?;
    }
    let settings = CaptureSettings {
        options: Options { conntrack: args.conntrack, counters: args.counters },
        limit: Duration::from_secs(args.timeout),
        image: args.image.clone(),
    };
    let note = |note: &str| printer.note(note);
    let captures = session.capture(plans, &settings, &note);
    let captures = captures.ok_or_else(|| {
        Failure::unavailable("interrupted: no bundle is written, and no pod is left")
    })?;
    for NodeCapture { name, captured, pod: _ } in &captures {
        match captured {
            Ok(captured) => warn(&captured.manifest, Some(name), printer),
            Err(why) => printer.note(&format!("warning: node {name} is not captured: {why}")),
        }
    }
    Ok(captures)
}

/// Asks the user whether pods may be created.
fn ask(image: &str, with: &[&NodePlan], without: &[&NodePlan]) -> Result<(), Failure> {
    let mut places = Vec::new();
    if !without.is_empty() {
        places.push(format!("on {}", named(without)));
    }
    if !with.is_empty() {
        places.push(format!("on {}, if kube-proxy's pod there lacks a tool", named(with)));
    }
    let what = format!(
        "--image creates a short-lived pod of {image} in {POD_NAMESPACE}, {}",
        places.join("; ")
    );
    if !stdin().is_terminal() {
        return Err(Failure::usage(format!("{what}: pass --yes to allow it")));
    }
    let mut answer = String::new();
    let asked = Printer::ask(&format!("{what}. Create it? [y/N]"));
    let answered = asked.and_then(|()| stdin().read_line(&mut answer));
    if answered.is_ok() && ["y", "yes"].contains(&answer.trim().to_lowercase().as_str()) {
        Ok(())
    } else {
        Err(Failure::unavailable("no pod was created, and nothing is written"))
    }
}

fn named(plans: &[&NodePlan]) -> String {
    let mut names: Vec<&str> = plans.iter().take(MAX).map(|plan| plan.name.as_str()).collect();
    let more = format!("{} more", plans.len().saturating_sub(MAX));
    if plans.len() > MAX {
        names.push(&more);
    }
    names.join(", ")
}

/// Returns the entry of a node in the bundle's manifest.
pub(super) fn entry(capture: &NodeCapture) -> Value {
    let mut entry = json!({});
    if let Some(pod) = &capture.pod {
        entry["pod"] = json!(pod);
    }
    match &capture.captured {
        Ok(captured) => {
            entry["settled"] = json!(captured.manifest.settled);
            entry["lacks"] = json!(captured.manifest.lacks().collect::<Vec<_>>());
        }
        Err(why) => entry["failed"] = json!(why),
    }
    entry
}
