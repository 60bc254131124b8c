//! Enters network namespaces.

use std::io;
use std::os::fd::AsFd;
use std::thread;

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

/// Moves the calling thread, and the threads that it starts from now on, into a network namespace.
///
/// # Errors
/// When the privilege to enter the namespace is missing.
pub fn enter(namespace: impl AsFd) -> io::Result<()> {
    Ok(move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network))?)
}

/// Runs a closure on a new thread inside a network namespace. Threads that the closure starts stay
/// there, and sockets keep the namespace that they were opened in.
///
/// # Errors
/// When the namespace cannot be entered, or the closure fails.
pub fn run_in<T: Send>(
    namespace: impl AsFd + Send,
    work: impl FnOnce() -> io::Result<T> + Send,
) -> io::Result<T> {
    in_new_thread(|| {
        enter(namespace)?;
        work()
    })
}

/// Runs a closure on a new thread, which may change its namespaces: they belong to a thread.
///
/// # Errors
/// When there can be no more threads, or the closure fails.
pub fn in_new_thread<T: Send>(work: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
    thread::scope(|scope| {
        let thread = thread::Builder::new().spawn_scoped(scope, work)?;
        thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}
