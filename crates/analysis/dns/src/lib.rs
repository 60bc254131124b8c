//! DNS as pods see it: how clients query, and how CoreDNS answers.
//!
//! **Owns** [`Corefile`]: its tokens as Caddy's lexer splits them, its server blocks, its plugins
//! in CoreDNS's fixed order, and their answer to a query ([`Corefile::ask`]), each step with its
//! line as evidence; [`client`]: the contents of a pod's `resolv.conf`, and the queries that a C
//! library derives from a name; and [`wire`], the project's only DNS wire codec.
//!
//! **Out of scope:** I/O. The crate does not guess: a plugin or expression that is not modelled
//! makes the answer [`Answer::Unknown`], with how to find out. The caller provides the servers to
//! which CoreDNS forwards ([`UpstreamServers`]). `uturn-path` models packets: whether a query
//! reaches CoreDNS is not decided here.
//!
//! **Start reading** at [`Corefile::ask`] in `corefile::ask`, then `corefile::plugin` and the file of each
//! plugin; `blocks` is the syntax.
//!
//! ```text
//!  text ─ lexer ─▶ blocks ─ dispenser ─▶ plugin/* ─▶ Corefile
//!                                                      │ ask(question)
//!  name ─ client (ndots, search) ─▶ questions ─────────┤
//!                                                      ▼
//!                              Answer and steps   (CNAME targets are looked up again)
//! ```
//!
//! # Guarantees
//! - A response has the records and the code that CoreDNS 1.12 gives to the same query;
//!   addresses are in the order of the objects, which CoreDNS may rotate.
//!
//! # Assumptions
//! - CoreDNS has the current state of the API; stale cache entries are not modelled.
//! - A directive that CoreDNS does not have may be a plugin of a custom build: the answers of
//!   such a block are unknown.
//! - Names are ASCII. Plugins that only observe, sign, cache or count do not change answers;
//!   `autopath` saves queries and gives the answers that they would have had.

mod blocks;
pub mod client;
mod corefile;
mod dispenser;
mod fault;
mod lexer;
mod message;
mod name;
mod pattern;
mod upstream;
pub mod wire;

pub use corefile::{Corefile, QueryContext, RewrittenName};
pub use fault::Fault;
pub use message::{Answer, Data, Question, Rcode, Record, RecordType, Reply, Unknown};
pub use upstream::{NoUpstream, Upstream, UpstreamServers};
