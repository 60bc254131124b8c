//! The controllers against a cloud in memory.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on panics")]

#[path = "../../../../analysis/scan/tests/classes/dice.rs"]
mod dice;
mod direct;
mod drift;
mod existing;
mod held;
mod ingresses;
mod nodes;
mod one_decision;
mod paced;
mod refused;
mod rehearsed;
mod rich;
#[expect(dead_code, reason = "the tests of uturn-kube use the rest")]
mod stage;
mod stops;
#[path = "../../../../analysis/scan/tests/classes/targets.rs"]
mod targets;
mod varied;
