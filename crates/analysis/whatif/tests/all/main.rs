//! The tests of this crate, as one program.

#[path = "../../../scan/tests/classes/dice.rs"]
mod dice;

mod random;
