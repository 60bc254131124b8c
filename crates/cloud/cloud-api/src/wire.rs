//! The wire protocol: the signature of a request ([`tc3`]) and the answer ([`envelope`], [`error`]).

pub mod envelope;
pub mod error;
pub mod tc3;
