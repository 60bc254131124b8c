//! How results look: text for people, JSON and YAML for programs.
//!
//! **Owns** every form that a result can take. Text ([`scan`], [`trace`], [`lab`]) fits the
//! width it is given and carries colour only where it is asked to; JSON ([`json`]) follows
//! the contract, and YAML ([`yaml`]) is the same tree written otherwise.
//!
//! **Refuses** to print: it makes strings, the binary decides where they go. It also
//! refuses to judge: what is a finding was decided before.
//!
//! **Start reading** at [`style`] and [`words`], which the others share.

pub mod cure;
pub mod json;
pub mod lab;
pub mod scan;
pub mod style;
pub mod table;
pub mod trace;
pub mod walk;
pub mod words;
pub mod yaml;

pub use scan::ScanReport;
pub use style::Style;
