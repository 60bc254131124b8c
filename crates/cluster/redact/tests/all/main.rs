//! Redaction as its users see it: what a redacted bundle still says, and what it no longer says.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on panics")]

mod captures;
mod clouds;
mod common;
mod controllers;
#[path = "../../../../analysis/scan/tests/classes/dice.rs"]
mod dice;
mod gateways;
mod grep;
#[path = "../../../../analysis/scan/tests/classes/captures.rs"]
mod random;
mod seeds;
mod settings;
mod verdicts;
