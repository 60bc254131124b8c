//! The outcome of a flow for its client.

use std::fmt;
use std::time::Duration;

/// The outcome of a flow for its client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Outcome {
    /// A successful answer.
    Answered {
        /// The time spent waiting for other targets to fail; zero: at once.
        after: Duration,
    },
    /// An HTTP error status.
    Status {
        /// The status.
        code: u16,
        /// The time until the answer.
        after: Duration,
    },
    /// The connection was refused: nothing listens on the port.
    Refused,
    /// The connection was reset.
    Reset,
    /// The connection was closed without an answer.
    EmptyReply,
    /// The TLS handshake was answered with something other than TLS.
    TlsError,
    /// An ICMP error reports that the destination is unreachable.
    Unreachable,
    /// No answer arrives.
    Hangs,
    /// The name does not resolve.
    NameNotFound,
    /// The outcome depends on something that is not given or not modelled.
    Unknown,
}

impl Outcome {
    /// A successful answer at once.
    pub const AT_ONCE: Self = Self::Answered { after: Duration::ZERO };

    /// Returns whether the client gets a successful answer, at whatever time.
    pub fn is_answered(&self) -> bool {
        matches!(self, Self::Answered { .. })
    }

    /// Returns whether the outcome is a successful answer at once.
    pub fn is_fine(&self) -> bool {
        *self == Self::AT_ONCE
    }

    /// Returns whether the outcome is unknown.
    pub fn is_unknown(&self) -> bool {
        *self == Self::Unknown
    }

    /// Returns whether the outcome is known, and not a successful answer at once.
    pub fn is_bad(&self) -> bool {
        !self.is_fine() && !self.is_unknown()
    }

    /// Returns the time until the answer; `None` if there is none.
    pub fn after(&self) -> Option<Duration> {
        match self {
            Self::Answered { after } | Self::Status { after, .. } => Some(*after),
            Self::Hangs | Self::Unknown => None,
            Self::Refused
            | Self::Reset
            | Self::EmptyReply
            | Self::TlsError
            | Self::Unreachable
            | Self::NameNotFound => Some(Duration::ZERO),
        }
    }

    /// Returns the outcome after an additional wait.
    #[must_use]
    pub fn later(self, waited: Duration) -> Self {
        match self {
            Self::Answered { after } => Self::Answered { after: after + waited },
            Self::Status { code, after } => Self::Status { code, after: after + waited },
            other => other,
        }
    }

    /// Returns the word in JSON output.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Answered { .. } => "answered",
            Self::Status { .. } => "status",
            Self::Refused => "refused",
            Self::Reset => "reset",
            Self::EmptyReply => "empty-reply",
            Self::TlsError => "tls-error",
            Self::Unreachable => "unreachable",
            Self::Hangs => "hangs",
            Self::NameNotFound => "name-not-found",
            Self::Unknown => "unknown",
        }
    }
}

impl fmt::Display for Outcome {
    /// Formats the outcome: `answered at once`, `answered after 4 s`, `504 after 4 s`, `hangs`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Answered { after } => write!(f, "answered {}", When(*after)),
            Self::Status { code, after } => write!(f, "{code} {}", When(*after)),
            Self::NameNotFound => f.write_str("name not found"),
            Self::TlsError => f.write_str("TLS error"),
            Self::EmptyReply => f.write_str("empty reply"),
            Self::Unknown => f.write_str("not known"),
            other => f.write_str(other.word()),
        }
    }
}

/// `at once` or `after 4 s`.
struct When(Duration);

impl fmt::Display for When {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_zero() {
            f.write_str("at once")
        } else {
            write!(f, "after {} s", self.0.as_secs_f64())
        }
    }
}
