//! The options of `uturn lb`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

#[derive(Debug, Subcommand)]
pub(crate) enum Lb {
    /// Run the load balancers of a file until stopped
    Run(LbRun),
    /// Check a file of load balancers without running them
    Check(LbCheck),
}

#[derive(Args, Debug)]
pub(crate) struct LbRun {
    /// LoadBalancer documents; - for standard input
    #[arg(short, long = "filename", value_name = "PATH")]
    pub(crate) file: PathBuf,
    /// Run inside this network namespace (as `ip netns` names it)
    #[arg(long, value_name = "NAME")]
    pub(crate) netns: Option<String>,
    /// Stop when standard input is closed
    #[arg(long)]
    pub(crate) until_stdin_closes: bool,
    /// Print every step of every connection, not only what changes
    #[arg(long)]
    pub(crate) events: bool,
}

#[derive(Args, Debug)]
pub(crate) struct LbCheck {
    /// LoadBalancer documents; - for standard input
    #[arg(short, long = "filename", value_name = "PATH")]
    pub(crate) file: PathBuf,
}
