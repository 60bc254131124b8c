//! Findings: what the verdicts mean for people.
//!
//! **Owns** the codes ([`Code`]) with their pages, and [`diagnose`]: from all that a scan
//! met to a short list of [`Finding`]s, each with who is hurt, how badly, why, the evidence
//! that can be checked by hand, and cures that the engine has confirmed.
//!
//! **Refuses** to walk packets or to draw: verdicts come from `uturn-path`, tables and
//! files are made by `uturn-report`. A cure that a walk does not confirm is not offered.
//!
//! **Start reading** at [`finding`].

pub mod code;
pub mod cure;
pub mod finding;
pub mod pages;

pub use code::{Code, Severity};
pub use cure::Cure;
pub use finding::{Evidence, Finding, diagnose};
