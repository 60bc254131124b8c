//! Makes real calls with the programs of a pod, and compares their outcomes with a prediction.
//!
//! ```text
//! Call ── Tool::command ── Exec (a pod) ── Tool::read ── MeasuredCall ── judge ── Judgement
//! ```
//!
//! **Owns** the description of a call ([`Call`]); the programs that can make a call, how each is
//! run and how its output is read ([`Tool`]); making the calls one after the other ([`measure()`]);
//! and the comparison of the calls with a prediction ([`judge()`]), with its probability.
//!
//! **Out of scope:** running a command in a pod, which an [`Exec`] does. The crate predicts
//! nothing, and reads no cluster. It passes hosts and paths as arguments of their own, never inside
//! the text of a script.
//!
//! **Start reading** at [`measure()`] and [`judge()`].

mod call;
mod chance;
mod exec;
mod judge;
mod run;
mod tool;

pub use call::{Call, HttpRequest, InvalidCall};
pub use exec::{Exec, ExecError, Ran};
pub use judge::{Expected, Fit, Judgement, Known, Rest, Row, judge, outcomes};
pub use run::{Limits, Measurement, Stopped, find_tool, measure};
pub use tool::{CallEnd, MeasuredCall, Tool};
