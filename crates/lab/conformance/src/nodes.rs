//! The third judge: runs `uturn check nodes` on captures of a node by `uturn collect --here`, first
//! as kube-proxy left the node and then with faults.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use uturn_testing::node_faults::{IPTABLES, IPVS, NFTABLES, NodeFault};

use crate::fault::{During as _, Fault, Outcome};
use crate::mode::Mode;
use crate::node::Node;

/// The results of an examination.
#[derive(Debug, Default)]
pub(crate) struct Examined {
    /// The number of faults that were put into the node.
    pub(crate) faults: usize,
    /// Findings where there should be none, and faults without their finding.
    pub(crate) differences: Vec<String>,
}

/// A node, and the information about its cluster.
pub(crate) struct Examination<'e> {
    pub(crate) node: &'e Node,
    /// The file of the objects that uturn reads.
    pub(crate) objects: &'e Path,
    /// The folder for captures, which is removed.
    pub(crate) folder: PathBuf,
}

impl Examination<'_> {
    /// Captures the node as it is.
    pub(crate) fn healthy(&self) -> Outcome<Examined> {
        let (codes, text) = self.codes("healthy")?;
        let place = format!("{} {}", self.node.name, self.node.mode);
        let differences = if codes.is_empty() {
            Vec::new()
        } else {
            vec![format!("{place}: check nodes accuses a healthy node:\n{text}")]
        };
        Ok(Examined { faults: 0, differences })
    }

    /// Puts one fault after the other into the node, while its kube-proxy is stopped.
    pub(crate) fn with_faults(&self) -> Outcome<Examined> {
        let faults = match self.node.mode {
            Mode::Iptables => IPTABLES,
            Mode::Nftables => NFTABLES,
            Mode::Ipvs => IPVS,
        };
        let healthy = self.codes("before")?.1;
        let mut examined = Examined::default();
        self.node.stop()?;
        for (nth, fault) in faults.iter().enumerate() {
            // kube-proxy sets it only with some configurations.
            if fault.script.contains("route_localnet") && !healthy.contains("route_localnet") {
                continue;
            }
            examined.faults += 1;
            examined.differences.extend(self.with_fault(nth, fault)?);
        }
        // Checks that each fault was undone: a remnant would be a second finding of the next fault.
        let (codes, text) = self.codes("after")?;
        if !codes.is_empty() {
            let place = format!("{} {}", self.node.name, self.node.mode);
            examined.differences.push(format!("{place}: after all faults: {codes:?}:\n{text}"));
        }
        self.node.go_on()?;
        Ok(examined)
    }

    fn with_fault(&self, nth: usize, fault: &NodeFault) -> Outcome<Option<String>> {
        let saved = self.folder.join("saved");
        fs::create_dir_all(&saved).during(saved.display())?;
        let within = |script: &str| {
            let script = format!("cd {}\n{script}", saved.display());
            self.node.output(&["sh", "-ec", &script])
        };
        let [save, restore] = match self.node.mode {
            Mode::Iptables | Mode::Nftables => [SAVE, RESTORE],
            Mode::Ipvs => [SAVE_IPVS, RESTORE_IPVS],
        };
        within(save)?;
        within(fault.script)?;
        let found = self.codes(&nth.to_string());
        within(restore)?;
        let (codes, text) = found?;
        let place = format!("{} {}", self.node.name, self.node.mode);
        let (name, code) = (fault.name, fault.code);
        let differs = codes != [code];
        Ok(differs.then(|| format!("{place}: {name}: expected {code}, found {codes:?}:\n{text}")))
    }

    /// Returns the codes that `check nodes` reports for the node, and the whole output.
    fn codes(&self, name: &str) -> Outcome<(Vec<String>, String)> {
        let program = uturn()?;
        let program = program.to_string_lossy();
        let bundle = self.folder.join(name);
        let written = bundle.to_string_lossy();
        let words = ["collect", "--here", "--node", &self.node.name, "-o", &written];
        self.node.output(&[&[&*program], &words[..]].concat())?;
        let mut check = Command::new(&*program);
        check.args(["check", "nodes", "--complete", "-o", "json", "-f"]).arg(self.objects);
        let output = check.arg("--bundle").arg(&bundle).output().during("uturn check nodes")?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let complaint = String::from_utf8_lossy(&output.stderr);
        let all: Value = serde_json::from_str(&text)
            .map_err(|why| Fault::new(format!("uturn check nodes: {why}: {complaint}")))?;
        let subject = format!("node/{}", self.node.name);
        let lists = all["checklists"].as_array().into_iter().flatten();
        let own = lists.filter(|list| list["subject"] == subject.as_str());
        let checks: Vec<&Value> =
            own.flat_map(|list| list["checks"].as_array().into_iter().flatten()).collect();
        if checks.is_empty() {
            return Err(Fault::new(format!("uturn check nodes says nothing of {subject}")));
        }
        let codes = checks.iter().filter(|check| check["state"] == "failed").map(|check| {
            let next = check["next"].as_str().unwrap_or_default();
            next.trim_start_matches("uturn explain ").to_owned()
        });
        let codes = codes.collect();
        let shown = serde_json::to_string_pretty(&checks).during("checks")?;
        fs::remove_dir_all(&bundle).during(bundle.display())?;
        Ok((codes, shown))
    }
}

/// The script that saves the state that faults change.
const SAVE: &str = "iptables-save >v4
ip6tables-save >v6
nft list table ip kube-proxy >nft4 2>/dev/null || :
nft list table ip6 kube-proxy >nft6 2>/dev/null || :
sysctl net.ipv4.ip_forward net.ipv4.conf.all.route_localnet >sysctls
sysctl net.bridge.bridge-nf-call-iptables >>sysctls 2>/dev/null || :
";

/// The script that restores this state. nft cannot load the tables that iptables keeps.
const RESTORE: &str = "iptables-legacy -t nat -F; iptables-legacy -t nat -X
iptables-legacy -F; iptables-legacy -X
iptables-legacy -t mangle -F; iptables-legacy -t mangle -X
nft flush ruleset
iptables-restore <v4
ip6tables-restore <v6
nft -f nft4
nft -f nft6
sysctl -qp sysctls
";

/// The script that saves this state in IPVS mode. It does not save a table that a fault is the
/// first to use.
const SAVE_IPVS: &str = "iptables-save >v4
ipset save >sets
ipvsadm -Sn >servers
ip addr save dev kube-ipvs0 >addresses
sysctl net.ipv4.ip_forward net.ipv4.vs.conntrack >sysctls
";

const RESTORE_IPVS: &str = "iptables -t raw -F
iptables-restore <v4
ipset flush
ipset restore -exist <sets
ipvsadm -C
ipvsadm -R <servers
ip addr flush dev kube-ipvs0
ip addr restore <addresses
sysctl -qp sysctls
";

/// Returns the path of the program `uturn`, which is built beside this one.
fn uturn() -> Outcome<PathBuf> {
    let own = std::env::current_exe().during("the stage's own program")?;
    let program = own.with_file_name("uturn");
    if program.exists() {
        Ok(program)
    } else {
        Err(Fault::new(format!("{} is not built", program.display())))
    }
}
