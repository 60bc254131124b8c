//! JSON, in two passes: the first checks all of a text and keeps nothing of it, the second
//! makes nodes of what is wanted and skips the rest by bytes. So a List of a whole cluster is
//! never in memory as a tree, and yet nothing that is wrong anywhere in it goes unsaid.

mod check;
mod explain;
mod scan;
mod tree;

pub(crate) use tree::Items;

pub(super) use check::check;
pub(super) use tree::read;

#[cfg(test)]
mod tests;
