//! The command line: commands, their options and the texts of `--help`.

mod check;
mod here;
mod migrate;
mod named;
mod output;
mod probe;
mod redacted;
mod running;
mod shells;
#[cfg(test)]
mod tests;
mod whatif;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use uturn_cli::{Global, Part};
pub(crate) use uturn_cli::{Inputs, Output};
use uturn_model::{Client, Destination, Protocol, ProxyMode, Version};

pub(crate) use self::check::{Check, CheckTopic};
pub(crate) use self::here::Here;
#[cfg(feature = "live")]
pub(crate) use self::here::WhichNodes;
pub(crate) use self::migrate::Migrate;
pub(crate) use self::output::{FailOn, ScanOutput, Survived, TraceOutput};
pub(crate) use self::probe::Probe;
#[cfg(feature = "live")]
pub(crate) use self::running::ApiArgs;
pub(crate) use self::running::{ClusterArgs, Collect};
pub(crate) use self::shells::Completion;
pub(crate) use self::whatif::{CONTEXT, Changes, Diff, FailOnChange, Makes, WhatIf, WhatIfOutput};
use crate::completion;
use crate::packet::{Carried, Owner, Place};
use named::Named;

/// Finds, explains and proves load-balancer loopback in Kubernetes.
#[derive(Debug, Parser)]
#[command(name = "uturn", bin_name = "uturn", version, propagate_version = true)]
#[command(after_help = "\
Exit status: 0 nothing found or all agrees, 1 something found, 2 wrong usage or bad input,
3 cannot run here (no API server, no root for the lab).

Begin with: uturn scan               the cluster that kubectl talks to
            uturn scan -f deploy/    manifests")]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) global: Global,
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Find the flows that fail, from every client to every target
    #[command(after_help = "Examples:
  uturn scan
  uturn scan --watch
  uturn scan -f deploy/
  uturn scan -f deploy/ -f facts.yaml -o sarif > uturn.sarif
  uturn scan -f deploy/ --baseline uturn.baseline
  uturn scan -f deploy/ --survive zone")]
    Scan(Scan),
    /// Follow one flow, hop by hop, out and back
    #[command(after_help = "Examples:
  uturn trace -f examples/shop --from pod/shop/web-0 --to http://shop.example.com/
  uturn trace -f deploy/ --from deploy/shop/web --to svc/shop/api:80
  uturn trace -f deploy/ --from outside --to ingress/shop/front -o svg > trace.svg")]
    Trace(Trace),
    /// Make the calls of one flow for real, from its pod, and compare them with the prediction
    #[command(after_help = "Examples:
  uturn probe --from pod/shop/web-0 --to http://shop.example.com/
  uturn probe --from deploy/shop/web --to svc/shop/api:80 -n 24
  uturn probe --from pod/shop/web-0 --to http://10.0.0.100/ --image curlimages/curl --yes")]
    Probe(Probe),
    /// Run a checklist: each line is ok, failed or unknown, with what to look at next
    #[command(after_help = "Examples:
  uturn check service shop/front -f deploy/
  uturn check dns -f deploy/")]
    Check(Check),
    /// Propose cures: exact edits, each with its conditions, its costs and its effect
    #[command(after_help = "Examples:
  uturn cure UT101 shop/front -f deploy/
  uturn cure --from pod/shop/web-0 --to http://10.0.0.100/ -f deploy/
  uturn cure UT101 shop/front -f deploy/ --cure l7-snat -o yaml")]
    Cure(Cure),
    /// Judge a change before it is made: which calls get worse, better or go otherwise
    #[command(
        name = "whatif",
        visible_alias = "what-if",
        after_help = "Nothing is written anywhere.

Examples:
  uturn whatif --set svc/shop/front:spec.externalTrafficPolicy=Local
  uturn whatif -f deploy/ --kube-proxy-mode nftables --kube-proxy-version v1.36
  uturn whatif -f deploy/ -p new.yaml --delete netpol/shop/old -o markdown"
    )]
    WhatIf(WhatIf),
    /// Try a migration that many people make, and say what to look at besides
    #[command(after_help = "Examples:
  uturn migrate
  uturn migrate ipvs-to-nftables -f deploy/
  uturn migrate policy-cluster-to-local -f deploy/ --only svc/shop/front
  uturn migrate ingress-nginx-to-gateway -f deploy/ -p gateway/")]
    Migrate(Migrate),
    /// Compare two clusters call by call, such as the two sides of a pull request
    #[command(after_help = "Examples:
  uturn diff before/ after/
  uturn diff main/deploy pull-request/deploy -f facts.yaml -o markdown
  uturn diff yesterday.tar.gz context:production")]
    Diff(Diff),
    /// Print the page of a finding's code or of a mechanism
    #[command(after_help = "Examples:
  uturn explain UT101
  uturn explain asymmetric-return")]
    Explain(Explain),
    /// Print what kube-proxy programs on a node, ready to load
    #[command(after_help = "Examples:
  uturn rules -f deploy/ --node n1
  uturn rules -f deploy/ --node n1 --mode ipvs --format ipvs")]
    Rules(Rules),
    /// Walk one packet through one captured node
    #[command(after_help = "Examples:
  uturn walk --capture n1/ --in eth0 --src 10.1.1.10:40000 --dst 10.0.0.11:30080
  uturn walk --capture n1/ --in eth0 --src 10.1.1.10 --dst 10.0.0.11 --proto icmp
  uturn walk --capture pod/ --src 10.1.1.10:40000 --dst 10.0.0.11:80 --uid istio-proxy")]
    Walk(Walk),
    /// Save a running cluster's objects and nodes, or this node's state, for --bundle
    #[command(after_help = "Examples:
  uturn collect -o cluster.tar.gz
  uturn collect --nodes -o cluster.tar.gz
  uturn collect --node n1 --node n2 --image nicolaka/netshoot --yes -o bundle
  uturn collect --rbac > rbac.yaml
  uturn collect --rbac --watch --nodes > rbac.yaml
  uturn collect --redact -o shown.tar.gz
  uturn collect --bundle cluster.tar.gz --redact -o shown.tar.gz
  uturn collect --here -o bundle
  uturn collect --here --node n1 --conntrack -o bundle
  uturn check nodes -f deploy/ --bundle bundle")]
    Collect(Collect),
    /// Print the version of this program, and the commit that it was built from
    Version(VersionOutput),
    #[command(about = Part::Lab.about())]
    Lab,
    #[command(about = Part::Lb.about())]
    Lb,
    #[command(about = Part::Cloud.about())]
    Cloud,
    #[command(about = Part::Operator.about())]
    Operator,
    /// Print a completion script for a shell; it completes names of objects too
    #[command(after_help = "Examples:
  source <(uturn completion bash)
  uturn completion fish > ~/.config/fish/completions/uturn.fish
  uturn completion kubectl > ~/.local/bin/kubectl_complete-uturn

The last file is for kubectl uturn: kubectl runs it, so it has to be executable and on the PATH.
A link of that name to this program works too.")]
    Completion(Completion),
}

/// The namespace that is meant.
#[derive(Args, Clone, Debug)]
pub(crate) struct OfNamespace {
    /// The namespace of names without one; also the only namespace to read, if you may not read the
    /// whole of a running cluster
    #[arg(short, long, value_name = "NS", add = completion::namespace())]
    pub(crate) namespace: Option<String>,
}

#[derive(Args, Debug)]
pub(crate) struct Scan {
    #[command(flatten)]
    pub(crate) cluster: ClusterArgs,
    /// Report on this namespace only
    #[arg(short, long, value_name = "NS", conflicts_with = "all_namespaces", add = completion::namespace())]
    pub(crate) namespace: Option<String>,
    /// Report on all namespaces (the default)
    #[arg(short = 'A', long)]
    pub(crate) all_namespaces: bool,
    /// Exit with status 1 if a finding is at least this severe
    #[arg(long, value_name = "SEVERITY", default_value = "error")]
    pub(crate) fail_on: FailOn,
    /// A file of known findings: only new ones count
    #[arg(long, value_name = "FILE")]
    pub(crate) baseline: Option<PathBuf>,
    /// Write the findings to a file for --baseline, and exit with status 0
    #[arg(long, value_name = "FILE")]
    pub(crate) write_baseline: Option<PathBuf>,
    /// List every finding; without it, a long list is grouped by cause
    #[arg(long)]
    pub(crate) all: bool,
    /// Walk every pod to every target, without equivalence classes (for small clusters)
    #[arg(long)]
    pub(crate) exhaustive: bool,
    /// Watch a running cluster until Ctrl-C, and show its findings again whenever its objects
    /// change. If stdout is not a terminal, print a line for each finding that appears, changes or
    /// goes; with -o json, print one line of JSON for each state
    #[arg(long, conflicts_with_all = ["bundles", "complete", "exhaustive", "explain_classes", "write_baseline"])]
    pub(crate) watch: bool,
    /// Also walk the loss of each node, or of each zone, by itself: which calls break at once, and
    /// which after health checks and endpoints have followed
    #[arg(long, value_name = "UNIT", conflicts_with_all = ["watch", "explain_classes", "exhaustive"])]
    pub(crate) survive: Option<Survived>,
    /// Print which pods share an equivalence class and why, instead of findings
    #[arg(long, conflicts_with_all = ["exhaustive", "baseline", "write_baseline"])]
    pub(crate) explain_classes: bool,
    /// Output format
    #[arg(short, long, value_name = "FORMAT", default_value = "text")]
    pub(crate) output: ScanOutput,
}

#[derive(Args, Debug)]
pub(crate) struct Trace {
    #[command(flatten)]
    pub(crate) cluster: ClusterArgs,
    /// The client: pod/NS/NAME, deploy/NS/NAME (or another workload), node/NAME, outside[/IP]
    #[arg(long, value_name = "CLIENT", add = completion::client())]
    pub(crate) from: Named<Client>,
    #[arg(
        long,
        value_name = "TARGET",
        add = completion::target(),
        help = "The target: a URL, HOST:PORT, IP:PORT, svc/NS/NAME[:PORT], \
                ingress/NS/NAME[/HOST/PATH], pod/NS/NAME:PORT"
    )]
    pub(crate) to: Named<Destination>,
    #[command(flatten)]
    pub(crate) of: OfNamespace,
    /// Transport protocol; by default tcp, unless the Service's port has another one only
    #[arg(long, value_name = "PROTOCOL")]
    pub(crate) proto: Option<Protocol>,
    /// Show every path, even those that end the same way
    #[arg(long)]
    pub(crate) all: bool,
    /// Output format
    #[arg(short, long, value_name = "FORMAT", default_value = "text")]
    pub(crate) output: TraceOutput,
}

#[derive(Args, Debug)]
pub(crate) struct Cure {
    #[command(flatten)]
    pub(crate) cluster: ClusterArgs,
    /// The code of a finding, such as UT101. Without an object or a flow, the findings are listed
    #[arg(add = completion::code())]
    pub(crate) code: Option<String>,
    /// The object that the finding is about
    #[arg(value_name = "NS/NAME", add = completion::subject())]
    pub(crate) object: Option<String>,
    /// The client of a flow, instead of a finding: pod/NS/NAME, node/NAME, outside …
    #[arg(long, value_name = "CLIENT", requires = "to", conflicts_with = "code")]
    #[arg(add = completion::client())]
    pub(crate) from: Option<Named<Client>>,
    /// The target of that flow: a URL, IP:PORT, svc/NS/NAME, ingress/NS/NAME …
    #[arg(long, value_name = "TARGET", requires = "from", add = completion::target())]
    pub(crate) to: Option<Named<Destination>>,
    #[command(flatten)]
    pub(crate) of: OfNamespace,
    /// Transport protocol; by default tcp, unless the Service's port has another one only
    #[arg(long, value_name = "PROTOCOL")]
    pub(crate) proto: Option<Protocol>,
    /// Show only the cure with this name
    #[arg(long, value_name = "CURE")]
    pub(crate) cure: Option<String>,
    /// Output format; yaml prints the edited objects of the first cure, ready to apply
    #[arg(short, long, value_name = "FORMAT", default_value = "text")]
    pub(crate) output: Output,
}

#[derive(Args, Debug)]
pub(crate) struct Explain {
    /// A code (UT101) or a mechanism (asymmetric-return). Without it, all are listed
    #[arg(add = completion::topic())]
    pub(crate) word: Option<String>,
    /// Output format
    #[arg(short, long, value_name = "FORMAT", default_value = "text")]
    pub(crate) output: Output,
}

#[derive(Args, Debug)]
pub(crate) struct VersionOutput {
    /// Output format
    #[arg(short, long, value_name = "FORMAT", default_value = "text")]
    pub(crate) output: Output,
}

#[derive(Args, Debug)]
pub(crate) struct Rules {
    #[command(flatten)]
    pub(crate) cluster: ClusterArgs,
    /// The node whose rules to print
    #[arg(long, value_name = "NODE", add = completion::node())]
    pub(crate) node: String,
    /// kube-proxy's mode, instead of the one that the input states
    #[arg(long, value_name = "MODE", add = completion::proxy_mode())]
    pub(crate) mode: Option<ProxyMode>,
    /// kube-proxy's version, instead of the one that the input states
    #[arg(long, value_name = "VERSION")]
    pub(crate) kube_proxy_version: Option<Version>,
    /// Which rules to print; by default nft in nftables mode, else iptables (ip6tables on a node
    /// without an IPv4 address)
    #[arg(long, value_name = "FORMAT")]
    pub(crate) format: Option<RulesFormat>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum RulesFormat {
    /// For iptables-restore
    Iptables,
    /// For ip6tables-restore
    Ip6tables,
    /// For ipset restore
    Ipset,
    /// For ipvsadm -R
    Ipvs,
    /// For nft -f
    Nft,
}

#[derive(Args, Debug)]
pub(crate) struct Walk {
    /// The capture: a folder with iptables.save, nft.txt, ipset.save, ipvs.save, addr,
    /// route, rule, sysctl (any of them may be missing)
    #[arg(long, value_name = "DIR")]
    pub(crate) capture: PathBuf,
    /// Rules to load onto the captured ones first, as `iptables-restore --noflush` would
    /// (`ip6tables-restore` for an IPv6 packet); `-` is standard input
    #[arg(long, value_name = "PATH")]
    pub(crate) noflush: Vec<PathBuf>,
    /// The interface on which the packet arrives; without it, the node itself sends the packet
    #[arg(long = "in", value_name = "IFACE")]
    pub(crate) interface: Option<String>,
    /// The packet's source; for icmp an address without a port
    #[arg(long, value_name = "IP:PORT")]
    pub(crate) src: Place,
    /// The packet's destination; for icmp an address without a port
    #[arg(long, value_name = "IP:PORT")]
    pub(crate) dst: Place,
    /// Protocol: tcp, udp, sctp, or icmp (an echo request)
    #[arg(long, value_name = "PROTOCOL", default_value = "tcp")]
    pub(crate) proto: Carried,
    /// The user whose process sends the packet, for rules that match it (`-m owner`,
    /// `meta skuid`, `uidrange`): a number, root, istio-proxy, …
    #[arg(long, value_name = "UID", conflicts_with = "interface")]
    pub(crate) uid: Option<Owner>,
    /// The group of that process: a number or a name
    #[arg(long, value_name = "GID", conflicts_with = "interface")]
    pub(crate) gid: Option<Owner>,
    /// Output format
    #[arg(short, long, value_name = "FORMAT", default_value = "text")]
    pub(crate) output: Output,
}
