//! One node's kernel: its rules as text and as a model, and the way a packet takes through it.
//!
//! **Owns** reading what a node's kernel says ([`iptables`] and [`nft`] rules, [`ipset`]s,
//! [`ipvs`] servers, [`addr`]esses, [`routes`], policy rules ([`policy_rules`]), [`sysctl`]s, known
//! connections ([`conntrack`])), printing rules back, and walking a packet
//! through the result ([`Kernel::walk`]): hooks and tables in the kernel's order,
//! connection tracking, address translation, route lookup with its checks of the source.
//!
//! **Refuses** clusters, Services and load balancers: it knows packets and rules only. It
//! does no I/O. Matches that nobody models are kept as written and walked both ways; a
//! walk never guesses. `docs/rules.md` lists what is modelled, from
//! [`iptables::catalogue`].
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
//! - Packets are whole, have a sound checksum and enough hops left to live.
//! - A known connection has seen its reply. Errors that belong to a connection (`RELATED`)
//!   are not walked.
//! - A port that MASQUERADE or SNAT would have to change, because another connection holds
//!   it or at random, is kept.
//! - Of nftables, tables of the families `arp` and `bridge` are read and not walked: what is
//!   walked are packets that are routed. Of base chains with one priority, those that were
//!   made last are asked first, and those of nftables before tables of iptables.

pub mod addr;
mod capture;
mod capture_gaps;
pub mod conntrack;
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
pub mod routes;
mod state;
pub mod sysctl;

pub use capture_gaps::CaptureGap;
pub use error::{LoadError, ParseError};
pub use kernel::Kernel;
pub use packet::{
    Assumptions, Connection, DropReason, End, EndKind, Entry, IpProtocol, Packet, Question,
    QuestionSubject, RejectWith, Scheduled, Transport,
};
pub use packet_facts::{FactSubject, PacketFact};
pub use policy::{PolicyRule, RuleAction, Selectors, Suppress};
pub use state::{
    Interface, NodeState, RouteEntry, RouteKind, TABLE_DEFAULT, TABLE_LOCAL, TABLE_MAIN,
};
pub use sysctl::Sysctls;
