//! Tries one case: builds it on real nodes, and judges it there.

use std::fs;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;
use uturn_dice::Dice;
use uturn_model::{Cluster, Version};

use crate::arguments::Arguments;
use crate::case::{self, Case};
use crate::control_plane::ControlPlane;
use crate::dump::Dump;
use crate::fault::{During as _, Fault, Outcome};
use crate::flows::Flow;
use crate::mode::Mode;
use crate::node::Node;
use crate::nodes::Examination;
use crate::packet_end::Memory;
use crate::summary::Summary;
use crate::workspace::Workspace;
use crate::{flows, packets, rules};

/// The case whose nodes get faults.
const WITH_FAULTS: &str = "every-kind";

/// A case that is being tried.
pub(crate) struct Trial<'t> {
    pub(crate) arguments: &'t Arguments,
    pub(crate) workspace: &'t Workspace,
    pub(crate) control: &'t ControlPlane<'t>,
    pub(crate) case: &'t Case,
    pub(crate) version: Version,
    /// The seed of packets and node settings.
    pub(crate) seed: u64,
    pub(crate) sum: &'t mut Summary,
    /// Whether differences are counted without printing or saving them.
    pub(crate) quiet: bool,
}

impl Trial<'_> {
    pub(crate) fn run(&mut self) -> Outcome<()> {
        let own = self.control.replace(&self.case.objects())?;
        let config = self.case.proxy_config()?;
        let rp_filter = *Dice::new(self.seed).pick(&[0, 1, 2]);
        let modes = self.modes(&config);
        let mut nodes = Vec::new();
        for mode in &modes {
            for number in mode.nodes(self.seed) {
                self.workspace.check()?;
                let (which, how) = ((number, *mode), (self.version, &config));
                nodes.push(Node::start(self.workspace, self.control, which, how, rp_filter)?);
            }
        }
        self.synced(&mut nodes)?;
        self.control.relabel(&self.case.items)?;
        self.control.add(&case::last())?;
        for node in &mut nodes {
            self.await_last(node)?;
        }
        self.synced(&mut nodes)?;
        for mode in modes {
            let uturn_input = self.case.uturn_input(mode, &own)?;
            let cluster = self.case.cluster(uturn_input.clone())?;
            for node in nodes.iter_mut().filter(|node| node.mode == mode) {
                self.workspace.check()?;
                self.judge(node, &cluster, &uturn_input)?;
            }
            self.sum.part(self.version, mode).clusters += 1;
        }
        Ok(())
    }

    /// Returns the modes that this kube-proxy supports with this configuration.
    fn modes(&self, config: &Value) -> Vec<Mode> {
        let has = |mode: &Mode| match mode.refusal(self.version, config) {
            Some(why) if !self.quiet => {
                println!("{} {}: {mode} left out: {why}", self.version, self.case.name);
                false
            }
            refused => refused.is_none(),
        };
        let arguments = self.arguments;
        let here = |mode: &Mode| mode.in_machine() == arguments.in_machine && has(mode);
        arguments.modes.iter().copied().filter(here).collect()
    }

    fn synced(&self, nodes: &mut [Node]) -> Outcome<()> {
        let synced = self.control.synced(nodes.iter().map(Node::host));
        // The log of a kube-proxy that has ended explains more.
        nodes.iter_mut().try_for_each(Node::check)?;
        let words = || nodes.iter().map(Node::last_lines).collect::<Vec<_>>().join("\n");
        synced.map_err(|fault| Fault::new(format!("{fault}\n{}", words())))
    }

    /// Waits until the node has the Service that was added last, in both families.
    fn await_last(&self, node: &mut Node) -> Outcome<()> {
        let addresses = case::last_addresses();
        let end = Instant::now() + Duration::from_secs(300);
        while Instant::now() < end {
            self.workspace.check()?;
            node.check()?;
            if node.shows(&addresses)? {
                return Ok(());
            }
            // There is no notification to wait for: `nft monitor` does not cover legacy iptables,
            // and kube-proxy's metrics have to be polled as well.
            thread::sleep(node.mode.pause());
        }
        let words = node.last_lines();
        let named = format!("kube-proxy {} on {}", node.mode, node.name);
        Err(Fault::new(format!(
            "{named} did not program the last Service within five minutes:\n{words}"
        )))
    }

    fn judge(&mut self, node: &mut Node, cluster: &Cluster, uturn_input: &str) -> Outcome<()> {
        let mut dump = node.dump()?;
        let mut compared = rules::compare(node.mode, cluster, &node.name, &dump)?;
        // A sync that was not caused by an object may still be pending.
        let end = Instant::now() + Duration::from_secs(10);
        while !compared.differences.is_empty() && Instant::now() < end {
            thread::sleep(Duration::from_millis(300));
            let again = node.dump()?;
            if again != dump {
                compared = rules::compare(node.mode, cluster, &node.name, &again)?;
                dump = again;
            }
        }
        // The seed gives the same packets when the case is tried alone.
        let mut dice = Dice::new(self.seed.wrapping_add(u64::from(node.number) << 32));
        let flows = flows::choose(cluster, node.number, self.arguments.packets, &mut dice);
        self.prove_judges(node, cluster, &dump, &flows)?;
        let tried = packets::compare(node, &dump, &flows, Memory::Whole)?;
        self.sum.add((self.version, node.mode), &compared, &tried);
        let mut differences = compared.differences;
        differences.extend(tried.differences);
        differences.extend(self.examine(node, uturn_input)?);
        if differences.is_empty() || self.quiet {
            return Ok(());
        }
        for difference in &differences {
            println!("{difference}\n");
        }
        self.keep(node, &dump, cluster, uturn_input)
    }

    /// Captures the node, and once for each version and mode also puts faults into it.
    fn examine(&mut self, node: &Node, uturn_input: &str) -> Outcome<Vec<String>> {
        // In the small machine, captures take longer than all else: one node is enough there, and
        // faults are put into it only where that is asked for.
        if node.mode.in_machine() && self.case.name != WITH_FAULTS {
            return Ok(Vec::new());
        }
        let folder = self.workspace.folder().join(format!("capture-{}-{}", node.mode, node.name));
        fs::create_dir_all(&folder).during(folder.display())?;
        let objects = folder.join("objects.json");
        fs::write(&objects, uturn_input).during(objects.display())?;
        let of = (self.version, node.mode);
        let has_faults = self.sum.part(of.0, of.1).faults > 0;
        let examination = Examination { node, objects: &objects, folder: folder.clone() };
        let mut examined = vec![examination.healthy()?];
        // The faults are meant for a cluster with Services of every kind.
        let is_wanted = !node.mode.in_machine() || self.arguments.ipvs_faults;
        let is_due = is_wanted && self.case.name == WITH_FAULTS && !has_faults;
        if is_due && examined[0].differences.is_empty() {
            examined.push(examination.with_faults()?);
        }
        for part in &examined {
            self.sum.add_examined(of, part);
        }
        fs::remove_dir_all(&folder).during(folder.display())?;
        Ok(examined.into_iter().flat_map(|part| part.differences).collect())
    }

    /// Checks that the judges detect differences: in rules and packets if endpoints have other
    /// ports, and in replies if uturn's walk has no connection state. The check is repeated until
    /// it has succeeded on one node.
    fn prove_judges(
        &mut self,
        node: &mut Node,
        cluster: &Cluster,
        dump: &Dump,
        flows: &[Flow],
    ) -> Outcome<()> {
        let with_other_ports = dump.with_other_ports();
        let version = self.version;
        if self.quiet || self.sum.part(version, node.mode).judges_work || with_other_ports == *dump
        {
            return Ok(());
        }
        let rules = rules::compare(node.mode, cluster, &node.name, &with_other_ports)?.differences;
        let mut objects = |dump, memory| -> Outcome<bool> {
            Ok(!packets::compare(node, dump, flows, memory)?.differences.is_empty())
        };
        let packets = objects(&with_other_ports, Memory::Whole)?;
        let answers = objects(dump, Memory::None)?;
        let judges_work = !rules.is_empty() && packets && answers;
        self.sum.part(version, node.mode).judges_work = judges_work;
        Ok(())
    }

    /// Saves the files that are needed to try the case again.
    fn keep(&self, node: &Node, dump: &Dump, cluster: &Cluster, uturn_input: &str) -> Outcome<()> {
        let folder = folder(self.arguments, self.version, self.case);
        let of_node = folder.join(format!("{}-{}", node.mode, node.name));
        dump.write(&of_node)?;
        rules::write_ours(cluster, &node.name, &of_node);
        let objects = folder.join(format!("{}.json", node.mode));
        fs::write(&objects, uturn_input).during(objects.display())?;
        let (objects, of_node) = (shown(&objects), shown(&of_node));
        println!(
            "objects: {objects}\nits kernel: {of_node}\n\
             again: cargo xtask conformance --case {objects} --seed {} --modes {}\n",
            self.seed, node.mode
        );
        Ok(())
    }
}

/// Returns the folder for the files that are needed to try a failed case again.
pub(crate) fn folder(arguments: &Arguments, version: Version, case: &Case) -> PathBuf {
    arguments.work.join("failed").join(format!("{version}-{}", case.name))
}

fn shown(path: &Path) -> String {
    path.canonicalize().unwrap_or_else(|_| path.to_owned()).display().to_string()
}
