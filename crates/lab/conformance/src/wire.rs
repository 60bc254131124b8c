//! Sends packets into a node and observes where they come out, with `conformance/wire`.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{IpAddr, SocketAddr};
use std::process::{ChildStdin, ChildStdout};

use serde::{Deserialize, Serialize, Serializer};
use uturn_model::{Family, Protocol};

use crate::fault::{During as _, Fault, Outcome};
use crate::workspace::{Namespace, Running, Workspace};

/// The wire program of one node.
#[derive(Debug)]
pub(crate) struct Wire {
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    _running: Running,
}

/// The first packet of a flow.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Probe {
    /// The interface through which the packet arrives; empty when a process of the node sends the
    /// packet.
    #[serde(rename = "in")]
    pub(crate) device: String,
    #[serde(serialize_with = "in_small_letters")]
    pub(crate) proto: Protocol,
    pub(crate) src: IpAddr,
    pub(crate) sport: u16,
    pub(crate) dst: IpAddr,
    pub(crate) dport: u16,
}

impl Probe {
    pub(crate) fn family(&self) -> Family {
        Family::of(self.dst)
    }
}

fn in_small_letters<S: Serializer>(proto: &Protocol, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(&proto.to_string().to_lowercase())
}

/// The observations of a packet and of the reply.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub(crate) struct ProbeResult {
    /// The port that the packet was sent from.
    pub(crate) port: u16,
    pub(crate) seen: Vec<Seen>,
    /// The observations of the reply, if the packet arrived anywhere.
    pub(crate) back: Vec<Seen>,
}

/// An observation of a packet.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(tag = "how", rename_all = "lowercase")]
pub(crate) enum Seen {
    Out {
        dev: String,
        #[serde(flatten)]
        ends: Ends,
    },
    Local {
        #[serde(flatten)]
        ends: Ends,
    },
    Icmp {
        kind: u8,
        #[serde(default)]
        code: u8,
    },
    Reset {},
    Error {
        error: String,
    },
}

/// Source and destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub(crate) struct Ends {
    src: IpAddr,
    sport: u16,
    dst: IpAddr,
    dport: u16,
}

impl Ends {
    pub(crate) fn src(&self) -> SocketAddr {
        SocketAddr::new(self.src, self.sport)
    }

    pub(crate) fn dst(&self) -> SocketAddr {
        SocketAddr::new(self.dst, self.dport)
    }
}

impl Wire {
    /// Starts the wire program, which creates these interfaces in a namespace.
    pub(crate) fn open(
        workspace: &Workspace,
        namespace: &Namespace,
        devices: &[&str],
    ) -> Outcome<Self> {
        let mut command = workspace.program(namespace, "wire");
        let mut running = Running::with_pipes(command.args(devices), "wire")?;
        let input = running.child.stdin.take().expect("it is piped");
        let output = BufReader::new(running.child.stdout.take().expect("it is piped"));
        let mut wire = Self { input, output, _running: running };
        match wire.line()?.as_str() {
            "ready" => Ok(wire),
            other => Err(Fault::new(format!("wire says {other:?}: expected \"ready\""))),
        }
    }

    /// Sends a packet, lets its target answer, and returns what happened to both.
    pub(crate) fn send(&mut self, probe: &Probe) -> Outcome<ProbeResult> {
        let mut line = serde_json::to_string(probe).during("a probe")?;
        line.push('\n');
        self.input.write_all(line.as_bytes()).during("wire")?;
        let answer = self.line()?;
        serde_json::from_str(&answer).during(format!("wire says {answer:?}"))
    }

    fn line(&mut self) -> Outcome<String> {
        let mut line = String::new();
        match self.output.read_line(&mut line).during("wire")? {
            0 => Err(Fault::new("wire ended; its own words are above")),
            _ => Ok(line.trim_end().to_owned()),
        }
    }
}
