//! The options of `uturn lab`.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use clap_complete::engine::ArgValueCompleter;
use uturn_cli::completion::{completer, proxy_mode};
use uturn_cli::{Output, Part};
use uturn_model::ProxyMode;

use crate::built_in_scenarios;

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    #[command(subcommand, about = Part::Lab.about())]
    Lab(Lab),
}

#[derive(Debug, Subcommand)]
pub(crate) enum Lab {
    /// List the scenarios
    List(LabList),
    /// Build scenarios and measure them
    Run(LabRun),
    /// Build scenarios, measure them, and compare with the prediction
    Verify(LabRun),
    /// Generate random scenarios, measure them, and compare with the prediction
    Fuzz(LabFuzz),
    /// Build a cluster with a real control plane on this machine, for kubectl
    Up(LabUp),
    /// Run a program in a pod or on a node of the cluster that is up
    Exec(LabExec),
    /// Take down the cluster that `uturn lab up` built
    Down,
    /// Keep a cluster (for uturn itself)
    #[command(hide = true)]
    KeepCluster,
    /// Measure cases in the small machine (for uturn itself)
    #[command(hide = true)]
    MeasureInMachine,
}

#[derive(Args, Debug)]
pub(crate) struct LabList {
    /// Files with scenarios beside the built-in ones (repeat for more)
    #[arg(short, long = "filename", value_name = "PATH")]
    pub(crate) files: Vec<PathBuf>,
    /// Output format
    #[arg(short, long, value_name = "FORMAT", default_value = "text")]
    pub(crate) output: Output,
}

#[derive(Args, Debug)]
pub(crate) struct LabRun {
    /// Names of scenarios; by default all of the files, and without files all built-in ones
    #[arg(value_name = "SCENARIO", add = scenario())]
    pub(crate) names: Vec<String>,
    /// Files with scenarios beside the built-in ones (repeat for more)
    #[arg(short, long = "filename", value_name = "PATH")]
    pub(crate) files: Vec<PathBuf>,
    /// Only cases with this many nodes (repeat for more)
    #[arg(long, value_name = "N")]
    pub(crate) nodes: Vec<usize>,
    /// Only cases in this mode of kube-proxy (repeat for more)
    #[arg(long = "mode", value_name = "MODE", add = proxy_mode())]
    pub(crate) modes: Vec<ProxyMode>,
    /// Make at least this many connections for each flow
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) connects: u32,
    /// How many cases to run at once on this kernel; they mostly wait, so it may exceed the CPUs
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=64))]
    pub(crate) jobs: Option<u32>,
    /// Measure everything in a small machine (User Mode Linux) instead of on this kernel.
    /// Cases that this kernel cannot run are measured there anyway
    #[arg(long)]
    pub(crate) vm: bool,
    /// The CoreDNS program that resolves names; by default coredns in PATH
    #[arg(long, value_name = "PATH")]
    pub(crate) coredns: Option<PathBuf>,
    /// Captured rules to load instead of those that kube-proxy would program: a folder for each
    /// node, named after it
    #[arg(long, value_name = "DIR")]
    pub(crate) rules: Option<PathBuf>,
    /// Leave each lab up after measuring and print how to look inside (not with --vm). Enter
    /// takes it down and goes on to the next case, Ctrl-C takes it down and ends the run
    #[arg(long)]
    pub(crate) keep: bool,
    /// Save what every link carries as pcap files, in a folder for each case below this one
    #[arg(long, value_name = "DIR")]
    pub(crate) pcap: Option<PathBuf>,
    /// Prove a cure: measure each scenario as it is, and with this cure applied (`uturn cure`
    /// lists the cures)
    #[arg(long, value_name = "CURE")]
    pub(crate) cure: Option<String>,
    /// Follow one failing connection of each flow, and one health check of each dead target,
    /// packet by packet, to the place where the kernel ended it
    #[arg(long)]
    pub(crate) explain: bool,
    /// Output format
    #[arg(short, long, value_name = "FORMAT", default_value = "text")]
    pub(crate) output: Output,
}

#[derive(Args, Debug)]
pub(crate) struct LabFuzz {
    /// Seed of the generator; by default a new one each time
    #[arg(long, value_name = "N")]
    pub(crate) seed: Option<u64>,
    /// How many scenarios to generate
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    pub(crate) count: u64,
    /// Number of the first scenario: each depends only on the seed and its number
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) first: u64,
    /// Modes of kube-proxy (repeat for more); iptables and nftables by default.
    /// Where this kernel has no ip_vs, ipvs is measured in the small machine
    #[arg(long = "mode", value_name = "MODE", add = proxy_mode())]
    pub(crate) modes: Vec<ProxyMode>,
    /// Make at least this many connections for each flow
    #[arg(long, value_name = "N", default_value_t = 6, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) connects: u32,
    /// How many scenarios to run at once on this kernel; they mostly wait, so it may exceed the
    /// CPUs
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=64))]
    pub(crate) jobs: Option<u32>,
    /// Save the generated scenarios and measure nothing
    #[arg(long, alias = "draw-only")]
    pub(crate) generate_only: bool,
    /// Folder to save scenarios in
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub(crate) folder: PathBuf,
    /// Output format
    #[arg(short, long, value_name = "FORMAT", default_value = "text")]
    pub(crate) output: Output,
}

#[derive(Args, Debug)]
pub(crate) struct LabUp {
    /// Files or folders with manifests to apply; their Nodes are built (repeat for more)
    #[arg(short, long = "filename", value_name = "PATH")]
    pub(crate) files: Vec<PathBuf>,
    /// Apply a built-in example: shop
    #[arg(long, value_name = "NAME", conflicts_with = "files", value_parser = ["shop"])]
    pub(crate) example: Option<String>,
    /// The mode of kube-proxy
    #[arg(long, value_name = "MODE", default_value = "iptables", add = proxy_mode())]
    pub(crate) mode: ProxyMode,
    /// The version of kube-proxy, such as v1.30.14, which --parts must contain. Upstream's
    /// kube-proxy stands in for a cloud's own build
    #[arg(long, value_name = "VERSION")]
    pub(crate) kube_proxy: Option<String>,
    /// How many nodes to build; by default those of the manifests, or 3
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=64))]
    pub(crate) nodes: Option<u8>,
    /// The folder with etcd, kube-apiserver and the other programs, which `cargo xtask box-parts`
    /// fills; by default they are found in PATH
    #[arg(long, value_name = "DIR")]
    pub(crate) parts: Option<PathBuf>,
    /// Build the cluster in a small machine (User Mode Linux) instead of on this kernel. That is
    /// done anyway if this kernel lacks what the mode needs, or if you are not root
    #[arg(long)]
    pub(crate) vm: bool,
}

#[derive(Args, Debug)]
pub(crate) struct LabExec {
    /// Where to run it: NAMESPACE/POD or node/NAME; the name of a workload means its first pod
    #[arg(value_name = "POD")]
    pub(crate) place: String,
    /// The program and its arguments, after --
    #[arg(last = true, required = true, value_name = "CMD")]
    pub(crate) command: Vec<String>,
}

/// Completes a built-in scenario.
fn scenario() -> ArgValueCompleter {
    completer(|_| built_in_scenarios::names().map(str::to_owned).collect())
}
