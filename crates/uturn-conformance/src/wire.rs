//! Packets into a node and out of it: the other end of `conformance/wire`.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{ChildStdin, ChildStdout};

use serde::{Deserialize, Serialize};

use crate::fault::{During as _, Fault, Outcome};
use crate::world::{Namespace, Running, World};

/// What is around one node.
#[derive(Debug)]
pub(crate) struct Wire {
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    _running: Running,
}

/// The first packet of a flow.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Probe {
    /// The interface it comes in through; empty when a process of the node sends it.
    #[serde(rename = "in")]
    pub(crate) device: String,
    pub(crate) proto: String,
    pub(crate) src: String,
    pub(crate) sport: u16,
    pub(crate) dst: String,
    pub(crate) dport: u16,
}

/// One thing that became of it.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(tag = "how", rename_all = "lowercase")]
pub(crate) enum Seen {
    Out {
        dev: String,
        src: String,
        dst: String,
        dport: u16,
    },
    Local {
        src: String,
        dst: String,
        dport: u16,
    },
    Icmp {
        kind: u8,
        #[serde(default)]
        code: u8,
    },
    Reset,
    Error {
        error: String,
    },
}

impl Wire {
    /// Makes these interfaces in a namespace.
    pub(crate) fn open(world: &World, namespace: &Namespace, devices: &[&str]) -> Outcome<Self> {
        let mut command = world.program(namespace, "wire");
        let mut running = Running::talking(command.args(devices), "wire")?;
        let input = running.child.stdin.take().expect("it is piped");
        let output = BufReader::new(running.child.stdout.take().expect("it is piped"));
        let mut wire = Self { input, output, _running: running };
        match wire.line()?.as_str() {
            "ready" => Ok(wire),
            other => Err(Fault::new(format!("wire says {other:?}: expected \"ready\""))),
        }
    }

    /// Sends a packet; all that became of it.
    pub(crate) fn send(&mut self, probe: &Probe) -> Outcome<Vec<Seen>> {
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
