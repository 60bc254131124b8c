//! What is compared.

use clap::ValueEnum;

/// A kind of load; a row of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
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
    /// Idle connections that had an answer.
    Memory,
}

impl Row {
    pub(crate) fn title(self) -> &'static str {
        match self {
            Self::Small => "100-byte answers, kept connections",
            Self::Large => "1 MB answers, kept connections",
            Self::New => "a new connection for each request",
            Self::Tls => "TLS, kept connections",
            Self::TlsNew => "TLS, a new connection for each request",
            Self::SourceKept => "source kept (through namespaces)",
            Self::Memory => "2000 idle connections",
        }
    }

    pub(crate) fn path(self) -> &'static str {
        if self == Self::Large { "/large" } else { "/" }
    }

    /// How many connections clients have at a time.
    pub(crate) fn connections(self) -> usize {
        match self {
            Self::Small | Self::Tls | Self::New | Self::SourceKept => 64,
            Self::Large | Self::TlsNew => 32,
            Self::Memory => 2000,
        }
    }

    pub(crate) fn is_new(self) -> bool {
        matches!(self, Self::New | Self::TlsNew)
    }

    pub(crate) fn is_tls(self) -> bool {
        matches!(self, Self::Tls | Self::TlsNew)
    }

    pub(crate) fn keeps_source(self) -> bool {
        self == Self::SourceKept
    }
}
