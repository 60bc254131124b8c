//! What the load balancer reports of its work: each event is a line of JSON.

use std::fmt;
use std::net::SocketAddr;

use serde::{Deserialize, Serialize};
use uturn_model::visible;

/// What became of a probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ProbeResult {
    /// The target answered.
    Answered,
    /// Nothing came back in time.
    TimedOut,
    /// The port is closed, or a router on the way refused the probe.
    Refused,
    /// There is no way to it.
    Unreachable,
    /// The target answered, and not as a healthy one does.
    Unexpected,
}

impl fmt::Display for ProbeResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Answered => "answered",
            Self::TimedOut => "timed out",
            Self::Refused => "refused",
            Self::Unreachable => "unreachable",
            Self::Unexpected => "unexpected answer",
        })
    }
}

/// A target of a listener that the kernel forwards.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ForwardedTarget {
    /// The listener that it serves.
    pub listener: SocketAddr,
    /// The transport that the listener speaks: `tcp` or `udp`.
    pub protocol: String,
    /// The target.
    pub target: SocketAddr,
    /// Whether it may be picked.
    pub alive: bool,
}

/// Something happened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum Event {
    /// Every listener listens.
    Ready {
        /// Their addresses.
        listeners: Vec<SocketAddr>,
    },
    /// Another configuration is served.
    Reloaded {
        /// What asked for it: `signal`, `file`, `certificates`, `admin`, or
        /// `takeover` for that of a process before.
        cause: String,
        /// The version of the configuration, as the admin address states it.
        version: String,
        /// How many listeners were made anew, or removed. All others went on as they were.
        #[serde(default)]
        changed: usize,
    },
    /// Probes have decided whether a target is alive, or changed their mind.
    Health {
        /// The listener that it serves.
        listener: SocketAddr,
        /// The transport that the listener speaks: `tcp` or `udp`.
        protocol: String,
        /// The listener's rule.
        rule: usize,
        /// The target.
        target: SocketAddr,
        /// Whether it may be picked.
        alive: bool,
        /// What the latest probe came to.
        result: ProbeResult,
    },
    /// A target failed so often that it is left alone for a while.
    Resting {
        /// The listener that it serves.
        listener: SocketAddr,
        /// The target.
        target: SocketAddr,
    },
    /// The kernel did not take a change of what it forwards; it is tried again.
    NotProgrammed {
        /// Why.
        why: String,
    },
    /// The kernel forwards new connections as health checks have decided. This follows decisions
    /// on targets of TCP and UDP listeners that change what it does.
    Programmed {
        /// The targets that they were about.
        targets: Vec<ForwardedTarget>,
    },
    /// A target was picked for a new connection.
    Pick {
        /// Counts connections from clients.
        connection: u64,
        /// The client.
        client: SocketAddr,
        /// Where it came in.
        listener: SocketAddr,
        /// The target.
        target: SocketAddr,
        /// The rule's turn that this connection took.
        turn: u64,
    },
    /// A target did not answer in time.
    Timeout {
        /// The connection it was for.
        connection: u64,
        /// The target.
        target: SocketAddr,
    },
    /// A target or the kernel refused a connection.
    Refused {
        /// The connection it was for.
        connection: u64,
        /// The target.
        target: SocketAddr,
        /// The error.
        why: String,
    },
    /// A target's answer was passed on.
    Answered {
        /// The connection it was for.
        connection: u64,
        /// The target.
        target: SocketAddr,
        /// The answer's status.
        status: u16,
    },
    /// A client was redirected.
    Redirected {
        /// The connection.
        connection: u64,
        /// The answer's status.
        status: u16,
        /// Where to.
        location: String,
    },
    /// A connection on layer 4 was passed on to its end.
    Passed {
        /// The connection.
        connection: u64,
        /// The target.
        target: SocketAddr,
    },
    /// The load balancer answered by itself, or could not.
    Failed {
        /// The connection.
        connection: u64,
        /// The client.
        client: SocketAddr,
        /// Where it came in.
        listener: SocketAddr,
        /// The status it answered with; none if the client was gone.
        status: Option<u16>,
        /// Why.
        why: String,
    },
}

impl Event {
    /// As a line of JSON, without its end. Nothing in it is obeyed by a terminal, or hidden.
    pub fn to_json(&self) -> String {
        let line = serde_json::to_string(self).expect("strings and numbers only");
        visible::json(&line).into_owned()
    }

    /// Reads a line that [`Event::to_json`] wrote; none when it is no such line.
    pub fn from_json(line: &str) -> Option<Self> {
        serde_json::from_str(line).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_lines_that_can_be_read_back() {
        let event = Event::Pick {
            connection: 7,
            client: "10.1.1.10:40000".parse().unwrap(),
            listener: "10.0.0.100:80".parse().unwrap(),
            target: "10.0.0.11:30080".parse().unwrap(),
            turn: 3,
        };
        let line = event.to_json();
        assert!(line.starts_with(r#"{"event":"pick","connection":7"#), "{line}");
        assert_eq!(Event::from_json(&line), Some(event));
        assert_eq!(Event::from_json("hello"), None);
    }

    #[test]
    fn events_hold_any_text_and_hide_none() {
        let event = Event::Failed {
            connection: 7,
            client: "10.1.1.10:40000".parse().unwrap(),
            listener: "10.0.0.100:80".parse().unwrap(),
            status: Some(400),
            why: "\u{7f}\u{9b}31m\u{202e}\r\n{\"event\":\"serving\"}\u{e0041}".to_owned(),
        };
        let line = event.to_json();
        assert!(!line.contains(visible::is_hidden), "{line:?}");
        assert_eq!(Event::from_json(&line), Some(event));
    }
}
