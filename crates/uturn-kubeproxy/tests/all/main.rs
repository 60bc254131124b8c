//! The rules that kube-proxy writes.

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
