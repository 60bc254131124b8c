//! The words of the command line.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use clap::{Args, Parser};

use crate::row::Row;

/// Measures the load balancer beside others.
#[derive(Debug, Parser)]
pub(crate) enum Arguments {
    /// Compare `uturn lb run` with nginx and HAProxy
    Lb(LbArguments),
    /// Make load, as the comparison does
    Load(LoadArguments),
}

#[derive(Args, Debug)]
pub(crate) struct LbArguments {
    /// The program to compare
    #[arg(long, value_name = "PATH")]
    pub(crate) uturn: PathBuf,
    /// How often each is measured
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub(crate) rounds: u32,
    /// How long a measurement lasts
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=60))]
    pub(crate) seconds: u32,
    /// These rows and no others, with commas between
    #[arg(long, value_enum, value_delimiter = ',')]
    pub(crate) rows: Vec<Row>,
    /// The core of the load balancers
    #[arg(long, default_value_t = 0)]
    pub(crate) core: u32,
    /// The core of clients and targets
    #[arg(long, default_value_t = 1)]
    pub(crate) other_core: u32,
}

#[derive(Args, Debug)]
pub(crate) struct LoadArguments {
    /// The server
    #[arg(long)]
    pub(crate) to: SocketAddr,
    /// Addresses of clients, used in turns
    #[arg(long)]
    pub(crate) from: Vec<IpAddr>,
    /// The path that is asked for
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
    /// Speak TLS, without looking at the certificate
    #[arg(long)]
    pub(crate) tls: bool,
}
