//! The servers to which CoreDNS forwards queries.

use std::fmt;
use std::net::SocketAddr;

use uturn_model::Step;

use crate::message::{Answer, Question, Unknown};
use crate::name;

/// A forward target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Upstream {
    /// The address of a server.
    Address(SocketAddr),
    /// The servers in a file of CoreDNS's container: its `/etc/resolv.conf` is the node's.
    File(String),
    /// A placeholder that node-local-dns replaces at start: `__PILLAR__CLUSTER__DNS__`.
    Pillar(String),
}

impl fmt::Display for Upstream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Address(address) => address.fmt(f),
            Self::File(text) | Self::Pillar(text) => f.write_str(text),
        }
    }
}

/// A source of answers from the servers to which CoreDNS forwards queries.
pub trait UpstreamServers {
    /// Returns the answer of the first of these servers that answers.
    fn ask(&self, to: &[Upstream], question: &Question, steps: &mut Vec<Step>) -> Answer;
}

/// The source without known servers: the answer to a forwarded query is unknown.
pub struct NoUpstream;

impl UpstreamServers for NoUpstream {
    fn ask(&self, to: &[Upstream], question: &Question, _: &mut Vec<Step>) -> Answer {
        let to: Vec<String> = to.iter().map(ToString::to_string).collect();
        Answer::Unknown(Unknown {
            why: format!("what {} answers to {}", to.join(", "), name::normal(&question.name)),
            settle: "state what the name leads to in Facts: spec.dns.outside".into(),
        })
    }
}
