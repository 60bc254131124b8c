//! The functions of `machine`, for systems without small machines.

use std::path::Path;

use uturn_cli::{Failure, Status};
use uturn_machine::Unavailable;

use super::WireRequest;
use crate::cli::LabExec;

/// Always fails.
pub(super) fn keep(_request: WireRequest) -> Result<(), String> {
    Err(Unavailable::NotLinux.to_string())
}

/// Always fails.
pub(super) fn exec(_socket: &Path, _args: &LabExec) -> Result<Status, Failure> {
    Err(Failure::unavailable(Unavailable::NotLinux.to_string()))
}
