//! One case: made real on six nodes, and judged there.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use uturn_model::{Cluster, Family, ProxyMode};

use crate::arguments::Arguments;
use crate::case::{self, Case};
use crate::control::Control;
use crate::dice::Dice;
use crate::dump::Dump;
use crate::fault::{During as _, Fault, Outcome};
use crate::node::Node;
use crate::world::World;
use crate::{flows, net, packets, rules};

/// IPVS needs a kernel with ip_vs, and a machine of its own where this one has none.
const MODES: [ProxyMode; 2] = [ProxyMode::Iptables, ProxyMode::Nftables];

/// What all cases came to.
#[derive(Debug, Default)]
pub(crate) struct Sum {
    pub(crate) cases: usize,
    nodes: usize,
    chains: usize,
    lines: usize,
    flows: usize,
    packets: usize,
    ways: BTreeMap<&'static str, usize>,
    pub(crate) differences: usize,
    /// Modes in which the judges have shown that they see a difference.
    proved: BTreeSet<ProxyMode>,
}

/// One case being tried.
pub(crate) struct Trial<'t> {
    pub(crate) arguments: &'t Arguments,
    pub(crate) world: &'t World,
    pub(crate) control: &'t Control<'t>,
    pub(crate) case: &'t Case,
    pub(crate) sum: &'t mut Sum,
    /// Differences are counted, and neither said nor kept.
    pub(crate) quiet: bool,
}

impl Trial<'_> {
    pub(crate) fn run(&mut self) -> Outcome<()> {
        let own = self.control.replace(&self.case.objects())?;
        let config = self.case.proxy_config()?;
        let mut dice = Dice::new(self.arguments.seed.wrapping_add(self.sum.cases as u64));
        let rp_filter = *dice.pick(&[0, 1, 2]);
        let mut nodes = Vec::new();
        for mode in MODES {
            for number in 1..=net::NODES {
                self.world.check()?;
                let which = (number, mode);
                nodes.push(Node::start(self.world, self.control, which, &config, rp_filter)?);
            }
        }
        self.synced(&mut nodes)?;
        self.control.relabel(&self.case.items)?;
        self.control.add(&case::last())?;
        for node in &mut nodes {
            self.await_last(node)?;
        }
        self.synced(&mut nodes)?;
        for mode in MODES {
            let told = self.case.told(mode, &own)?;
            let cluster = self.case.cluster(told.clone())?;
            for node in nodes.iter_mut().filter(|node| node.mode == mode) {
                self.world.check()?;
                self.judge(node, &cluster, &told, &mut dice)?;
                self.sum.nodes += 1;
            }
        }
        Ok(())
    }

    fn synced(&self, nodes: &mut [Node]) -> Outcome<()> {
        let synced = self.control.synced(nodes.iter().map(Node::host));
        // A kube-proxy that has ended says better why.
        nodes.iter_mut().try_for_each(Node::check)?;
        let words = || nodes.iter().map(Node::words).collect::<Vec<_>>().join("\n");
        synced.map_err(|fault| Fault::new(format!("{fault}\n{}", words())))
    }

    /// Until both families have the Service that was added last.
    fn await_last(&self, node: &mut Node) -> Outcome<()> {
        let addresses = case::last_addresses();
        let end = Instant::now() + Duration::from_secs(60);
        while Instant::now() < end {
            self.world.check()?;
            node.check()?;
            let dump = node.dump()?;
            let mut families = Family::BOTH.into_iter().zip(&addresses);
            if families.all(|(family, address)| dump.rules(node.mode, family).contains(address)) {
                return Ok(());
            }
            thread::sleep(Duration::from_millis(50));
        }
        let words = node.words();
        let named = format!("kube-proxy {} on {}", node.mode, node.name);
        Err(Fault::new(format!(
            "{named} did not program the last Service within a minute:\n{words}"
        )))
    }

    fn judge(
        &mut self,
        node: &mut Node,
        cluster: &Cluster,
        told: &str,
        dice: &mut Dice,
    ) -> Outcome<()> {
        let mut dump = node.dump()?;
        let mut compared = rules::compare(cluster, &node.name, &dump)?;
        // What nobody waits for: a sync that something else than an object asked for.
        let end = Instant::now() + Duration::from_secs(3);
        while !compared.differences.is_empty() && Instant::now() < end {
            thread::sleep(Duration::from_millis(300));
            let again = node.dump()?;
            if again != dump {
                compared = rules::compare(cluster, &node.name, &again)?;
                dump = again;
            }
        }
        self.sum.chains += compared.blocks;
        self.sum.lines += compared.lines;
        self.prove(node, cluster, &dump, dice)?;
        let mut differences = compared.differences;
        let flows = flows::choose(cluster, node.number, self.arguments.packets, dice);
        let tried = packets::compare(node, &dump, &flows)?;
        self.sum.flows += tried.flows;
        self.sum.packets += tried.packets;
        for (way, count) in tried.ways {
            *self.sum.ways.entry(way).or_default() += count;
        }
        differences.extend(tried.differences);
        if !differences.is_empty() {
            self.sum.differences += differences.len();
            if self.quiet {
                return Ok(());
            }
            for difference in &differences {
                println!("{difference}\n");
            }
            self.keep(node, &dump, cluster, told)?;
        }
        Ok(())
    }

    /// That both judges object to a kernel that is not as uturn thinks: once a mode.
    fn prove(
        &mut self,
        node: &mut Node,
        cluster: &Cluster,
        dump: &Dump,
        dice: &mut Dice,
    ) -> Outcome<()> {
        let spoiled = dump.spoiled();
        if self.sum.proved.contains(&node.mode) || spoiled == *dump {
            return Ok(());
        }
        let mut found = rules::compare(cluster, &node.name, &spoiled)?.differences.len();
        if found > 0 {
            let flows = flows::choose(cluster, node.number, self.arguments.packets, dice);
            let tried = packets::compare(node, &spoiled, &flows)?;
            found = tried.differences.len();
        }
        if found == 0 {
            let why = "found no difference in a dump with other ports: they cannot be trusted";
            return Err(Fault::new(format!("{} on {}: the judges {why}", node.mode, node.name)));
        }
        self.sum.proved.insert(node.mode);
        Ok(())
    }

    /// Writes down what is needed to try it again.
    fn keep(&self, node: &Node, dump: &Dump, cluster: &Cluster, told: &str) -> Outcome<()> {
        let folder = self.arguments.work.join("failed").join(&self.case.name);
        let of_node = folder.join(format!("{}-{}", node.mode, node.name));
        dump.write(&of_node)?;
        rules::write_ours(cluster, &node.name, &of_node);
        let objects = folder.join(format!("{}.json", node.mode));
        fs::write(&objects, told).during(objects.display())?;
        let (objects, of_node) = (shown(&objects), shown(&of_node));
        println!(
            "objects: {objects}\nits kernel: {of_node}\nagain: cargo xtask conformance --case {objects}\n"
        );
        Ok(())
    }
}

fn shown(path: &Path) -> String {
    path.canonicalize().unwrap_or_else(|_| path.to_owned()).display().to_string()
}

impl std::fmt::Display for Sum {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { cases, nodes, chains, lines, flows, packets, ways, differences, .. } = self;
        let ways: Vec<String> = ways.iter().map(|(way, count)| format!("{count} {way}")).collect();
        write!(
            f,
            "{cases} clusters, {nodes} nodes: {chains} chains and sets with {lines} lines compared; \
             {flows} flows with {packets} packets compared ({}); {differences} differences",
            ways.join(", ")
        )
    }
}
