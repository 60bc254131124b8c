//! `uturn diff`: what becomes of calls between two clusters, such as the two sides of a pull request.

use std::path::Path;

use uturn_cli::{Failure, Printer, Status, faulty};
use uturn_diagnose::analysis::Input;
use uturn_report::whatif::{Change, WhatIfReport};
use uturn_snapshot::bundle::{MANIFEST, NODES, OBJECTS, is_archive};
use uturn_whatif::compare::{Scope, differing};
use uturn_whatif::{State, compare, with_losses};

use super::whatif::{finish, needs_evidence};
use crate::cli::{CONTEXT, ClusterArgs, Diff};
use crate::input;

pub(super) fn run(args: &Diff, printer: &Printer) -> Result<Status, Failure> {
    let namespace = args.namespace.as_deref();
    let read = |side: &str| {
        let input = input::read(&one_side(args, side), namespace, printer, usize::MAX)?;
        if input.is_empty() {
            return Err(Failure::usage(format!("{side} contains no object: nothing to compare")));
        }
        Ok(input)
    };
    let (before, mut after): (Input, Input) = (read(&args.before)?, read(&args.after)?);
    let differing = differing(&before.manifests, &after.manifests);
    let (old, new) = (&before.loaded.cluster, &after.loaded.cluster);
    if let Some(closed) = with_losses(&after.manifests, old, new) {
        after.loaded = closed.load().map_err(|faults| faulty(&faults))?;
        after.manifests = closed;
    }
    let comparison = compare(
        State { manifests: &before.manifests, cluster: &before.loaded.cluster },
        State { manifests: &after.manifests, cluster: &after.loaded.cluster },
        Scope { namespace, deleted: &[], with_evidence: needs_evidence(args.output) },
    )?;
    let changes = differing
        .into_iter()
        .map(|(how, object)| Change { change: format!("{how} {object}"), objects: vec![object] });
    let report =
        WhatIfReport { changes: changes.collect(), comparison, input: args.cluster.as_typed() };
    Ok(finish(&report, args.output, args.fail_on, printer))
}

/// Returns the options that name one side: what belongs to both, and this side.
fn one_side(args: &Diff, side: &str) -> ClusterArgs {
    let mut cluster = args.cluster.clone();
    if let Some(context) = side.strip_prefix(CONTEXT) {
        cluster.api.context = Some(context.to_owned());
        cluster.api.live = true;
        return cluster;
    }
    let path = Path::new(side);
    let is_bundle = is_archive(path)
        || path.join(MANIFEST).is_file()
        || path.join(OBJECTS).is_dir() && path.join(NODES).is_dir();
    if is_bundle {
        cluster.inputs.bundles.push(path.to_owned());
    } else {
        cluster.inputs.files.push(path.to_owned());
    }
    cluster
}
