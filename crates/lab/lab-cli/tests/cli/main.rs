//! Whole commands of `uturn lab`: exit status, stdout and stderr, as a user gets them.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on panics")]

#[path = "../../../../uturn/tests/cli/conforms.rs"]
#[expect(dead_code, reason = "other tests use the rest")]
mod conforms;
mod lab;
#[cfg(target_os = "linux")]
mod machine;
#[cfg(target_os = "linux")]
mod machine_ends;
