//! `uturn collect`: a running cluster's objects as a bundle.

use std::path::Path;

use uturn_live::{Reading, rbac};
use uturn_snapshot::bundle::{BundleManifest, BundleWriter, MANIFEST};

use crate::cli::Collect;
use crate::input::live;
use crate::printer::Printer;
use crate::status::{Failure, Status};

pub(super) fn run(args: &Collect, printer: &Printer) -> Result<Status, Failure> {
    let Some(path) = args.output.as_deref().filter(|_| !args.rbac) else {
        printer.result(&rbac());
        return Ok(Status::Clean);
    };
    // Before anything is read: that may take a while.
    if path.symlink_metadata().is_ok() {
        return Err(Failure::usage(format!("{} exists already", path.display())));
    }
    let reading = live::for_bundle(args, printer)?;
    write(path, &reading)
        .map_err(|why| Failure::not_here(format!("{} cannot be written: {why}", path.display())))?;
    let count = reading.len();
    printer.result(&format!("{}: {count} objects; uturn scan --bundle reads it\n", path.display()));
    Ok(Status::Clean)
}

fn write(path: &Path, reading: &Reading) -> std::io::Result<()> {
    let mut bundle = BundleWriter::create(path)?;
    let objects = Some(reading.write(&mut bundle)?);
    let manifest = BundleManifest { objects, ..BundleManifest::new() };
    bundle.add(MANIFEST, manifest.text().as_bytes())?;
    bundle.finish()
}
