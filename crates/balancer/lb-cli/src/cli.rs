//! The options of `uturn lb`.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use uturn_cli::{Output, Part};

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    #[command(subcommand, about = Part::Lb.about())]
    Lb(Lb),
}

#[derive(Debug, Subcommand)]
pub(crate) enum Lb {
    /// Run the load balancers of a file until stopped
    ///
    /// SIGHUP reads the file again; if the file has errors, they are printed and nothing changes.
    /// SIGTERM and SIGINT stop accepting and let open connections end; a second one stops at once.
    /// systemd is told when the load balancer is ready (Type=notify) and that it is alive
    /// (WatchdogSec=). docs/lb-operations.md has more.
    Run(LbRun),
    /// Check a file of load balancers without running them: print what it serves, or all its errors
    Check(LbCheck),
}

#[derive(Args, Debug)]
pub(crate) struct LbRun {
    /// A file as docs/lb.md describes it, or a folder of such files; - for standard input
    #[arg(short, long = "filename", value_name = "PATH")]
    pub(crate) file: PathBuf,
    /// Apply changes of the file, and of the certificates, keys and token that it names, when they
    /// are saved; without it, on SIGHUP only
    #[arg(long)]
    pub(crate) watch: bool,
    /// The folder for certificates and keys that are sent to the admin address, as configurations
    /// are; without it, none are accepted
    #[arg(long, value_name = "DIR")]
    pub(crate) certificates: Option<PathBuf>,
    /// Take over from the running load balancer with this process id: once this one serves, that
    /// one accepts no more connections, and stops when its open ones have ended
    #[arg(long, value_name = "PID")]
    pub(crate) takeover: Option<u32>,
    /// Run inside this network namespace (as `ip netns` names it)
    #[arg(long, value_name = "NAME")]
    pub(crate) netns: Option<String>,
    /// Stop when standard input is closed
    #[arg(long)]
    pub(crate) until_stdin_closes: bool,
    /// Set up no forwarding in the kernel for TCP and UDP listeners: other rules of this machine do
    /// it
    #[arg(long)]
    pub(crate) no_layer_4: bool,
    /// Print every step of every connection, not only what changes
    #[arg(long)]
    pub(crate) events: bool,
}

#[derive(Args, Debug)]
pub(crate) struct LbCheck {
    /// The file to check, or a folder of such files; - for standard input
    #[arg(short, long = "filename", value_name = "PATH")]
    pub(crate) file: PathBuf,
    /// Output format; json and yaml print the file with every default in its place
    #[arg(short, long, value_name = "FORMAT", default_value = "text")]
    pub(crate) output: Output,
}
