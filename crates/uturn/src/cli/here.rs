//! The options of `uturn collect --here`.

use clap::Args;
use uturn_model::Name;

#[derive(Args, Debug)]
pub(crate) struct Here {
    /// Capture the machine that this runs on, in its network namespace. It needs root for the
    /// rules; it changes nothing, and reads no secrets and no environment
    #[arg(long)]
    pub(crate) here: bool,
    /// The node's name in the cluster; by default the machine's own name
    #[arg(long, value_name = "NAME", requires = "here")]
    pub(crate) node: Option<Name>,
    /// Capture the connections that the kernel tracks too
    #[arg(long, requires = "here")]
    pub(crate) conntrack: bool,
    /// Capture how many packets and bytes each rule counted too
    #[arg(long, requires = "here")]
    pub(crate) counters: bool,
    /// The time limit of each tool, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 30)]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=3600))]
    pub(crate) timeout: u64,
}
