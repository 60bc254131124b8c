//! The options of `uturn cloud`.

use std::net::SocketAddr;
use std::num::{NonZeroU32, NonZeroUsize};
use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use uturn_model::IpNet;
use uturn_model::lb::PathNormalization;

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
    /// Where to listen; port 0 takes a free one, which is printed
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:8443")]
    pub(crate) listen: SocketAddr,
    /// Speak TLS with this certificate (PEM, with its chain). Without it, `--listen` is a loopback
    /// address: requests could be read on the way, and their signatures used for other ones
    #[arg(long, value_name = "FILE", requires = "key")]
    pub(crate) certificate: Option<PathBuf>,
    /// The key of the certificate (PEM)
    #[arg(long, value_name = "FILE", requires = "certificate")]
    pub(crate) key: Option<PathBuf>,
    /// Listen without TLS on an address that other machines can reach: behind a proxy with TLS, or
    /// in a network that nobody else is on
    #[arg(long, conflicts_with = "certificate")]
    pub(crate) listen_plain_http: bool,
    /// Refuse signatures that leave out the action or the body. Many clients leave out the action
    #[arg(long)]
    pub(crate) require_signed_action: bool,
    /// How many connections one address may have, or one IPv6 network of 64 bits. Behind a proxy
    /// all clients have its address
    #[arg(long, value_name = "N", default_value = "256")]
    pub(crate) connections_per_address: NonZeroUsize,
    /// Allow targets that are no other machine's: loopback, link-local, multicast and unspecified
    /// addresses, those of load balancers, of this server and of the data planes' admin addresses.
    /// With it, a tenant can reach what listens on a data plane's machine
    #[arg(long)]
    pub(crate) allow_local_targets: bool,
    /// The folder that keeps what was created; tasks that have ended are kept for a week
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
    /// Drive the `uturn lb run` whose admin address is URL, with the token in TOKENFILE: it serves
    /// all load balancers. Can be given several times. Tasks are done when it serves them, and it
    /// says how targets are
    #[arg(long, value_name = "URL=TOKENFILE")]
    pub(crate) data_plane: Vec<String>,
    /// Reach data planes over plain HTTP on other machines too. Tokens and the keys of
    /// certificates can then be read on the way; without it, URL is https or has a loopback
    /// address
    #[arg(long, requires = "data_plane")]
    pub(crate) plain_http: bool,
    /// The range whose first address data planes send from where a listener replaces the
    /// client's address, and which has to be bound there; 100.127.0.0/16 if this is left out
    #[arg(long, value_name = "CIDR", requires = "data_plane")]
    pub(crate) snat_range: Option<IpNet>,
    /// What data planes make of paths such as //a, /%61 and /x/../a on layer 7: rules are found by
    /// the normal form, which targets get (merge), such paths are refused (reject), or paths are
    /// compared and forwarded as they were sent (off)
    #[arg(long, value_name = "HOW", default_value = "merge")]
    pub(crate) path_normalization: Paths,
    /// Where to serve /healthz, /readyz and /status, without a signature: whether it is alive, and
    /// what each data plane has taken
    #[arg(long, value_name = "ADDR")]
    pub(crate) admin: Option<SocketAddr>,
    /// How many milliseconds a task takes without a data plane, during which its load balancer is
    /// busy
    #[arg(long, value_name = "MS", default_value_t = 0, conflicts_with = "data_plane")]
    pub(crate) task_time: u64,
    /// How many requests a second an account may send of each action; without it, any number
    #[arg(long, value_name = "N")]
    pub(crate) rate_limit: Option<NonZeroU32>,
    /// Stop when standard input is closed
    #[arg(long)]
    pub(crate) until_stdin_closes: bool,
}
