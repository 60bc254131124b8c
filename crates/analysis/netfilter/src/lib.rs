//! A model of one node's kernel: parses its packet filter and routing state, and walks packets
//! through it.
//!
//! **Owns** parsing what a node's kernel reports ([`iptables`] and [`nft`] rules, [`ipset`]s,
//! [`ipvs`] servers, [`addr`]esses, [`routes`], [`policy_rules`], [`sysctl`]s, [`conntrack`]
//! entries), printing rules back, and walking a packet through the result ([`Kernel::walk`]):
//! hooks and tables in the kernel's order, connection tracking, NAT, and route lookups with their
//! checks of the source address.
//!
//! **Out of scope:** clusters, Services and load balancers. It knows packets and rules only. It does no
//! I/O. A match that is not modelled is kept as written, and a walk branches on it instead of
//! guessing. `docs/rules.md` lists what is modelled, from [`iptables::catalogue`].
//!
//! **Start reading** at [`NodeState`] and [`Kernel`], then [`iptables`] and [`nft`].
//!
//! ```text
//!  text ──parse──▶ NodeState ──Kernel::new──▶ Kernel ──walk(Packet, Entry)──▶ [End]
//!                                 (compiled once)       share · kind · steps · unknown
//! ```
//!
//! ```
//! use uturn_model::Family;
//! use uturn_netfilter::{Entry, Kernel, NodeState, Packet, iptables, routes};
//!
//! let rules = "*nat\n:PREROUTING ACCEPT [0:0]\n\
//!     -A PREROUTING -p tcp -m tcp --dport 80 -j DNAT --to-destination 10.1.0.9:8080\nCOMMIT\n";
//! let mut state = NodeState {
//!     iptables: iptables::parse("rules", rules, Family::V4).unwrap(),
//!     routes: routes::parse("routes", "10.1.0.0/24 dev cbr0\n").unwrap(),
//!     ..NodeState::default()
//! };
//! state.sysctls.set("net.ipv4.ip_forward", "1");
//! let kernel = Kernel::new(state).unwrap();
//!
//! let packet = Packet::tcp("192.0.2.1:40000".parse().unwrap(), "192.0.2.80:80".parse().unwrap());
//! let ends = kernel.walk(&packet, &Entry::Interface("eth0".into()), &[]);
//! assert_eq!(ends[0].packet.leg().dst, "10.1.0.9:8080".parse().unwrap());
//! assert_eq!(ends[0].out.as_deref(), Some("cbr0"));
//! ```
//!
//! # Assumptions
//! - Packets are not fragmented, have valid checksums and enough TTL left.
//! - A connection given to a walk has seen its reply. Of ICMP errors that belong to a connection
//!   (`RELATED`), those are walked that a refusal sends ([`Packet::refusal`]).
//! - The source port is kept by MASQUERADE and SNAT, even where the kernel would change it
//!   because another connection holds it or a random port is requested.
//! - Of nftables, tables of the families `arp` and `bridge` are parsed but not walked, since only
//!   routed packets are. Among base chains of equal priority, the one created last runs first,
//!   and nftables chains run before iptables tables.

pub mod addr;
mod capture;
mod capture_gaps;
mod connection;
pub mod conntrack;
mod end;
mod error;
pub mod hash;
pub mod ipset;
pub mod iptables;
pub mod ipvs;
mod json;
mod kernel;
pub mod nft;
mod packet;
mod packet_facts;
mod policy;
pub mod policy_rules;
mod port_names;
mod question;
pub mod routes;
mod rule_text;
mod state;
pub mod sysctl;

pub use capture_gaps::CaptureGap;
pub use connection::{Connection, Scheduled};
pub use end::{DropReason, End, EndKind, RejectWith};
pub use error::{LoadError, ParseError};
pub use kernel::{Budget, Kernel};
pub use packet::{Entry, IpProtocol, Packet, Transport};
pub use packet_facts::{FactSubject, PacketFact};
pub use policy::{PolicyRule, RuleAction, Selectors, Suppress};
pub use question::{Assumptions, Question, QuestionKey, QuestionSubject};
pub use state::{
    Interface, NodeState, RouteEntry, RouteKind, TABLE_DEFAULT, TABLE_LOCAL, TABLE_MAIN,
};
pub use sysctl::Sysctls;
