//! Reading and editing manifests, and what is derived from them.

#![allow(clippy::unwrap_used, reason = "what is wrong here fails the test")]

mod corefiles;
mod derive;
mod edits;
mod facts_page;
mod faults;
mod load_balancers;
mod much_input;
mod objects;
mod oddities;
mod properties;
mod saved;
mod scenarios;
mod served_ingresses;
mod workloads;
