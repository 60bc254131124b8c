//! Walks a flow from its client to its target and back, in every way it can go.
//!
//! **Owns** the journey: [`Engine::verdict`] resolves the name, sends the first packet, passes it
//! through each node's kernel (`uturn-netfilter`), the fabric and the load balancers (`uturn-lb`),
//! returns the reply the same way, and adds the ways up to a [`Verdict`](uturn_model::Verdict).
//!
//! **Out of scope:** what other crates decide. A node's rules come from its capture or from
//! `uturn-kubeproxy`; `uturn_lb::decide` picks a load balancer's target; `uturn-dns` answers for
//! CoreDNS. This crate knows nothing of classes of clients: `uturn-scan` walks a few for
//! all, and states through a [`Population`] how many objects each target and endpoint represents.
//! Cures are `uturn-diagnose`'s.
//!
//! **Start reading** at `engine` (a cluster made ready, which walks share, and `walk`, the state
//! of one), `questions` (what an engine answers) and `verdict` (from a flow to its verdict). Then,
//! in the order of a packet:
//!
//! - `resolve`: clients and destinations as peers and addresses; `names` resolves hosts.
//! - `exchange`: a request and its reply. `call` is a client's, with the redirects that it follows;
//!   `listening` decides what listens at the end, `balance` is the load balancer's part, with
//!   `failover` from target to target and `health` (probes); `at_connect` is for calls where
//!   another program serves Services in place of kube-proxy.
//! - `journey`: a packet from place to place. `node` has each node's kernel, `journey::fabric` the
//!   network between nodes and `addresses` what it knows of an address, `bridge` the special cases
//!   of pods on one bridge, `drop_cause` the reasons why a node stopped a packet, `retransmission`
//!   first packets that are sent again.
//! - `services`: which Services have an address or a port.
//! - `packet`: the types of all of these.
//!
//! Functions take the cluster or the engine for a question, and the walk to follow a packet or a
//! request. A module imports from those of the lines below it only:
//!
//! ```text
//!  questions
//!  what_if
//!  verdict
//!  exchange
//!  journey, resolve
//!  services, unjudged
//!  engine
//!  names, node, packet
//! ```
//!
//! Unknown facts become cases in `what_if` if each case can be walked. Flows that cannot be walked
//! end in `Outcome::Unknown`: `unjudged` handles what is not given or not modelled, `unmodelled`
//! load balancers that are not modelled. `engine::uncaptured` lists the assumptions where a capture
//! lacks a file.
//!
//! ```text
//!  Flow ─ resolve ─▶ exchange ─▶ journey: pod ─ node ─ fabric ─ node ─ pod
//!                       ▲                            │
//!                       └──────── balance ◀──────────┘  (an exchange within the exchange)
//! ```
//!
//! # Guarantees
//! - The shares of a verdict's routes add up to 1.
//! - A flow counts as answered only if the reply reaches the client with the addresses
//!   that the client expects.
//! - What keeps a flow from being walked is a [`WalkError`], the same one each time.
//!
//! # Assumptions
//! - The state does not change while a flow is walked: rules, endpoints and targets stay the same.

mod add_missing;
mod conditions;
mod engine;
mod error;
mod exchange;
mod journey;
mod names;
mod node;
mod options;
mod origin;
mod outline;
mod packet;
mod population;
mod questions;
mod reason_set;
mod resolve;
mod services;
mod unjudged;
mod unmodelled;
mod verdict;
pub mod what_if;

pub use add_missing::add_missing;
pub use conditions::{is_condition, without_names};
pub use engine::header_servers::HeaderServers;
pub use engine::walk::{ProbeCache, Walk};
pub use engine::{Engine, KernelCounts};
pub use error::WalkError;
pub use exchange::health::Health;
pub use exchange::listening::{Tls, tls_of};
pub use exchange::proxy_header::supposed_of_servers;
pub use exchange::uncertain_behaviour::supposed_of_balancer;
pub use journey::{is_both_ways, stands_for_public_address};
pub use names::has_musl_image;
pub use node::NodeRuntime;
pub use node::switches::is_unseen;
pub use options::{Detail, Options};
pub use outline::{outline, outline_of_listeners, outline_with};
pub use packet::{Exchange, Redirected, Request, Waiting};
pub use population::{
    Failover, FailoverRequest, Individuals, KnownDestination, Population, Results, TriesTargets,
};
pub use reason_set::ReasonSet;
pub use resolve::misled::Misled;
pub use resolve::{ResolvedTarget, any_client, usual_protocol};
pub use services::places;
pub use uturn_dns::RewrittenName;
