//! Runs iptables with the back end (nf_tables or legacy) that this kernel supports.
//!
//! Most kernels support both; one without nf_tables supports only the legacy one. The first
//! successful load decides which is used.

use std::io;
use std::sync::OnceLock;

use uturn_model::Family;

use super::namespace::Namespace;
use super::system::{During, find, output, run};
use crate::LabError;

/// The infix between `iptables` and `-restore`, the preferred one first.
const BACK_ENDS: [&str; 2] = ["", "-legacy"];

static CHOSEN: OnceLock<&str> = OnceLock::new();

/// Returns whether any back end is installed.
pub(crate) fn are_installed() -> bool {
    installed().next().is_some()
}

/// Loads rules with each back end in turn until one accepts them, which is used from then on. If
/// none does, the inner result has the first one's error.
pub(crate) fn try_out(rules: &str) -> io::Result<Result<(), String>> {
    let mut first = None;
    for end in installed() {
        match run(&program(end, Family::V4, "restore"), &["-w"], rules)? {
            Ok(()) => {
                CHOSEN.get_or_init(|| end);
                return Ok(Ok(()));
            }
            Err(reason) => drop(first.get_or_insert(reason)),
        }
    }
    Ok(Err(first.unwrap_or_else(|| "iptables is not installed".into())))
}

/// Loads the rules of a family and replaces existing ones.
pub(crate) fn restore(
    space: &Namespace,
    family: Family,
    text: &str,
    doing: &str,
) -> Result<(), LabError> {
    start_restore(space, family, &["-w"], text, doing)
}

/// Loads the rules of a family and keeps existing ones.
pub(crate) fn restore_more(
    space: &Namespace,
    family: Family,
    text: &str,
    doing: &str,
) -> Result<(), LabError> {
    start_restore(space, family, &["-w", "--noflush"], text, doing)
}

/// Like [`restore_more`], in the calling thread's namespace. The inner result has the program's
/// error.
pub(crate) fn restore_more_here(family: Family, text: &str) -> io::Result<Result<(), String>> {
    run(&program(chosen(), family, "restore"), &["-w", "--noflush"], text)
}

/// Returns the output of `iptables-save`. Works only within [`Namespace::run`].
pub(crate) fn save(family: Family, arguments: &[&str]) -> io::Result<String> {
    output(&program(chosen(), family, "save"), arguments)
}

fn start_restore(
    space: &Namespace,
    family: Family,
    arguments: &[&str],
    text: &str,
    doing: &str,
) -> Result<(), LabError> {
    let program = program(chosen(), family, "restore");
    space
        .run(|| run(&program, arguments, text))
        .during(&format!("{doing}: start {program}"))?
        .map_err(|reason| LabError::Program { doing: doing.into(), reason })
}

fn chosen() -> &'static str {
    CHOSEN.get().copied().or_else(|| installed().next()).unwrap_or_default()
}

fn installed() -> impl Iterator<Item = &'static str> {
    BACK_ENDS.into_iter().filter(|end| find(&program(end, Family::V4, "restore")).is_some())
}

fn program(end: &str, family: Family, what: &str) -> String {
    let tables = match family {
        Family::V4 => "iptables",
        Family::V6 => "ip6tables",
    };
    format!("{tables}{end}-{what}")
}
