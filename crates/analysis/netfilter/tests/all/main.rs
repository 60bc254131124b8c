//! Texts of a node, and packets under its rules.

#![allow(clippy::unwrap_used, reason = "what is wrong here fails the test")]

mod branch_memory;
mod capture;
mod catalogue;
mod common;
mod cut;
mod doubling;
mod fragments;
mod golden;
mod index;
mod ipvs;
mod ipvs_golden;
mod ipvs_text;
mod nft_golden;
mod nft_index;
mod nft_restore;
mod nft_semantics;
mod nft_text;
mod noflush;
mod policy_questions;
mod properties;
mod questions;
mod refusals;
mod restore;
mod semantics;
mod sets;
mod text;
mod turns;
