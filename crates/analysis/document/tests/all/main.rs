//! Documents, read as kubectl reads them.

#![allow(clippy::unwrap_used, reason = "what is wrong here fails the test")]

mod yaml;
