//! `uturn version`: the version, and the commit that the program was built from.

use uturn_cli::{Printer, Status, print};
use uturn_report::schema::version::Version;

use crate::cli::VersionOutput;

/// The commit and its date, as the build script found them; empty without git.
const BUILT_FROM: &str = env!("BUILT_FROM");

pub(super) fn run(args: &VersionOutput, printer: &Printer) -> Status {
    let version = version();
    let text = |_| match (version.commit, version.date) {
        (Some(commit), Some(date)) => {
            format!("uturn {}, commit {commit} of {date}\n", version.version)
        }
        _ => format!("uturn {}, built without git: commit unknown\n", version.version),
    };
    print(printer, args.output, text, || &version);
    Status::Clean
}

fn version() -> Version<'static> {
    let known = BUILT_FROM.split_once(' ');
    Version {
        version: env!("CARGO_PKG_VERSION"),
        commit: known.map(|(commit, _)| commit),
        date: known.map(|(_, date)| date),
    }
}
