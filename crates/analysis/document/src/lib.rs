//! Reads and edits documents in YAML and JSON, with the place of every value.
//!
//! **Owns** texts from files, folders and standard input ([`gather`]), up to a limit that a whole
//! command shares ([`Room`]); the reading of their documents ([`read()`]) and the refusals
//! ([`Trouble`], [`Fault`]); edits that leave the rest of a text as it is ([`edit`]); and the
//! writing of YAML ([`yaml`]).
//!
//! **Out of scope:** what a document says. This crate knows no kind of object and no field: the
//! caller states which fields of JSON are kept ([`Fields`]).
//!
//! **Start reading** at [`read()`], then `reader::yaml` and `reader::json`.
//!
//! YAML is read by a parser of this crate, with the meaning that kubectl gives it. JSON is read in
//! two passes, and a List one item at a time: a file of a whole cluster is never in memory as a
//! tree.

pub mod edit;
mod fault;
mod reader;
mod room;
mod source;
pub mod whole_file;
pub mod yaml;

pub use fault::{Fault, Faults, Note, Twice};
pub use reader::{
    Entry, Fields, Items, Keep, Node, Trouble, Value, cut, from_base64, integer, json_value, read,
    shorten, truth,
};
pub use room::{Room, UnpackLimit};
pub use source::{
    Gathered, Named, Select, Source, gather, gather_of_folder, gather_selected, is_manifest,
    starts_with_dots,
};
