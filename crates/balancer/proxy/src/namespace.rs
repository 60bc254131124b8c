//! Network namespaces.

use std::fs::File;
use std::path::Path;

use crate::error::StartError;

/// Moves the calling thread, and the threads that it starts from now on, into a network namespace.
/// `namespace` is a path, or a name of `ip netns`.
///
/// # Errors
/// When there is no such namespace, or the privilege to enter it is missing.
pub fn enter(namespace: &str) -> Result<(), StartError> {
    let path = if namespace.contains('/') {
        namespace.into()
    } else {
        Path::new("/run/netns").join(namespace)
    };
    File::open(&path).and_then(uturn_netns::enter).map_err(|source| StartError {
        doing: format!("enter the network namespace {}", path.display()),
        source,
    })
}
