//! The options of `uturn probe`.

use std::time::Duration;

use clap::Args;
use uturn_model::{Client, Destination};

use super::running::duration;
use super::{ClusterArgs, Output};
use crate::completion;

/// More calls than these are not made.
const MAX_CALLS: i64 = 1000;

#[derive(Args, Debug)]
pub(crate) struct Probe {
    #[command(flatten)]
    pub(crate) cluster: ClusterArgs,
    /// The client: pod/NS/NAME, or deploy/NS/NAME (or another workload) for the first of its pods
    #[arg(long, value_name = "CLIENT", add = completion::client())]
    pub(crate) from: Client,
    #[arg(
        long,
        value_name = "TARGET",
        add = completion::target(),
        help = "The target: a URL, HOST:PORT, IP:PORT, svc/NS/NAME[:PORT], \
                ingress/NS/NAME[/HOST/PATH], pod/NS/NAME:PORT. Requests are sent to URLs and \
                Ingresses; other targets are only connected to"
    )]
    pub(crate) to: Destination,
    /// How many calls to make, one at a time; by default 12, or fewer if so many would make a load
    /// balancer eject a target
    #[arg(short = 'n', long = "calls", value_name = "N", value_parser = clap::value_parser!(u32).range(1..=MAX_CALLS))]
    pub(crate) calls: Option<u32>,
    /// The container in which to run commands, instead of the pod's default one
    #[arg(long, value_name = "NAME", conflicts_with = "image")]
    pub(crate) container: Option<String>,
    /// Add a container of this image to the pod and make the calls there (an ephemeral container,
    /// which cannot be removed from the pod again; it ends by itself)
    #[arg(long, value_name = "IMAGE")]
    pub(crate) image: Option<String>,
    /// The program that makes the calls, instead of the first one that the container has
    #[arg(long, value_name = "PROGRAM", value_parser = tools())]
    pub(crate) with: Option<String>,
    /// The time limit of each call, such as 30s or 2m; by default longer than any predicted wait
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub(crate) call_timeout: Option<Duration>,
    /// The time limit of all calls together, such as 30s or 2m
    #[arg(long, value_name = "TIME", default_value = "10m", value_parser = duration)]
    pub(crate) total_timeout: Duration,
    /// Make the calls without asking
    #[arg(short, long)]
    pub(crate) yes: bool,
    /// Output format
    #[arg(short, long, value_name = "FORMAT", default_value = "text")]
    pub(crate) output: Output,
}

fn tools() -> clap::builder::PossibleValuesParser {
    uturn_probe::Tool::ALL.map(uturn_probe::Tool::word).into()
}
