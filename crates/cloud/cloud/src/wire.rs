//! The wire protocol, in the order in which a request passes through it: the signature
//! ([`authorization`], [`tc3`]) and the answer ([`envelope`], [`error`]).

pub mod authorization;
pub mod envelope;
pub mod error;
pub mod tc3;
