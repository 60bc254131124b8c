//! `uturn collect --redact`: a bundle that can be shown to others.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::Path;

use uturn_cli::{Failure, Printer, Status, faulty};
use uturn_redact::{Key, RedactError, Redacted, redact};
use uturn_snapshot::Manifests;
use uturn_snapshot::bundle::BundleWriter;

use crate::cli::{Collect, Here};
#[cfg(feature = "live")]
use crate::input::live;

pub(super) fn run(args: &Collect, path: &Path, printer: &Printer) -> Result<Status, Failure> {
    let Here { nodes, which, image, .. } = &args.here;
    if !nodes.is_empty() || which.is_some() || image.is_some() {
        return Err(Failure::usage(
            "--redact captures no nodes: collect them first, then redact that bundle with \
             uturn collect --bundle PATH --redact",
        ));
    }
    let map = args.redaction.redact_map.as_deref();
    super::must_be_a_place(path)?;
    map.map_or(Ok(()), super::must_be_free)?;
    let redacted = redact(&read(args, printer)?, &Key::random()).map_err(|why| match why {
        RedactError::Faults(faults) => faulty(&faults),
        RedactError::Unreadable(_) | RedactError::UnreadableCapture { .. } => {
            Failure::unavailable(format!("{why}: nothing is written"))
        }
    })?;
    let unwritten = |path: &Path, why| {
        Failure::unavailable(format!("{} cannot be written: {why}", path.display()))
    };
    if let Some(map) = map {
        write_map(map, &redacted).map_err(|why| unwritten(map, why))?;
    }
    let written = BundleWriter::create(path).and_then(|bundle| redacted.write(bundle));
    written.map_err(|why| {
        // Without the bundle the table is of no use. If it cannot be removed, it stays.
        let _ = map.map(fs::remove_file);
        unwritten(path, why)
    })?;
    for (what, count) in &redacted.left_out {
        printer.note(&format!("left out, since it cannot be redacted: {what} ({count})"));
    }
    printer.result(&format!(
        "{}: {} words and {} addresses were replaced; uturn scan --bundle reads it\n",
        path.display(),
        redacted.word_count(),
        redacted.address_count(),
    ));
    Ok(Status::Clean)
}

fn read(args: &Collect, printer: &Printer) -> Result<Manifests, Failure> {
    let (files, bundles) = (&args.redaction.files, &args.redaction.bundles);
    if files.is_empty() && bundles.is_empty() {
        return running(args, printer);
    }
    let (manifests, faults) = Manifests::gather(files, bundles);
    if faults.is_empty() { Ok(manifests) } else { Err(faulty(&faults)) }
}

#[cfg(feature = "live")]
fn running(args: &Collect, printer: &Printer) -> Result<Manifests, Failure> {
    let session = live::session(args, printer)?;
    Ok(live::for_bundle(&session, args, printer)?.manifests(Manifests::default()))
}

#[cfg(not(feature = "live"))]
fn running(_: &Collect, _: &Printer) -> Result<Manifests, Failure> {
    Err(Failure::unavailable(
        "nothing to redact: name manifests with -f PATH or a bundle with --bundle PATH (this uturn \
         was built without the feature `live`, which reads a running cluster)",
    ))
}

/// Writes the table so that only the owner can read it.
fn write_map(path: &Path, redacted: &Redacted) -> io::Result<()> {
    let mut options = File::options();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let written = options.open(path)?.write_all(redacted.map().as_bytes());
    written.inspect_err(|_| drop(fs::remove_file(path)))
}
