//! The rules that kube-proxy writes.

#![allow(clippy::unwrap_used, reason = "what is wrong here fails the test")]

mod golden;
mod ipvs;
mod ipvs_golden;
mod ipvs_loads;
mod loads;
mod nftables;
mod nftables_golden;
mod properties;
mod rules;
mod support;
mod versions;
