//! A request and its answer, on layer 7.

mod answer;
mod attempt;
mod body;
mod headers;
mod record;
mod request;
mod service;

pub(crate) use record::record_unreadable;
pub(crate) use service::{Client, Upgrade, serve};
