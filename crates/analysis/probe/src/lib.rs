//! Makes real calls with the programs of a pod, and holds how they end against a prediction.
//!
//! ```text
//! Call ── Tool::command ── Exec (a pod) ── Tool::read ── MeasuredCall ── judge ── Judgement
//! ```
//!
//! **Owns** what is called ([`Call`]); which programs can make a call, how each is run and what its
//! output means ([`Tool`]); the calls one after the other ([`measure()`]); whether they fit a
//! prediction, and with which probability ([`judge()`]).
//!
//! **Out of scope:** how a command gets into a pod, which an [`Exec`] knows. It predicts nothing, and
//! reads no cluster. It passes hosts and paths as arguments of their own, never inside the text of
//! a script.
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
