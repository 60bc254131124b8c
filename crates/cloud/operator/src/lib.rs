//! The controllers of Services and Ingresses on Tencent Cloud, without Kubernetes: the state that
//! the objects want of the CLB API, the state that the API reports, and the calls that turn one
//! into the other.
//!
//! ```text
//! Cluster ── wanted ──┐
//!  (uturn-lb decides) ├── plan ── run ── Api
//! Describe* ─ observed┘
//! ```
//!
//! **Owns** the translation of `uturn-lb`'s decisions into the API's terms ([`wanted`]), the
//! reading of its answers ([`observed`]), and the order of calls ([`plan`]).
//!
//! **Out of scope:** which listeners and targets a Service or an Ingress has. `uturn-lb` decides
//! that, for the prediction and for this crate. This crate changes nothing that is the user's: no
//! load balancer without this cluster's tags, unless an annotation names it, and on such a load
//! balancer no listener that is not recorded as this cluster's ([`ledger`]).
//!
//! **Start reading** at [`clb`], which has the types of wanted and observed load balancers, then at
//! [`plan`].

pub mod api;
pub mod clb;
pub mod dry_run;
pub mod environment;
pub mod event;
pub mod failure;
pub mod ledger;
pub mod mirror;
pub mod observed;
pub mod plan;
pub mod readiness;
pub mod rehearsal;
pub mod run;
pub mod shares;
pub mod tags;
pub mod wanted;
