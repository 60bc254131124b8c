//! Network namespaces.

use std::fs::File;
use std::os::fd::AsFd;
use std::path::Path;

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

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
    File::open(&path)
        .and_then(|file| {
            Ok(move_into_link_name_space(file.as_fd(), Some(LinkNameSpaceType::Network))?)
        })
        .map_err(|source| StartError {
            doing: format!("enter the network namespace {}", path.display()),
            source,
        })
}
