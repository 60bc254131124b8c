//! How CoreDNS answers, and how a client asks.
//!
//! **Owns** [`Corefile`]: its words as Caddy's lexer cuts them, its server blocks, its
//! plugins in CoreDNS's fixed order, and what they answer to a question ([`Corefile::ask`]),
//! each step with the line it rests on; and [`client`]: what stands in a pod's
//! `resolv.conf`, and which questions come of a name there.
//!
//! **Refuses** I/O, and to guess: a plugin or an expression that nobody models makes the
//! answer [`Answer::Unknown`], with what would settle it. Whom CoreDNS hands questions to is
//! told by the caller ([`Beyond`]). It says nothing about packets: whether the question
//! reaches CoreDNS at all is `uturn-path`'s.
//!
//! **Start reading** at [`Corefile::ask`] in `ask`, then `plugin` and the file of each
//! plugin; `blocks` is the language.
//!
//! ```text
//!  text ─ lexer ─▶ blocks ─ dispenser ─▶ plugin/* ─▶ Corefile
//!                                                      │ ask(question)
//!  name ─ client (ndots, search) ─▶ questions ─────────┤
//!                                                      ▼
//!                              Answer and steps   (again: CNAMEs asked of itself)
//! ```
//!
//! # Guarantees
//! - A reply is the one CoreDNS 1.12 gives to the same question, in records and code; the
//!   order of addresses is that of the objects, which CoreDNS may turn.
//!
//! # Assumptions
//! - CoreDNS has what the API has; what its cache still holds of yesterday is not seen.
//! - A directive that CoreDNS does not have may be a plugin of somebody's own build: what
//!   such a block answers is unknown.
//! - Names are ASCII. Plugins that only watch, sign, cache or count leave answers alone;
//!   `autopath` spares a client questions and gives what they would have given.

mod ask;
mod blocks;
pub mod client;
mod corefile;
mod dispenser;
mod fault;
mod lexer;
mod message;
mod name;
mod pattern;
mod plugin;

pub use ask::{Beyond, Nobody, World};
pub use corefile::Corefile;
pub use fault::Fault;
pub use message::{Answer, Data, Kind, Question, Rcode, Record, Reply, Unknown};
pub use plugin::forward::Upstream;
