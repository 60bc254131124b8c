//! Whole commands of `uturn cloud`: exit status, stdout and stderr, as a user gets them.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on panics")]

#[cfg(unix)]
mod cloud_crash;
mod cloud_errors;
mod cloud_serve;
#[path = "../../../../balancer/lb-cli/tests/cli/site.rs"]
#[allow(dead_code, reason = "the tests of the load balancer use the rest")]
mod site;
