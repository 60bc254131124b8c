//! `uturn collect`: a running cluster's objects as a bundle.

mod nodes;

use std::path::Path;

use serde_json::{Map, Value};
use uturn_cli::{Failure, Printer, Status};
use uturn_live::{NodeCapture, Reading, rbac, rbac_of_nodes, rbac_of_probes};
use uturn_snapshot::bundle::{BundleManifest, BundleWriter, MANIFEST, NODES, NodeCaptured};

use crate::cli::Collect;
use crate::input::live;

/// The field of the bundle's manifest with the result of each node's capture.
const CAPTURES: &str = "captures";

pub(super) fn run(args: &Collect, printer: &Printer) -> Result<Status, Failure> {
    let choice = nodes::choice(&args.here)?;
    let Some(path) = args.output.as_deref().filter(|_| !args.rbac) else {
        let probes = if args.probe { rbac_of_probes() } else { String::new() };
        printer.result(&format!("{}{probes}", rbac(args.watch)));
        if choice.is_some() {
            printer.result(&rbac_of_nodes(args.here.image.is_some()));
        }
        return Ok(Status::Clean);
    };
    super::must_be_a_place(path)?;
    let session = live::session(args, printer)?;
    let reading = live::for_bundle(&session, args, printer)?;
    let captures = match &choice {
        Some(choice) => nodes::capture(&session, &reading, choice, &args.here, printer)?,
        None => Vec::new(),
    };
    let count = reading.len();
    let there = captures.iter().filter(|capture| capture.captured.is_ok()).count();
    let captured = match captures.len() {
        0 => String::new(),
        wanted => format!(", {there} of {wanted} nodes captured"),
    };
    let is_captured = choice.is_none() || there > 0;
    write(path, &reading, captures).map_err(|why| {
        Failure::unavailable(format!("{} cannot be written: {why}", path.display()))
    })?;
    printer.text(&format!(
        "{}: {count} objects{captured}; uturn scan --bundle reads it\n",
        path.display()
    ));
    // Nodes were requested, and none was captured.
    Ok(if is_captured { Status::Clean } else { Status::Unavailable })
}

fn write(path: &Path, reading: &Reading, captures: Vec<NodeCapture>) -> std::io::Result<()> {
    let mut bundle = BundleWriter::create(path)?;
    let objects = Some(reading.write(&mut bundle)?);
    let mut manifest = BundleManifest { objects, ..BundleManifest::new() };
    let mut entries = Map::new();
    for capture in captures {
        entries.insert(capture.name.to_string(), nodes::entry(&capture));
        let NodeCapture { name, captured, .. } = capture;
        let Ok(captured) = captured else { continue };
        let taken_at = captured.manifest.taken_at.clone();
        manifest.nodes.push(NodeCaptured { node: name.to_string(), taken_at });
        for (file, text) in captured.into_files() {
            bundle.add(&format!("{NODES}/{name}/{file}"), text.as_bytes())?;
        }
    }
    if !entries.is_empty() {
        manifest.others.insert(CAPTURES.to_owned(), Value::Object(entries));
    }
    bundle.add(MANIFEST, manifest.text().as_bytes())?;
    bundle.finish()
}
