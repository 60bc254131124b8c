//! The options of `uturn cloud`.

use std::net::SocketAddr;
use std::num::{NonZeroU32, NonZeroUsize};
use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use uturn_cli::Part;
use uturn_model::IpNet;
use uturn_model::lb::PathNormalization;

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    #[command(subcommand, about = Part::Cloud.about())]
    Cloud(Cloud),
}

#[derive(Debug, Subcommand)]
pub(crate) enum Cloud {
    /// Serve the load balancers' API of Tencent Cloud (API 3.0, clb 2018-03-17)
    Serve(CloudServe),
}

/// What data planes make of paths that have several forms.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Paths {
    Off,
    Merge,
    Reject,
}

impl From<Paths> for PathNormalization {
    fn from(paths: Paths) -> Self {
        match paths {
            Paths::Off => Self::Off,
            Paths::Merge => Self::Merge,
            Paths::Reject => Self::Reject,
        }
    }
}

#[derive(Args, Debug)]
pub(crate) struct CloudServe {
    /// The address to listen on; port 0 means a free port, which is printed
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:8443")]
    pub(crate) listen: SocketAddr,
    /// Serve HTTPS with this certificate (PEM, with its chain). Without it, `--listen` must be a
    /// loopback address: requests could be read on the way, and their signatures reused
    #[arg(long, value_name = "FILE", requires = "key")]
    pub(crate) certificate: Option<PathBuf>,
    /// The private key of the certificate (PEM)
    #[arg(long, value_name = "FILE", requires = "certificate")]
    pub(crate) key: Option<PathBuf>,
    /// Allow an address for `--listen` that other machines can reach, without TLS: for use behind a
    /// proxy with TLS, or in a network of your own
    #[arg(long, conflicts_with = "certificate")]
    pub(crate) listen_plain_http: bool,
    /// Refuse signatures that do not cover the action and the body. Many clients do not sign the
    /// action
    #[arg(long)]
    pub(crate) require_signed_action: bool,
    /// The most connections from one address, or from one IPv6 network of 64 bits. Behind a proxy,
    /// all clients share its address
    #[arg(long, value_name = "N", default_value = "256")]
    pub(crate) connections_per_address: NonZeroUsize,
    /// Allow targets that are not the address of another machine: loopback, link-local, multicast
    /// and unspecified addresses, and those of load balancers, of this server and of the data
    /// planes' admin addresses. A tenant can then reach what listens on a data plane's machine
    #[arg(long)]
    pub(crate) allow_local_targets: bool,
    /// The folder for the server's database; tasks are kept in it for a week after their end
    #[arg(long, value_name = "DIR")]
    pub(crate) state: PathBuf,
    /// A file with a line for each credential: SECRET_ID SECRET_KEY, and the account if there are
    /// several
    #[arg(long, value_name = "FILE")]
    pub(crate) credentials: PathBuf,
    /// A JSON file of the networks, subnets and instances that exist; without it, every well-formed
    /// id is accepted
    #[arg(long, value_name = "FILE")]
    pub(crate) inventory: Option<PathBuf>,
    /// Serve all load balancers with the `uturn lb run` that has the admin address URL and the
    /// token in TOKENFILE. A task ends when it serves the change, and its health checks give the
    /// health of targets (repeat for more)
    #[arg(long, value_name = "URL=TOKENFILE")]
    pub(crate) data_plane: Vec<String>,
    /// Allow plain HTTP to data planes on other machines. Tokens and the keys of certificates can
    /// then be read on the way; without it, URL must be https or have a loopback address
    #[arg(long, requires = "data_plane")]
    pub(crate) plain_http: bool,
    /// The source range of listeners that replace the client's address: data planes send from its
    /// first address, which must be bound there; 100.127.0.0/16 by default
    #[arg(long, value_name = "CIDR", requires = "data_plane")]
    pub(crate) snat_range: Option<IpNet>,
    /// What data planes do on layer 7 with paths such as //a, /%61 and /x/../a: match and forward
    /// their normal form (merge), refuse them (reject), or match and forward them as they were sent
    /// (off)
    #[arg(long, value_name = "HOW", default_value = "merge")]
    pub(crate) path_normalization: Paths,
    /// The address for /healthz, /readyz and /status, which need no signature: whether the server
    /// is alive, and what each data plane has taken
    #[arg(long, value_name = "ADDR")]
    pub(crate) admin: Option<SocketAddr>,
    /// How long a task takes if there is no data plane, in milliseconds; its load balancer is busy
    /// meanwhile
    #[arg(long, value_name = "MS", default_value_t = 0, conflicts_with = "data_plane")]
    pub(crate) task_time: u64,
    /// The most requests per second of one account for one action; by default there is no limit
    #[arg(long, value_name = "N")]
    pub(crate) rate_limit: Option<NonZeroU32>,
    /// Stop when standard input is closed
    #[arg(long)]
    pub(crate) until_stdin_closes: bool,
}
