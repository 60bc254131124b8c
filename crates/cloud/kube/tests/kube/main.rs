//! The controllers against an API server and a cloud, both in memory.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on panics")]

mod attacks;
mod configs;
mod faults;
mod gates;
mod holdups;
mod leases;
mod lives;
mod manifests;
mod moves;
mod outages;
#[path = "../../../operator/tests/operator/paced.rs"]
mod paced;
mod processes;
mod random;
mod rights;
mod scale;
mod scopes;
mod server;
#[path = "../../../operator/tests/operator/stage.rs"]
#[expect(dead_code, reason = "the operator's own tests use the rest")]
mod stage;
mod tenants;
mod tenants_random;
mod unserved;
mod world;
