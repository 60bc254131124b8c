//! The programs of a pod that can make a call.

mod command;
mod read;
#[cfg(test)]
mod tests;

use std::fmt;
use std::time::Duration;

use crate::call::Call;
use crate::exec::Ran;

/// A program that can make calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Tool {
    /// curl.
    Curl,
    /// Python 3.
    Python,
    /// GNU Wget, run by a shell.
    Wget,
    /// Node.js.
    Node,
    /// BusyBox's wget, run by a shell.
    BusyboxWget,
    /// bash, which opens connections itself.
    Bash,
    /// nc with the option `-z`, run by a shell.
    Nc,
}

/// The end of a call, as the program that made it reports it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CallEnd {
    /// A connection was made, and nothing was sent.
    Connected,
    /// An HTTP answer with this status arrived.
    Status(u16),
    /// The connection was refused.
    Refused,
    /// The connection was reset, or closed without an answer.
    Reset,
    /// The network or the host is unreachable.
    Unreachable,
    /// The TLS handshake failed.
    TlsError,
    /// No answer arrived within the time limit.
    TimedOut,
    /// The name has no address, or the look-up failed.
    NameNotFound,
    /// The program could not make the call, or its output cannot be read: the end is not known.
    Failed(String),
}

/// A call that was made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MeasuredCall {
    /// The end of the call.
    pub end: CallEnd,
    /// The time that the client waited for that end.
    pub waited: Duration,
    /// The address that was called, if the program reports it.
    pub address: Option<std::net::IpAddr>,
}

impl Tool {
    /// All tools, the most informative first.
    pub const ALL: [Self; 7] =
        [Self::Curl, Self::Python, Self::Wget, Self::Node, Self::BusyboxWget, Self::Bash, Self::Nc];

    /// Returns the tool's name on the command line.
    pub fn word(self) -> &'static str {
        match self {
            Self::Curl => "curl",
            Self::Python => "python3",
            Self::Wget => "wget",
            Self::Node => "node",
            Self::BusyboxWget => "busybox-wget",
            Self::Bash => "bash",
            Self::Nc => "nc",
        }
    }

    /// Returns the tool with a name on the command line.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|tool| tool.word() == word)
    }

    /// Returns a description of what the tool shows about a call.
    pub fn shows(self, call: &Call) -> &'static str {
        match (self, call.request()) {
            (_, None) => "connections only: nothing is sent on them",
            (Self::Wget | Self::BusyboxWget, Some(_)) => {
                "whole requests and answers; the time includes the answer's body"
            }
            (_, Some(_)) => "whole requests and answers",
        }
    }

    /// Returns whether the tool can make a call.
    pub fn can(self, call: &Call) -> bool {
        let Some(request) = call.request() else {
            return matches!(self, Self::Python | Self::Node | Self::Bash | Self::Nc);
        };
        match self {
            Self::Curl | Self::Python => true,
            // The others do not follow a redirect to a host whose address is given to them.
            _ if request.follows => false,
            Self::Node => true,
            // Wget checks the certificate for the name in the URL.
            Self::Wget => !request.tls || call.pinned().is_none(),
            Self::BusyboxWget | Self::Bash => !request.tls,
            Self::Nc => false,
        }
    }

    /// Returns a command that shows whether a pod has the tool, and does nothing else.
    pub fn detection(self) -> Vec<String> {
        command::detection(self)
    }

    /// Returns whether the output of that command shows the tool.
    pub fn is_shown_by(self, ran: &Ran) -> bool {
        read::is_shown(self, ran)
    }

    /// Returns the command that makes a call which takes at most `limit`.
    pub fn command(self, call: &Call, limit: Duration) -> Vec<String> {
        command::command(self, call, limit)
    }

    /// Reads how the call of such a command ended.
    pub fn read(self, call: &Call, ran: &Ran) -> MeasuredCall {
        read::read(self, call, ran)
    }
}

impl fmt::Display for Tool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::BusyboxWget => "BusyBox's wget",
            Self::Python => "python3",
            other => other.word(),
        })
    }
}
