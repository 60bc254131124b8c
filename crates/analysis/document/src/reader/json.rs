//! Reads JSON in two passes: the first checks the whole text and keeps nothing, the second makes
//! nodes of wanted fields and skips the rest byte by byte. A List of a whole cluster is never in
//! memory as a tree, but every fault in it is reported.

mod check;
mod explain;
mod scan;
mod tree;

pub use tree::Items;

pub(super) use check::check;
pub(super) use tree::read;

#[cfg(test)]
mod tests;
