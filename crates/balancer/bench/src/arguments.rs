//! The words of the command line.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use clap::{Args, Parser, ValueEnum};

use crate::row::Row;

/// Measures the load balancer beside others.
#[derive(Debug, Parser)]
pub(crate) enum Arguments {
    /// Compare `uturn lb run` with nginx, HAProxy and plain routing
    Lb(LbArguments),
    /// See what hostile clients of `uturn lb run` do to honest ones
    Hostile(HostileArguments),
    /// Be hostile, as that run's clients are
    Attack(AttackArguments),
    /// Answer HTTP, as that run's targets do
    HttpTarget(TargetArguments),
    /// Make load, as the comparison does
    Load(LoadArguments),
    /// Answer on layer 4, as the comparison's targets do
    Target(TargetArguments),
}

#[derive(Args, Debug)]
pub(crate) struct LbArguments {
    /// The program to compare
    #[arg(long, value_name = "PATH")]
    pub(crate) uturn: PathBuf,
    /// How often each is measured [default: 3, or 1 with --quick]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100))]
    rounds: Option<u32>,
    /// How long a measurement at a constant rate lasts, and twice one at full speed
    /// [default: 2, or 1 with --quick]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=600))]
    seconds: Option<u32>,
    /// See that everything works: one short round, which says little about speed
    #[arg(long)]
    quick: bool,
    /// These rows and no others, with commas between
    #[arg(long, value_enum, value_delimiter = ',')]
    rows: Vec<Row>,
    /// The core of the load balancers; on layer 4 of clients and targets, too
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) core: u32,
    /// The core of layer 7's clients and targets
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) other_core: u32,
    /// What is printed
    #[arg(short, long, value_enum, default_value_t = Output::Text)]
    pub(crate) output: Output,
    /// A file that gets every round's figures as JSON, whatever is printed
    #[arg(long, value_name = "FILE")]
    pub(crate) save: Option<PathBuf>,
}

impl LbArguments {
    pub(crate) fn rounds(&self) -> u32 {
        self.rounds.unwrap_or(if self.quick { 1 } else { 3 })
    }

    pub(crate) fn seconds(&self) -> u32 {
        self.seconds.unwrap_or(if self.quick { 1 } else { 2 })
    }

    pub(crate) fn rows(&self) -> &[Row] {
        match self.rows.as_slice() {
            [] => Row::value_variants(),
            rows => rows,
        }
    }
}

#[derive(Args, Debug)]
pub(crate) struct HostileArguments {
    /// The program that is attacked
    #[arg(long, value_name = "PATH")]
    pub(crate) uturn: PathBuf,
    /// How long it lasts
    #[arg(long, value_name = "N", default_value_t = 60,
          value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) minutes: u32,
    /// See that everything works: half a minute
    #[arg(long, conflicts_with = "minutes")]
    pub(crate) quick: bool,
    /// The load balancer's `connectionsPerClient` for each listener [default: none]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) connections_per_client: Option<u32>,
    /// The most files that the load balancer may have open
    #[arg(long, value_name = "N", default_value_t = 1024,
          value_parser = clap::value_parser!(u32).range(64..))]
    pub(crate) files: u32,
}

#[derive(Args, Debug)]
pub(crate) struct AttackArguments {
    /// The load balancer's addresses
    #[arg(long, required = true)]
    pub(crate) vip: Vec<IpAddr>,
    /// Where clients call from that hold connections, used in turns
    #[arg(long, required = true)]
    pub(crate) holding: Vec<IpAddr>,
    /// Where the others call from
    #[arg(long, required = true)]
    pub(crate) passing: Vec<IpAddr>,
    /// An address that a security group refuses
    #[arg(long)]
    pub(crate) refused: IpAddr,
}

/// How results are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Output {
    /// Tables.
    Text,
    /// Every round's figures, to compare runs.
    Json,
}

#[derive(Args, Debug)]
pub(crate) struct LoadArguments {
    /// The server
    #[arg(long)]
    pub(crate) to: SocketAddr,
    /// Addresses of clients, used in turns
    #[arg(long)]
    pub(crate) from: Vec<IpAddr>,
    /// What is said to the server
    #[arg(long, value_enum, default_value_t = Exchange::Http)]
    pub(crate) exchange: Exchange,
    /// The path that HTTP asks for
    #[arg(long, default_value = "/")]
    pub(crate) path: String,
    /// How many connections there are at a time
    #[arg(long)]
    pub(crate) connections: usize,
    /// How long requests are sent
    #[arg(long)]
    pub(crate) seconds: u32,
    /// Requests a second, whether or not earlier ones were answered; without it, each connection
    /// sends the next when it has its answer
    #[arg(long)]
    pub(crate) rate: Option<u32>,
    /// Whether each request has a connection of its own
    #[arg(long)]
    pub(crate) new: bool,
    /// Open connections and send nothing until the time begins
    #[arg(long)]
    pub(crate) silent: bool,
    /// Speak TLS, without looking at the certificate
    #[arg(long)]
    pub(crate) tls: bool,
    /// Begin each connection of HTTP/1.1 with a PROXY header
    #[arg(long)]
    pub(crate) proxied: bool,
}

/// What clients and servers say to each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Exchange {
    /// Requests of HTTP/1.1.
    Http,
    /// Requests of HTTP/2 under TLS.
    Http2,
    /// Small requests and answers over TCP.
    Echo,
    /// An answer over TCP that has no end.
    Stream,
    /// Small requests and answers over UDP.
    Datagram,
}

impl Exchange {
    /// The word for it on the command line.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Http2 => "http2",
            Self::Echo => "echo",
            Self::Stream => "stream",
            Self::Datagram => "datagram",
        }
    }
}

#[derive(Args, Debug)]
pub(crate) struct TargetArguments {
    /// Where it listens
    #[arg(long, required = true)]
    pub(crate) listen: Vec<SocketAddr>,
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    fn lb(words: &str) -> LbArguments {
        let words = format!("uturn-bench lb --uturn uturn {words}");
        match Arguments::try_parse_from(words.split_whitespace()).unwrap() {
            Arguments::Lb(arguments) => arguments,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn words_of_the_command_line_are_well_formed() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn a_quick_run_has_all_rows_and_yields_to_what_is_asked_for() {
        let usual = lb("");
        assert_eq!((usual.rounds(), usual.seconds()), (3, 2));
        let quick = lb("--quick --seconds 5");
        assert_eq!((quick.rounds(), quick.seconds()), (1, 5));
        assert_eq!(quick.rows(), Row::value_variants());
        assert_eq!(lb("--rows l4-new,small").rows(), [Row::L4New, Row::Small]);
    }

    #[test]
    fn exchanges_are_read_as_they_are_written() {
        for exchange in Exchange::value_variants() {
            assert_eq!(Exchange::from_str(exchange.word(), false).as_ref(), Ok(exchange));
        }
    }
}
