//! Events that the load balancer reports about its work. Each event is a line of JSON.

use std::fmt;
use std::net::SocketAddr;

use serde::{Deserialize, Serialize};
use uturn_model::visible;

/// The result of a probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ProbeResult {
    /// The target answered.
    Answered,
    /// No answer arrived in time.
    TimedOut,
    /// The port is closed, or a router on the path refused the probe.
    Refused,
    /// There is no route to the target.
    Unreachable,
    /// The target answered, but not as a healthy target does.
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
    /// The listener that the target serves.
    pub listener: SocketAddr,
    /// The transport of the listener: `tcp` or `udp`.
    pub protocol: String,
    /// The target.
    pub target: SocketAddr,
    /// Whether the target may be picked.
    pub alive: bool,
}

/// An event in the work of the load balancer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum Event {
    /// All listeners are listening.
    Ready {
        /// The addresses of the listeners.
        listeners: Vec<SocketAddr>,
    },
    /// Another configuration is being served.
    Reloaded {
        /// The cause of the reload: `signal`, `file`, `certificates`, `admin`, or `takeover` for
        /// the configuration of a previous process.
        cause: String,
        /// The version of the configuration, as the admin address states it.
        version: String,
        /// The number of listeners that were created or removed. All others continued unchanged.
        #[serde(default)]
        changed: usize,
    },
    /// Probes have decided whether a target is alive, or have changed that decision.
    Health {
        /// The listener that the target serves.
        listener: SocketAddr,
        /// The transport of the listener: `tcp` or `udp`.
        protocol: String,
        /// The index of the listener's rule.
        rule: usize,
        /// The target.
        target: SocketAddr,
        /// Whether the target may be picked.
        alive: bool,
        /// The result of the latest probe.
        result: ProbeResult,
    },
    /// A target failed so often that it is ejected for a while.
    Resting {
        /// The listener that the target serves.
        listener: SocketAddr,
        /// The target.
        target: SocketAddr,
    },
    /// The kernel did not accept a change of its forwarding rules; the change is tried again.
    NotProgrammed {
        /// The reason why the kernel did not accept the change.
        why: String,
    },
    /// The kernel forwards new connections as health checks have decided. This event follows
    /// decisions on targets of TCP and UDP listeners that change the kernel's rules.
    Programmed {
        /// The targets of these decisions.
        targets: Vec<ForwardedTarget>,
    },
    /// A target was picked for a new connection.
    Pick {
        /// The number of the connection, counted over all clients.
        connection: u64,
        /// The client.
        client: SocketAddr,
        /// The listener that accepted the connection.
        listener: SocketAddr,
        /// The target.
        target: SocketAddr,
        /// The scheduler's turn that the connection took in its rule.
        turn: u64,
    },
    /// A target did not answer in time.
    Timeout {
        /// The connection for which the target was tried.
        connection: u64,
        /// The target.
        target: SocketAddr,
    },
    /// A target or the kernel refused a connection.
    Refused {
        /// The connection for which the target was tried.
        connection: u64,
        /// The target.
        target: SocketAddr,
        /// The error.
        why: String,
    },
    /// A target's answer was forwarded to the client.
    Answered {
        /// The connection for which the target answered.
        connection: u64,
        /// The target.
        target: SocketAddr,
        /// The status of the answer.
        status: u16,
    },
    /// A client was redirected.
    Redirected {
        /// The connection.
        connection: u64,
        /// The status of the answer.
        status: u16,
        /// The location to which the client was redirected.
        location: String,
    },
    /// A layer 4 connection was forwarded until it ended.
    Passed {
        /// The connection.
        connection: u64,
        /// The target.
        target: SocketAddr,
    },
    /// The load balancer answered itself because of a failure, or could not answer.
    Failed {
        /// The connection.
        connection: u64,
        /// The client.
        client: SocketAddr,
        /// The listener that accepted the connection.
        listener: SocketAddr,
        /// The status of the answer; `None` if the client was gone.
        status: Option<u16>,
        /// The reason for the failure.
        why: String,
    },
}

impl Event {
    /// Formats the event as a line of JSON, without the line end. Characters that a terminal would
    /// interpret or hide are escaped.
    pub fn to_json(&self) -> String {
        let line = serde_json::to_string(self).expect("strings and numbers only");
        visible::json(&line).into_owned()
    }

    /// Reads a line that [`Event::to_json`] wrote. Returns `None` for any other line.
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
