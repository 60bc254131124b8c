//! The command line: commands, their options and the texts of `--help`.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use uturn_model::{Client, Destination, NamespacedName, Protocol, ProxyMode, Version};

use crate::packet::{Carried, Owner, Place};

/// Finds, explains and proves load-balancer loopback in Kubernetes.
#[derive(Debug, Parser)]
#[command(name = "uturn", bin_name = "uturn", version, propagate_version = true)]
#[command(after_help = "\
Exit status: 0 nothing found or all agrees, 1 something found, 2 wrong usage or bad input,
3 cannot run here (no manifests, no root for the lab).

Begin with: uturn scan -f examples/shop")]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) global: Global,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// The heading of the global options in `--help`.
const EVERYWHERE: &str = "Options of every command";

/// Flags of every command.
#[derive(Args, Debug)]
pub(crate) struct Global {
    /// Say more on stderr
    #[arg(short, long, global = true, help_heading = EVERYWHERE, conflicts_with = "quiet")]
    pub(crate) verbose: bool,
    /// Print only errors on stderr
    #[arg(short, long, global = true, help_heading = EVERYWHERE)]
    pub(crate) quiet: bool,
    /// Colours: auto means on a terminal, unless NO_COLOR is set
    #[arg(long, global = true, help_heading = EVERYWHERE, value_name = "WHEN", default_value = "auto")]
    pub(crate) color: ColorChoice,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ColorChoice {
    Auto,
    Always,
    Never,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Find the flows that fail, from every client to every target
    #[command(after_help = "Examples:
  uturn scan -f deploy/
  uturn scan -f deploy/ -f facts.yaml -o sarif > uturn.sarif
  uturn scan -f deploy/ --baseline uturn.baseline")]
    Scan(Scan),
    /// Follow one flow, hop by hop, out and back
    #[command(after_help = "Examples:
  uturn trace -f examples/shop --from pod/shop/web-0 --to http://shop.example.com/
  uturn trace -f deploy/ --from deploy/shop/web --to svc/shop/api:80
  uturn trace -f deploy/ --from outside --to ingress/shop/front -o svg > trace.svg")]
    Trace(Trace),
    /// Go through a checklist: lines are ok, failed or unknown, with what to look at next
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
    /// Build scenarios on a real kernel and measure them
    #[command(subcommand)]
    Lab(Lab),
    /// Run a load balancer that behaves as the cloud's does (the lab uses it)
    #[command(subcommand)]
    Lb(Lb),
    /// Print a completion script
    Completion(Completion),
}

/// Where the cluster comes from.
#[derive(Args, Clone, Debug)]
pub(crate) struct Inputs {
    /// Manifests and Facts: a file, a folder, or - for standard input (repeat for more)
    #[arg(short, long = "filename", value_name = "PATH")]
    pub(crate) files: Vec<PathBuf>,
    /// A folder of manifests with captures of nodes in nodes/NAME (repeat for more)
    #[arg(long = "bundle", value_name = "PATH")]
    pub(crate) bundles: Vec<PathBuf>,
    /// The input is the whole cluster: what it does not contain does not exist
    #[arg(long)]
    pub(crate) complete: bool,
}

#[derive(Args, Debug)]
pub(crate) struct Scan {
    #[command(flatten)]
    pub(crate) inputs: Inputs,
    /// Report on this namespace only
    #[arg(short, long, value_name = "NS", conflicts_with = "all_namespaces")]
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
    /// Print which pods share an equivalence class and why, instead of findings
    #[arg(long, conflicts_with_all = ["exhaustive", "baseline", "write_baseline"])]
    pub(crate) explain_classes: bool,
    /// Output format
    #[arg(short, long, value_name = "FORMAT", default_value = "text")]
    pub(crate) output: ScanOutput,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum FailOn {
    Info,
    Warning,
    Error,
    /// Never, whatever the findings
    Never,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Output {
    Text,
    /// Text with all details
    Wide,
    Json,
    Yaml,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ScanOutput {
    Text,
    /// Text with all details
    Wide,
    Json,
    Yaml,
    /// For code scanning: findings on the lines of the manifests
    Sarif,
    /// For CI that reads test results
    Junit,
    /// One HTML page with pictures, explanations and cures
    Html,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum TraceOutput {
    Text,
    /// Text with all details
    Wide,
    Json,
    Yaml,
    /// A picture of the path that the packets take
    Svg,
}

impl TraceOutput {
    /// As what every command can give, where it is such a form.
    pub(crate) fn plain(self) -> Option<Output> {
        match self {
            Self::Text => Some(Output::Text),
            Self::Wide => Some(Output::Wide),
            Self::Json => Some(Output::Json),
            Self::Yaml => Some(Output::Yaml),
            Self::Svg => None,
        }
    }
}

impl ScanOutput {
    /// As what every command can give, where it is such a form.
    pub(crate) fn plain(self) -> Option<Output> {
        match self {
            Self::Text => Some(Output::Text),
            Self::Wide => Some(Output::Wide),
            Self::Json => Some(Output::Json),
            Self::Yaml => Some(Output::Yaml),
            Self::Sarif | Self::Junit | Self::Html => None,
        }
    }
}

#[derive(Args, Debug)]
pub(crate) struct Trace {
    #[command(flatten)]
    pub(crate) inputs: Inputs,
    /// The client: pod/NS/NAME, deploy/NS/NAME (or another workload), node/NAME, outside[/IP]
    #[arg(long, value_name = "CLIENT")]
    pub(crate) from: Client,
    #[arg(
        long,
        value_name = "TARGET",
        help = "The target: a URL, HOST:PORT, IP:PORT, svc/NS/NAME[:PORT], \
                ingress/NS/NAME[/HOST/PATH], pod/NS/NAME:PORT"
    )]
    pub(crate) to: Destination,
    /// Transport protocol
    #[arg(long, value_name = "PROTOCOL", default_value = "tcp")]
    pub(crate) proto: Protocol,
    /// Show every path, even those that end the same way
    #[arg(long)]
    pub(crate) all: bool,
    /// Output format
    #[arg(short, long, value_name = "FORMAT", default_value = "text")]
    pub(crate) output: TraceOutput,
}

#[derive(Args, Debug)]
pub(crate) struct Check {
    #[command(flatten)]
    pub(crate) inputs: Inputs,
    /// What to check
    pub(crate) topic: CheckTopic,
    /// One Service or Ingress, instead of all
    #[arg(value_name = "NS/NAME", value_parser = object)]
    pub(crate) object: Option<NamespacedName>,
    /// Output format
    #[arg(short, long, value_name = "FORMAT", default_value = "text")]
    pub(crate) output: Output,
}

/// An object with its namespace.
fn object(text: &str) -> Result<NamespacedName, String> {
    match text.contains('/') {
        true => text.parse().map_err(|why: uturn_model::InvalidName| why.to_string()),
        false => Err(format!("expected NAMESPACE/NAME, such as default/{text}")),
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum CheckTopic {
    /// A Service that cannot be reached, from outside or inside
    Service,
    /// An Ingress that cannot be reached
    Ingress,
    /// Names that do not resolve
    Dns,
    /// The settings of every node
    Nodes,
    /// Pods of different nodes that cannot reach each other
    CrossNode,
}

impl CheckTopic {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Service => "Service",
            Self::Ingress => "Ingress",
            Self::Dns => "DNS",
            Self::Nodes => "node",
            Self::CrossNode => "pair of nodes",
        }
    }
}

#[derive(Args, Debug)]
pub(crate) struct Cure {
    #[command(flatten)]
    pub(crate) inputs: Inputs,
    /// A finding's code: UT101
    #[arg(requires = "object")]
    pub(crate) code: Option<String>,
    /// The object that the finding is about
    #[arg(value_name = "NS/NAME")]
    pub(crate) object: Option<String>,
    /// The client of a flow, instead of a finding: pod/NS/NAME, node/NAME, outside …
    #[arg(long, value_name = "CLIENT", requires = "to", conflicts_with = "code")]
    pub(crate) from: Option<Client>,
    /// The target of that flow: a URL, IP:PORT, svc/NS/NAME, ingress/NS/NAME …
    #[arg(long, value_name = "TARGET", requires = "from")]
    pub(crate) to: Option<Destination>,
    /// Transport protocol
    #[arg(long, value_name = "PROTOCOL", default_value = "tcp")]
    pub(crate) proto: Protocol,
    /// Only the cure of this name
    #[arg(long, value_name = "CURE")]
    pub(crate) cure: Option<String>,
    /// Output format; yaml prints the edited objects of the first cure, ready to apply
    #[arg(short, long, value_name = "FORMAT", default_value = "text")]
    pub(crate) output: Output,
}

#[derive(Args, Debug)]
pub(crate) struct Explain {
    /// A code (UT101) or a mechanism (asymmetric-return). Without it, all are listed
    pub(crate) word: Option<String>,
}

#[derive(Args, Debug)]
pub(crate) struct Rules {
    #[command(flatten)]
    pub(crate) inputs: Inputs,
    /// The node whose rules to print
    #[arg(long, value_name = "NODE")]
    pub(crate) node: String,
    /// kube-proxy's mode, instead of the one that the input states
    #[arg(long, value_name = "MODE")]
    pub(crate) mode: Option<ProxyMode>,
    /// kube-proxy's version, instead of the one that the input states
    #[arg(long, value_name = "VERSION")]
    pub(crate) kube_proxy_version: Option<Version>,
    /// Which rules to print; by default nft in nftables mode, else iptables
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
    /// Measure cases in the small machine (for uturn itself)
    #[command(hide = true)]
    MeasureInMachine,
}

#[derive(Args, Debug)]
pub(crate) struct LabList {
    /// Files with more scenarios than the built-in ones (repeat for more)
    #[arg(short, long = "filename", value_name = "PATH")]
    pub(crate) files: Vec<PathBuf>,
    /// Output format
    #[arg(short, long, value_name = "FORMAT", default_value = "text")]
    pub(crate) output: Output,
}

#[derive(Args, Debug)]
pub(crate) struct LabRun {
    /// Names of scenarios; all scenarios by default
    #[arg(value_name = "SCENARIO")]
    pub(crate) names: Vec<String>,
    /// Files with more scenarios than the built-in ones (repeat for more)
    #[arg(short, long = "filename", value_name = "PATH")]
    pub(crate) files: Vec<PathBuf>,
    /// Only cases with this many nodes (repeat for more)
    #[arg(long, value_name = "N")]
    pub(crate) nodes: Vec<usize>,
    /// Only cases in this mode of kube-proxy (repeat for more)
    #[arg(long = "mode", value_name = "MODE")]
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
    /// The CoreDNS program that resolves names; by default coredns from PATH
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
    #[arg(long = "mode", value_name = "MODE")]
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

#[derive(Debug, Subcommand)]
pub(crate) enum Lb {
    /// Run the load balancers of a file until stopped
    Run(LbRun),
    /// Check a file of load balancers without running them: a table of what it serves, or all that
    /// is wrong with it
    Check(LbCheck),
}

#[derive(Args, Debug)]
pub(crate) struct LbRun {
    /// A file as docs/lb.md describes it, or a folder of such files; - for standard input
    #[arg(short, long = "filename", value_name = "PATH")]
    pub(crate) file: PathBuf,
    /// Run inside this network namespace (as `ip netns` names it)
    #[arg(long, value_name = "NAME")]
    pub(crate) netns: Option<String>,
    /// Stop when standard input is closed
    #[arg(long)]
    pub(crate) until_stdin_closes: bool,
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

#[derive(Args, Debug)]
pub(crate) struct Completion {
    /// The shell
    pub(crate) shell: clap_complete::Shell,
}

#[cfg(test)]
mod tests {
    use clap::{CommandFactory, Parser};

    #[test]
    fn the_command_line_is_sound() {
        super::Cli::command().debug_assert();
    }

    /// So are the examples in the help of each command.
    #[test]
    fn every_example_parses() {
        let command = super::Cli::command();
        let helps = command.get_subcommands().filter_map(clap::Command::get_after_help);
        let mut parsed = 0;
        for help in helps {
            for line in help.to_string().lines().filter_map(|line| line.strip_prefix("  uturn ")) {
                let words = line.split('>').next().unwrap().split_whitespace();
                let known = super::Cli::try_parse_from(["uturn"].into_iter().chain(words));
                assert!(known.is_ok(), "uturn {line}: {}", known.unwrap_err());
                parsed += 1;
            }
        }
        assert!(parsed > 10, "{parsed}");
    }

    /// The commands that a page tells readers to type exist.
    #[test]
    fn every_command_of_a_page_parses() {
        let mut parsed = 0;
        for (page, text) in uturn_diagnose::pages::texts() {
            let lines = text.lines().filter_map(|line| line.trim_start().strip_prefix("uturn "));
            let lines = lines.filter(|line| line.starts_with(|c: char| c.is_ascii_lowercase()));
            let inline =
                text.split('`').skip(1).step_by(2).filter_map(|code| code.strip_prefix("uturn "));
            for command in
                lines.filter(|line| text.contains(&format!("    uturn {line}"))).chain(inline)
            {
                // Replace the placeholders that the reader fills in.
                let command = command.split(['|', '#']).next().unwrap();
                let words =
                    command.replace("--from …", "--from outside").replace("--to …", "--to svc/a/b");
                let names = ["NAMESPACE/INGRESS", "NAMESPACE/NAME"];
                let words = names.iter().fold(words, |words, name| words.replace(name, "a/b"));
                let words: Vec<&str> = words.split_whitespace().collect();
                if words == ["cure"] {
                    continue;
                }
                let known = super::Cli::try_parse_from([&["uturn"], words.as_slice()].concat());
                assert!(known.is_ok(), "{page}: uturn {command}: {}", known.unwrap_err());
                parsed += 1;
            }
        }
        assert!(parsed > 20, "{parsed}");
    }

    /// The commands in every code block of README.md and docs/ exist.
    #[test]
    fn every_command_of_the_docs_parses() {
        let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let docs = std::fs::read_dir(root.join("docs")).unwrap().map(|entry| entry.unwrap().path());
        let mut parsed = 0;
        for path in docs.chain([root.join("README.md")]) {
            if path.extension().is_none_or(|ending| ending != "md") {
                continue;
            }
            let text = std::fs::read_to_string(&path).unwrap().replace("\\\n", " ");
            for block in text.split("```").skip(1).step_by(2) {
                // Where output is shown, commands stand behind a prompt.
                let shows_output = block.starts_with("console") || block.starts_with('\n');
                for line in block.lines().map(str::trim_start) {
                    let line = match line.strip_prefix("$ ") {
                        Some(command) => command,
                        None if shows_output => continue,
                        None => line.trim_start_matches("- run: "),
                    };
                    let line = line.trim_start_matches("sudo ");
                    let Some(command) = line.strip_prefix("uturn ") else { continue };
                    let command = command.split(['|', '#', '>']).next().unwrap();
                    let words = command.split_whitespace().map(|word| word.trim_matches('\''));
                    let known = super::Cli::try_parse_from(["uturn"].into_iter().chain(words));
                    let shown = path.display();
                    assert!(known.is_ok(), "{shown}: uturn {command}: {}", known.unwrap_err());
                    parsed += 1;
                }
            }
        }
        assert!(parsed > 30, "{parsed}");
    }
}
