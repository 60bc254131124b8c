//! The options of `uturn cloud`.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, Subcommand};

#[derive(Debug, Subcommand)]
pub(crate) enum Cloud {
    /// Serve the load balancers' API of Tencent Cloud (API 3.0, clb 2018-03-17)
    Serve(CloudServe),
}

#[derive(Args, Debug)]
pub(crate) struct CloudServe {
    /// Where to listen; port 0 takes a free one, which is printed
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:8443")]
    pub(crate) listen: SocketAddr,
    /// The folder that keeps what was created
    #[arg(long, value_name = "DIR")]
    pub(crate) state: PathBuf,
    /// A file with a line for each credential: its id, its key and, where there are several
    /// accounts, the one that it belongs to
    #[arg(long, value_name = "FILE")]
    pub(crate) credentials: PathBuf,
    /// A file (JSON) with the networks, subnets and instances that there are; without one, every
    /// well-formed id is taken for one that exists
    #[arg(long, value_name = "FILE")]
    pub(crate) inventory: Option<PathBuf>,
    /// How many milliseconds a task takes, during which its load balancer is busy
    #[arg(long, value_name = "MS", default_value_t = 0)]
    pub(crate) task_time: u64,
    /// Stop when standard input is closed
    #[arg(long)]
    pub(crate) until_stdin_closes: bool,
}
