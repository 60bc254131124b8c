//! Scans all flows of a cluster, by class.
//!
//! **Owns** the equivalence classes: which clients, nodes and endpoints the rules of a cluster
//! cannot distinguish, a reduced cluster in which each object represents many, and the arithmetic
//! that turns the verdicts of a few into verdicts for all. [`Scanner::scan`] returns a verdict for
//! every class of clients and every target; [`Scanner::explain`] shows one of them hop by hop, and
//! [`Scanner::scan_exhaustively`] uses no classes, for comparison.
//!
//! **Out of scope:** walking packets, which `uturn-path` does. It asks a
//! [`Population`](uturn_path::Population) how many objects each target and endpoint represents.
//!
//! **Start reading** at `scan`; then `schedule` (targets one after the other, walks on all
//! processors), `prepared` (what is computed once), and the folders in the order of the work:
//! `inventory` (nodes and pods), `distinguish` (what rules can tell apart), `partition`
//! (classes and signatures of targets), `reduced` (the cluster that is walked), `failover` (one
//! target after the other, as arithmetic).
//!
//! # How it works
//! A scan of 5,000 nodes, 150,000 pods and 10,000 targets walks a few thousand packets. `inventory`
//! counts nodes and pods that no rule of the cluster can tell apart, once. For each target,
//! `partition::scope` finds the Services whose rules its packets can meet, and
//! `partition::target_classes` puts nodes, endpoints and clients into classes and picks a
//! representative of each. Targets with equal signatures (`partition::signature`) share their
//! verdicts. For the others, `reduced` makes a small cluster in which each object represents many,
//! and the engine walks one client of each class in it (`schedule::target_walk`). Numbers of
//! objects enter as shares, where rules or load balancers pick one of many. Where a load balancer
//! tries one target after the other, the results of a few targets are arranged as those of all
//! (`failover::retry_ring`), and added up by arithmetic (`failover::failover_probability`). Certain
//! results are reused for other lists of targets (`failover::outcome_reuse`). Targets are
//! classified one after the other, walks are distributed to the processors, and the result does not
//! depend on the number of processors. `tests/classes.rs` compares all this with brute force. If a
//! cluster is scanned repeatedly, [`KnownWalks`] caches the results of walks by all that they
//! depend on.
//!
//! A healthy captured node has what would be derived without the capture, and some additional
//! rules: `distinguish::redundant_capture` compares the two, and if they do the same, the node
//! belongs to the class of its equals. Any other captured node is a class of its own, and its rules
//! may treat each Service differently: with such nodes, each target is walked by itself, with all
//! its endpoints, through the captured kernels as they are. Where a packet reaches an object that
//! the reduced cluster omits, the whole cluster is walked.

mod addresses;
mod alike_nodes;
mod clients;
mod distinguish;
mod exhaustive;
mod explain;
mod failover;
mod few_calls;
mod footprint;
mod hop_by_hop;
mod inventory;
mod known;
mod numbers;
mod other_calls;
mod parallel;
mod partition;
mod prepared;
mod reduced;
mod scan;
mod schedule;
mod targets;
mod unmodelled_rules;

pub use alike_nodes::AlikeNodes;
pub use clients::{ClientClass, Pods, ScanResult};
pub use explain::{ClassExplanation, ClassTrait, Closeness, TargetExplanation};
pub use few_calls::FewCalls;
pub use footprint::{Changes, Footprint};
pub use hop_by_hop::ToExplain;
pub use known::{KnownWalks, WalkCounts};
pub use other_calls::other_calls;
pub use scan::Scanner;
pub use targets::{AddressKind, CalledNode, ScanTarget, address_label, node_kinds};
pub use unmodelled_rules::open_rule;
