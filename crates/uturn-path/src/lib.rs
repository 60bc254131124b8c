//! Walks a flow from its client to its target and back, in every way it can go.
//!
//! **Owns** the journey: [`Engine::verdicts`] resolves the name, sends the first packet,
//! lets each node's kernel (`uturn-netfilter`), the fabric and the load balancers
//! (`uturn-lb`) do to it what they do, brings the reply home the same way, and adds the
//! ways up to a [`Verdict`](uturn_model::Verdict). [`scan`] does that for every class of
//! client against every target.
//!
//! **Refuses** to have opinions of its own: what a node does is read from its capture or
//! from what `uturn-kubeproxy` would program there; whom a load balancer picks is decided
//! by `uturn_lb::decide`; what CoreDNS answers is `uturn-dns`'s. It says nothing about cures:
//! that is `uturn-diagnose`.
//!
//! **Start reading** at [`engine`]; for many flows at once, at [`scan`]. Then `exchange` (a
//! request and its reply), `journey` (a packet from place to place; `node` for a node's kernel and
//! its pods' links, `fabric` for what is between nodes, tunnels included, `bridge` for what is
//! special about pods on one, `drop_cause` for why a node stopped it), `listening` (what listens at
//! the end), `balance` (the load balancer's part; `failover` from target to target), `retransmission` (a
//! first packet that is sent again), `redirect` (a redirect that is followed), `at_connect`
//! (calls where another program serves Services in place of kube-proxy).
//!
//! What is not known becomes cases in `cases` where each can be walked. What cannot be walked
//! ends in `Outcome::Unknown`: `unjudged` has what is not given or not modelled, `unmodelled` the
//! load balancers among it. `uncaptured` says what is supposed where a capture lacks a file.
//!
//! ```text
//!  Flow ─ names ─▶ exchange ─▶ travel: pod ─ node ─ fabric ─ node ─ pod
//!                     ▲                          │
//!                     └────── balance ◀──────────┘  (an exchange within the exchange)
//! ```
//!
//! # Classes
//! A scan of 5,000 nodes, 150,000 pods and 10,000 targets walks a few thousand packets.
//! `inventory` counts who is there, once: nodes and pods that no rule of the cluster can tell
//! apart. For each target `scope` finds the Services whose rules its packets can meet, and
//! `target_classes` puts nodes, endpoints and clients into classes and says who stands for each.
//! Targets of which the same can be said (`signature`) share their verdicts; for others `reduced_cluster`
//! makes a small cluster in which each part stands for many, and the engine walks that, one
//! client a class (`target_walk`). Numbers come in as shares, where rules or load balancers pick one
//! of many (`journey`). Where a load balancer asks one target after the other, what a few said
//! is put in line for all (`retry_ring`), and arithmetic adds it up (`failover_probability`); where what they said
//! is certain, it is said again of other lines (`outcome_reuse`). Sketches are made one after the
//! other, walks are shared between processors (`schedule`, `parallel`), and what comes of it does
//! not depend on how many there are. `tests/classes.rs` holds all this against brute force.
//!
//! A captured node that is well has what would be worked out without the capture, and some
//! rules of its own: `redundant_capture` holds the two against each other, and where they come to the
//! same the node is like others of its class. Any other captured node is like no other, and its
//! rules may do with each Service as they please: beside such ones each target is walked for
//! itself, with all its endpoints, through the captured kernels as they are. `captured` says
//! what these tell addresses apart by. Where a packet gets to somebody whom the small cluster
//! lacks, the whole one is walked.
//!
//! # Guarantees
//! - The shares of a verdict's routes add up to 1.
//! - A flow counts as answered only if the reply reaches the client with the addresses
//!   that the client expects.
//!
//! # Assumptions
//! - Nothing moves while a flow is walked: rules, endpoints and targets stand still.

mod asking;
mod at_connect;
mod balance;
mod bridge;
mod captured;
pub mod cases;
mod completeness;
mod discriminators;
mod drop_cause;
pub mod engine;
mod exchange;
mod fabric;
mod failover;
mod failover_probability;
mod ingress_assumptions;
mod interval_set;
mod inventory;
mod journey;
mod listening;
mod located;
mod names;
mod node;
mod outcome_reuse;
mod parallel;
mod partition;
mod pod_addresses;
mod probes;
mod ranges;
mod redirect;
mod reduced_cluster;
mod redundant_capture;
mod refusal;
mod resolve;
mod retransmission;
mod retries;
mod retry_ring;
pub mod scan;
mod schedule;
mod scope;
mod signature;
mod spread;
mod target_classes;
mod target_list;
mod target_walk;
mod uncaptured;
mod unjudged;
mod unmodelled;

pub use bridge::is_unseen;
pub use engine::{Engine, WalkError};
pub use interval_set::IntervalSet;
pub use probes::Health;
pub use scan::{ClientClass, Pods, ScanResult, ScanTarget};
