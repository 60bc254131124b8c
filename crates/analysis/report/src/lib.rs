//! The output formats of results: text, pictures and pages for people, JSON and others for
//! programs.
//!
//! **Owns** every form that a result can take. Text ([`scan`], [`trace`], [`lab`]) fits the given
//! width and is coloured only if that is requested; JSON ([`json`]) follows the contract
//! ([`schema`]), and YAML ([`yaml`]) has the same content. CI reads [`sarif`] and [`junit`], and
//! its known findings are a [`baseline`]; [`svg`] draws a flow's route, and [`html`] shows
//! everything on one page.
//!
//! **Out of scope:** printing. This crate makes strings, and the binary decides where they go.
//! `uturn-diagnose` decides what is a finding.
//!
//! **Start reading** at [`style`] and [`words`], which the others share.

#[cfg(test)]
mod any_text;
pub mod baseline;
pub mod check;
pub mod classes;
pub mod cure;
pub mod fold;
pub mod html;
pub mod json;
pub mod junit;
pub mod lab;
pub mod lb;
mod lines;
mod markup;
pub mod migrate;
pub mod probe;
#[cfg(test)]
mod probe_forms;
#[cfg(test)]
mod sample;
pub mod sarif;
pub mod scan;
pub mod schema;
pub mod style;
mod supposed;
mod survive;
pub mod svg;
pub mod table;
pub mod trace;
#[cfg(test)]
mod untried_tests;
pub mod walk;
#[cfg(test)]
mod well_formed;
pub mod whatif;
pub mod words;
pub mod xml;
pub mod yaml;

pub use scan::ScanReport;
pub use style::Style;
pub use whatif::WhatIfReport;
