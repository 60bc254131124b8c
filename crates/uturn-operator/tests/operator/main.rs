//! The controllers against a cloud in memory.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on panics")]

#[path = "../../../uturn-scan/tests/classes/dice.rs"]
mod dice;
mod drift;
mod existing;
mod held;
mod one_decision;
mod rehearsed;
mod rich;
#[expect(dead_code, reason = "the tests of uturn-kube use the rest")]
mod stage;
mod stops;
mod varied;
