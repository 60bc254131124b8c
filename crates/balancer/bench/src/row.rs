//! What is compared.

use clap::ValueEnum;
use serde::Serialize;

use crate::arguments::Exchange;
use crate::contestant::Contestant;

/// A kind of load.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Row {
    /// Answers of 100 bytes on kept connections.
    Small,
    /// Answers of 1 MB on kept connections.
    Large,
    /// A connection for each request.
    New,
    /// Answers of 100 bytes on kept TLS connections.
    Tls,
    /// A TLS connection, with a full handshake, for each request.
    TlsNew,
    /// The client's own address towards the target.
    SourceKept,
    /// Idle connections that never sent anything.
    MemorySilent,
    /// Idle connections that had an answer.
    Memory,
    /// Layer 4: small requests and answers on kept connections.
    L4Small,
    /// Layer 4: the same, with the source replaced.
    L4Replaced,
    /// Layer 4: a connection for each request.
    L4New,
    /// Layer 4: a connection for each request, with the source replaced.
    L4ReplacedNew,
    /// Layer 4: streams of bytes.
    L4Stream,
    /// Layer 4: datagrams and their answers.
    L4Udp,
}

/// What a row measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Measure {
    /// Requests, and what they cost.
    Speed,
    /// The memory of idle connections.
    Memory,
}

impl Row {
    pub(crate) fn name(self) -> String {
        self.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
    }

    pub(crate) fn title(self) -> &'static str {
        match self {
            Self::Small => "100-byte answers, kept connections",
            Self::Large => "1 MB answers, kept connections",
            Self::New => "a new connection for each request",
            Self::Tls => "TLS, kept connections",
            Self::TlsNew => "TLS, a new connection for each request",
            Self::SourceKept => "source kept (through namespaces)",
            Self::MemorySilent => "idle connections that sent nothing",
            Self::Memory => "idle connections that made one request",
            Self::L4Small => "layer 4, 100-byte answers, kept connections",
            Self::L4Replaced => "layer 4, 100-byte answers, kept connections, source replaced",
            Self::L4New => "layer 4, a new connection for each request",
            Self::L4ReplacedNew => "layer 4, a new connection for each request, source replaced",
            Self::L4Stream => "layer 4, streams",
            Self::L4Udp => "layer 4, datagrams of UDP, each answered",
        }
    }

    pub(crate) fn measure(self) -> Measure {
        match self {
            Self::MemorySilent | Self::Memory => Measure::Memory,
            _ => Measure::Speed,
        }
    }

    /// What is counted.
    pub(crate) fn unit(self) -> &'static str {
        match self {
            Self::L4Stream => "MiB",
            Self::L4Udp => "datagrams",
            _ => "requests",
        }
    }

    /// Who is compared, uturn first.
    pub(crate) fn contestants(self) -> &'static [Contestant] {
        use Contestant::{HaProxy, Nginx, Routing, Uturn};
        match self {
            Self::L4Udp => &[Uturn, Routing],
            row if row.is_layer_4() => &[Uturn, Routing, HaProxy],
            _ => &[Uturn, Nginx, HaProxy],
        }
    }

    pub(crate) fn is_layer_4(self) -> bool {
        self.exchange() != Exchange::Http
    }

    pub(crate) fn exchange(self) -> Exchange {
        match self {
            Self::L4Small | Self::L4Replaced | Self::L4New | Self::L4ReplacedNew => Exchange::Echo,
            Self::L4Stream => Exchange::Stream,
            Self::L4Udp => Exchange::Datagram,
            _ => Exchange::Http,
        }
    }

    pub(crate) fn path(self) -> &'static str {
        if self == Self::Large { "/large" } else { "/" }
    }

    /// How many connections clients have at a time.
    pub(crate) fn connections(self) -> usize {
        match self {
            Self::Large | Self::TlsNew => 32,
            Self::L4Stream => 4,
            Self::MemorySilent | Self::Memory => 2000,
            _ => 64,
        }
    }

    /// How many connections clients have at a time while requests come at a constant rate: enough
    /// for them to be sent on time while some wait.
    pub(crate) fn connections_at_constant_rate(self) -> usize {
        if self.is_new() { 4 * self.connections() } else { self.connections() }
    }

    /// Whether there are times of answers to be measured.
    pub(crate) fn has_constant_rate(self) -> bool {
        self != Self::L4Stream
    }

    pub(crate) fn is_new(self) -> bool {
        matches!(self, Self::New | Self::TlsNew | Self::L4New | Self::L4ReplacedNew)
    }

    pub(crate) fn is_silent(self) -> bool {
        self == Self::MemorySilent
    }

    pub(crate) fn is_tls(self) -> bool {
        matches!(self, Self::Tls | Self::TlsNew)
    }

    pub(crate) fn keeps_source(self) -> bool {
        matches!(
            self,
            Self::SourceKept | Self::L4Small | Self::L4New | Self::L4Stream | Self::L4Udp
        )
    }

    /// Whether clients and targets have namespaces of their own.
    pub(crate) fn is_through_namespaces(self) -> bool {
        self.is_layer_4() || self.keeps_source()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uturn_is_first_and_layer_4_is_beside_plain_routing() {
        for row in Row::value_variants() {
            let contestants = row.contestants();
            assert_eq!(contestants.first(), Some(&Contestant::Uturn), "{row:?}");
            let is_routed = contestants.contains(&Contestant::Routing);
            assert_eq!(is_routed, row.is_layer_4(), "{row:?}");
            assert_eq!(row.name().starts_with("l4-"), row.is_layer_4(), "{row:?}");
        }
    }
}
