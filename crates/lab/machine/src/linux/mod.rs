//! The machine on Linux: both sides of it.

mod boot;
mod channel;
mod client;
mod clients;
mod console;
mod find;
mod frame;
mod inside;
mod job_encoding;
mod outside;
mod preload;
mod processor;
mod root;
mod tools;

pub use client::MachineClient;
pub use inside::{inside, is_inside};
pub use outside::Machine;

use std::io;

use crate::MachineError;

/// Adds to an error what was being done when it occurred.
trait During<T> {
    fn during(self, doing: &str) -> Result<T, MachineError>;
}

impl<T, E: Into<io::Error>> During<T> for Result<T, E> {
    fn during(self, doing: &str) -> Result<T, MachineError> {
        self.map_err(|error| MachineError::System { doing: doing.into(), source: error.into() })
    }
}
