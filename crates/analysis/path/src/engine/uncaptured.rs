//! Assumptions where captures of nodes lack files: a missing file says nothing about the node.

use uturn_model::capture::CaptureFile;
use uturn_model::wording::some_of;
use uturn_model::{Assumption, Capture, Cluster, Family, Name, Node, ProxyMode};

/// The assumption for one kind of missing file.
struct Row {
    subject: &'static str,
    assumed: &'static str,
    lacks: fn(&Cluster, &Node, &Capture) -> bool,
    file: CaptureFile,
}

const ROWS: [Row; 8] = [
    Row {
        subject: "rules for IPv4",
        assumed: "those that kube-proxy programs",
        lacks: |_, node, capture| lacks_rules(node, capture, Family::V4),
        file: CaptureFile::Iptables,
    },
    Row {
        subject: "rules for IPv6",
        assumed: "those that kube-proxy programs",
        lacks: |_, node, capture| lacks_rules(node, capture, Family::V6),
        file: CaptureFile::Ip6tables,
    },
    Row {
        subject: "sets that rules name",
        assumed: "those that kube-proxy programs; what other sets contain is not known",
        lacks: |_, _, capture| {
            let rules = [CaptureFile::Iptables, CaptureFile::Ip6tables];
            let mut rules = rules.iter().filter_map(|file| capture.files.get(file));
            let names_sets = rules.any(|rules| rules.text.contains(" --match-set "));
            names_sets && lacks(capture, CaptureFile::Ipset)
        },
        file: CaptureFile::Ipset,
    },
    Row {
        subject: "virtual servers of IPVS",
        assumed: "those that kube-proxy programs",
        lacks: |cluster, _, capture| {
            cluster.proxy.mode.value == ProxyMode::Ipvs && lacks(capture, CaptureFile::Ipvs)
        },
        file: CaptureFile::Ipvs,
    },
    Row {
        subject: "addresses and routes",
        assumed: "as its object and the pod network have it",
        lacks: |_, _, capture| lacks(capture, CaptureFile::Addresses),
        file: CaptureFile::Addresses,
    },
    Row {
        subject: "addresses and routes",
        assumed: "as its object and the pod network have it",
        lacks: |_, _, capture| lacks(capture, CaptureFile::Routes),
        file: CaptureFile::Routes,
    },
    Row {
        subject: "rules that pick tables of routes",
        assumed: "the usual ones",
        lacks: |_, _, capture| lacks(capture, CaptureFile::Rules),
        file: CaptureFile::Rules,
    },
    Row {
        subject: "forwarding",
        assumed: "on, unless Facts say otherwise",
        lacks: |_, _, capture| {
            let text = capture.files.get(&CaptureFile::Sysctls).map_or("", |file| &*file.text);
            let switches = ["net.ipv4.ip_forward", "net.ipv4.conf.all.forwarding"];
            let slashes = text.replace('/', ".");
            !switches.iter().any(|switch| slashes.contains(switch))
        },
        file: CaptureFile::Sysctls,
    },
];

fn lacks(capture: &Capture, file: CaptureFile) -> bool {
    !capture.files.contains_key(&file)
}

fn lacks_rules(node: &Node, capture: &Capture, family: Family) -> bool {
    node.address(family).is_some() && !capture.has_rules(family)
}

/// Returns whether the capture has rules of the iptables back end that kube-proxy does not use.
fn has_other(capture: &Capture) -> bool {
    let files = [CaptureFile::OtherIptables, CaptureFile::OtherIp6tables];
    files.iter().any(|file| !lacks(capture, *file))
}

/// Returns one assumption for each kind of file that some captures lack.
pub(crate) fn supposed(cluster: &Cluster) -> Vec<Assumption> {
    let captured = || {
        let pair = |(name, capture)| Some((cluster.nodes.get(name)?, capture));
        cluster.captures.iter().filter_map(pair)
    };
    let mut all = Vec::new();
    for row in &ROWS {
        let lacking: Vec<&Name> = captured()
            .filter(|(node, capture)| (row.lacks)(cluster, node, capture))
            .map(|(node, _)| &node.name)
            .collect();
        if lacking.is_empty() {
            continue;
        }
        let file = row.file.file_name();
        all.push(Assumption {
            subject: format!("{} of {}", row.subject, some_of(&lacking)).into(),
            assumed: row.assumed.into(),
            because: format!("the capture does not say it in {file}").into(),
            settle: format!("capture {file} of each").into(),
        });
    }
    let of_both: Vec<&Name> =
        captured().filter(|(_, capture)| has_other(capture)).map(|(node, _)| &node.name).collect();
    if !of_both.is_empty() {
        all.push(Assumption {
            subject: format!("the other back end of iptables on {}", some_of(&of_both)).into(),
            assumed: "its rules stop nothing".into(),
            because: "the kernel walks the rules of both, uturn those of kube-proxy's".into(),
            settle: "iptables-legacy-save and iptables-nft-save on the node".into(),
        });
    }
    all
}
