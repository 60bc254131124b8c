//! Findings: what the verdicts mean for the cluster's users.
//!
//! **Owns** the codes ([`Code`]) with their pages, and [`diagnose`]: which turns the
//! results of a scan, calls from outside, health checks and mistakes in objects into a short list of
//! [`Finding`]s, each with the clients that fail, how badly, why, and the evidence that can be
//! checked by hand. [`cure`] has the edits that help, each tried on a copy of the cluster;
//! [`check`] has the checklists.
//!
//! **Out of scope:** walking packets, which `uturn-path` does, and output: `uturn-report` makes
//! tables and files. A cure that a walk does not confirm is not offered.
//!
//! **Start reading** at [`analysis`], which does all of it in one call, then `find`, where
//! each file finds one sort of thing, and [`cure`]; `cloud` has the words of each cloud.

pub mod analysis;
mod call;
mod called;
mod callers;
pub mod cases;
pub mod check;
pub mod clients;
mod cloud;
pub mod code;
pub mod conditions;
pub mod cure;
pub mod doubts;
pub mod evidence;
mod find;
pub mod finding;
pub mod flow_codes;
pub mod group;
mod lack;
mod near_miss;
mod nodes;
mod outcomes;
pub mod pages;
mod policy_chains;
pub mod reason;
mod typos;

pub use analysis::{Analysis, InWords, PreparedCluster, analyze, analyze_knowing};
pub use callers::{short as workload_word, workload_of};
pub use clients::{Clients, Example};
pub use code::{Code, Severity};
pub use cure::Cure;
pub use evidence::Observation;
pub use find::diagnose;
pub use finding::{CureTitle, Finding, Untried, WhyUntried};
pub use group::{Group, GroupCure};
