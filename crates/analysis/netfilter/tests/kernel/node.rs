//! A node: a network namespace with a case's rules, and uturn's model of it.

use std::fmt;
use std::fs;
use std::io::Write as _;
use std::process::{Command, Stdio};
use std::thread;

use uturn_model::Family;
use uturn_netfilter::{
    Kernel, NodeState, addr, ipset, iptables, nft, policy_rules, routes, sysctl,
};

use crate::case::Case;
use crate::wire::Wire;

/// The setup of every case. ICMP errors are not rate limited, and nothing is retransmitted.
const SET_UP: &str = "
for device in 'eth0 1' 'eth1 2' 'cbr0 3' 'p0 4'; do
    set -- $device
    echo link set $1 address 02:00:00:00:00:0$2 arp off
done | ip -batch -
sysctl -qw net.ipv6.conf.all.disable_ipv6=1 net.ipv6.conf.default.disable_ipv6=1 \
    net.ipv4.ip_forward=1 net.ipv4.icmp_ratelimit=0 net.ipv4.tcp_synack_retries=0 \
    net.netfilter.nf_conntrack_tcp_be_liberal=1
ip -batch - <<END
link add br0 address 02:00:00:00:00:04 type bridge
link set p0 master br0
link set p0 type bridge_slave hairpin on
link set p0 address 02:00:00:00:00:14
link set lo up
link set eth0 up
link set eth1 up
link set cbr0 up
link set p0 up
link set br0 up
addr add 10.0.0.2/24 dev eth0
addr add 10.0.0.3/24 dev eth0
addr add 10.2.0.1/24 dev eth1
addr add 10.1.0.1/24 dev cbr0
addr add 10.3.0.1/24 dev br0
addr add 10.9.9.9/32 dev lo
neigh add 10.3.0.7 lladdr 02:00:00:00:01:04 dev br0 nud permanent
neigh add 10.3.0.8 lladdr 02:00:00:00:01:04 dev br0 nud permanent
route add 10.1.1.0/24 via 10.0.0.11
route add blackhole 10.6.0.0/24
route add unreachable 10.6.1.0/24
route add prohibit 10.6.2.0/24
END
# A hint to take a shorter way would meet the rules, and may mark a connection.
for file in /proc/sys/net/ipv4/conf/*/send_redirects; do echo 0 >$file; done
";

const LOOK: &str = "
ip addr; echo '=== end'; ip route show table all; echo '=== end'; ip rule; echo '=== end'
ipset save; echo '=== end'
cd /proc/sys
grep -sr . net/ipv4/conf net/ipv4/ip_forward net/netfilter/nf_conntrack_tcp_loose | sed 's/:/ = /'
";

/// Why a case cannot be tried: a program or the kernel refuses it.
#[derive(Debug)]
pub(crate) struct Refused(pub(crate) String);

impl<E: fmt::Display> From<E> for Refused {
    fn from(why: E) -> Self {
        Self(why.to_string())
    }
}

pub(crate) struct Node {
    pub(crate) kernel: Kernel,
    pub(crate) wire: Wire,
}

impl Node {
    /// Creates the node in a new namespace, in which this thread stays.
    pub(crate) fn new(case: &Case) -> Result<Self, Refused> {
        let mut wire = Wire::new()?;
        let set_up = case.section("setup").unwrap_or_default().join("\n");
        sh(&[SET_UP, &set_up].concat(), "")?;
        if case.to_string().to_lowercase().contains("tproxy") {
            // With bridge-nf-call-iptables, the packet loses its socket on the way up.
            sh("sysctl -qw net.bridge.bridge-nf-call-iptables=0", "")?;
        }
        if let Some(sets) = case.section("ipset") {
            sh("ipset restore", &lines(&sets))?;
        }
        let mut saved = Vec::new();
        for tool in ["iptables", "iptables-legacy"] {
            if let Some(rules) = case.section(tool) {
                let text =
                    sh(&format!("{tool}-restore; {tool}-save"), &lines(&behind_errors(&rules)))?;
                saved.push(text);
            }
        }
        if let Some(rules) = case.section("nft") {
            sh("nft -f -", &lines(&nft_behind_errors(&rules)))?;
        }
        // The tables of iptables-nft are known from iptables-save.
        let ruleset = sh("nft list ruleset", "")?;
        let looked = sh(LOOK, "")?;
        let mut parts = looked.split("=== end\n");
        let mut part = || parts.next().unwrap_or_default();
        let state = NodeState {
            interfaces: read(addr::parse("addr", part()))?,
            routes: read(routes::parse("route", part()))?,
            rules: read(policy_rules::parse("rule", part()))?,
            sets: read(ipset::parse("ipset.save", part()))?,
            sysctls: read(sysctl::parse("sysctl", part()))?,
            iptables: read(iptables::parse("iptables.save", &saved.concat(), Family::V4))?,
            nft: read(nft::parse("nft.txt", &ruleset))?,
            ..NodeState::default()
        };
        let kernel = read(Kernel::new(state))?;
        wire.listen()?;
        Ok(Self { kernel, wire })
    }

    /// Clears the lists of `-m recent`, so that every packet starts with empty ones.
    pub(crate) fn forget(&self) -> Result<(), Refused> {
        if let Ok(lists) = fs::read_dir("/proc/thread-self/net/xt_recent") {
            for list in lists {
                fs::write(list?.path(), "/\n")?;
            }
        }
        Ok(())
    }
}

/// Whether the kernel has a route to an address from itself.
pub(crate) fn has_route(to: &str) -> bool {
    sh(&format!("ip route get {to}"), "").is_ok()
}

fn lines(lines: &[impl AsRef<str>]) -> String {
    lines.iter().flat_map(|line| [line.as_ref(), "\n"]).collect()
}

/// Rules preceded by others that let ICMP errors and resets pass, so that rejects are observed.
fn behind_errors(rules: &[&str]) -> Vec<String> {
    let (mut all, mut chains, mut table) = (Vec::new(), Vec::new(), "");
    for rule in rules {
        match rule.split_at(1) {
            ("*", name) => table = name,
            (":", chain) => {
                let (name, rest) = chain.split_once(' ').unwrap_or((chain, ""));
                let base = !rest.starts_with('-') && table != "nat";
                chains.extend(base.then_some(name));
            }
            _ => {
                for chain in chains.drain(..) {
                    all.push(format!("-A {chain} -p icmp -m icmp --icmp-type 3 -j ACCEPT"));
                    all.push(format!("-A {chain} -p tcp -m tcp --tcp-flags RST RST -j ACCEPT"));
                }
            }
        }
        all.push((*rule).to_owned());
    }
    all
}

fn nft_behind_errors(rules: &[&str]) -> Vec<String> {
    let mut all = Vec::new();
    for rule in rules {
        all.push((*rule).to_owned());
        if rule.starts_with("type filter ") || rule.starts_with("type route ") {
            all.push("icmp type destination-unreachable accept".to_owned());
            all.push("tcp flags & rst == rst accept".to_owned());
        }
    }
    all
}

fn read<T, E: fmt::Display>(result: Result<T, Vec<E>>) -> Result<T, Refused> {
    result.map_err(|errors| {
        let lines: Vec<String> = errors.iter().map(ToString::to_string).collect();
        Refused(format!("uturn does not read it: {}", lines.join("\n")))
    })
}

/// Runs a script in this thread's namespace.
fn sh(script: &str, input: &str) -> Result<String, Refused> {
    let mut child = Command::new("sh")
        .args(["-ec", script])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    let mut stdin = child.stdin.take().expect("it is piped");
    let input = input.to_owned();
    let writer = thread::spawn(move || stdin.write_all(input.as_bytes()));
    let output = child.wait_with_output()?;
    // A program that stops early reports why.
    let _ = writer.join();
    if output.status.success() {
        Ok(String::from_utf8(output.stdout)?)
    } else {
        Err(Refused(format!("{script}: {}", String::from_utf8_lossy(&output.stderr))))
    }
}
