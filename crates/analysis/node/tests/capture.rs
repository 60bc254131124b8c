//! Captures of machines that are written down here: which tools they have, and what these print.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on panics")]

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use uturn_model::{CaptureFile, Name};
use uturn_netfilter::NodeState;
use uturn_node::{Captured, Machine, Manifest, Options, PartState, ToolFailure, capture};
use uturn_snapshot::bundle::{AddError, BundleManifest, NodeCaptured, add_node};

/// A machine that is no more than a list of answers.
#[derive(Default)]
struct Written {
    answers: BTreeMap<String, Result<String, ToolFailure>>,
    files: BTreeMap<String, String>,
    /// Commands in the order in which they were run.
    asked: RefCell<Vec<String>>,
    /// A command whose answer is another each time.
    restless: Option<&'static str>,
}

impl Written {
    fn says(mut self, command: &str, text: &str) -> Self {
        self.answers.insert(command.to_owned(), Ok(text.to_owned()));
        self
    }

    fn fails(mut self, command: &str, why: ToolFailure) -> Self {
        self.answers.insert(command.to_owned(), Err(why));
        self
    }

    fn has(mut self, path: &str, text: &str) -> Self {
        self.files.insert(path.to_owned(), text.to_owned());
        self
    }
}

impl Machine for Written {
    fn run(&self, program: &str, arguments: &[&str]) -> Result<String, ToolFailure> {
        let command = [&[program], arguments].concat().join(" ");
        let nth = self.asked.borrow().len();
        let again = if self.restless == Some(&*command) {
            format!("# \n-N {nth}\n")
        } else {
            String::new()
        };
        let answer = self.answers.get(&command).cloned().unwrap_or(Err(ToolFailure::Missing));
        self.asked.borrow_mut().push(command);
        answer.map(|text| text + &again)
    }

    fn read(&self, path: &str) -> Result<String, ToolFailure> {
        self.files.get(path).cloned().ok_or(ToolFailure::Missing)
    }

    fn list(&self, path: &str) -> Vec<String> {
        let inside = |file: &String| {
            let rest = file.strip_prefix(path)?.strip_prefix('/')?;
            Some(rest.split('/').next().unwrap_or(rest).to_owned())
        };
        let mut names: Vec<String> = self.files.keys().filter_map(inside).collect();
        names.dedup();
        names
    }
}

const KUBE: &str = "*nat\n:PREROUTING ACCEPT [7:420]\n:KUBE-SERVICES - [0:0]\n\
    -A PREROUTING -j KUBE-SERVICES\nCOMMIT\n";
const OTHER: &str = "*filter\n:INPUT ACCEPT [0:0]\n-A INPUT -p tcp -m tcp --dport 22 -j ACCEPT\n\
    -A INPUT -p tcp -m tcp --dport 80 -j ACCEPT\nCOMMIT\n";
const NONE: &str = "# Generated\n";

fn whole() -> Written {
    Written::default()
        .says("iptables-nft-save", KUBE)
        .says("iptables-legacy-save", NONE)
        .says("ip6tables-nft-save", NONE)
        .says("ip6tables-legacy-save", NONE)
        .says("nft -s list ruleset", "table ip x {\n}\n")
        .says("ipset save", "create a hash:ip\n")
        .says("ip addr", "1: lo: <UP>\n    inet 127.0.0.1/8 scope host lo\n")
        .says("ip -4 route show table all", "default via 10.0.0.1 dev eth0\n")
        .says("ip -6 route show table all", "fe80::/64 dev eth0\n")
        .says("ip -4 rule", "0:\tfrom all lookup local\n")
        .says("ip -6 rule", "0:\tfrom all lookup local\n")
        .says("ip -d -j link", "[]\n")
        .has("/proc/sys/net/ipv4/ip_forward", "1\n")
        .has("/proc/sys/net/ipv4/conf/eth0.1/rp_filter", "2\n")
        .has("/proc/sys/net/ipv4/conf/eth0.1/medium_id", "0\n")
        .has("/proc/sys/net/bridge/bridge-nf-call-iptables", "0\n")
        .has("/proc/sys/kernel/osrelease", "6.1.0\n")
}

fn node() -> Name {
    "n1".parse().unwrap()
}

fn of(machine: &Written) -> Captured {
    capture(machine, &node(), Options::default())
}

fn lacks(manifest: &Manifest) -> Vec<(&str, PartState)> {
    manifest.lacks().map(|part| (part.from.as_str(), part.state)).collect()
}

#[test]
fn a_node_with_all_its_tools_is_captured_whole_and_read_back() {
    let captured = of(&whole());
    assert!(captured.manifest.settled && lacks(&captured.manifest).is_empty());
    assert_eq!(captured.manifest.kernel.as_deref(), Some("6.1.0"));
    assert_eq!(
        captured.files["sysctl"],
        "net.ipv4.ip_forward = 1\nnet.bridge.bridge-nf-call-iptables = 0\n\
         net.ipv4.conf.eth0/1.rp_filter = 2\n"
    );
    let folder = Folder::new("whole");
    let written = add(&captured, &folder.0.join("bundle")).unwrap();
    let read = uturn_snapshot::read_capture(&written, node()).unwrap();
    assert_eq!(Manifest::of(&read), Some(captured.manifest));
    assert!(!read.files.contains_key(&CaptureFile::OtherIptables));
    let state = NodeState::from_capture(&read).unwrap();
    assert_eq!(state.sysctls.rp_filter("eth0.1"), 2);
    assert_eq!((state.iptables.tables.len(), state.routes.len()), (1, 2));
    assert!(state.ipvs.0.is_empty() && state.sets.set("a").is_some());
}

#[test]
fn the_back_end_of_kube_proxy_comes_first_and_the_other_is_kept() {
    let machine = whole().says("iptables-nft-save", OTHER).says("iptables-legacy-save", KUBE);
    let captured = of(&machine);
    assert_eq!(captured.files["iptables.save"], KUBE);
    assert_eq!(captured.files["iptables-other.save"], OTHER);
    let sources: Vec<(&str, &str)> = captured.manifest.parts[..2]
        .iter()
        .map(|part| (part.file.as_str(), part.from.as_str()))
        .collect();
    assert_eq!(
        sources,
        [("iptables.save", "iptables-legacy-save"), ("iptables-other.save", "iptables-nft-save")]
    );
}

#[test]
fn a_machine_without_tools_of_each_back_end_is_asked_for_its_own() {
    let mut machine = whole().says("iptables-save", KUBE);
    machine.answers.remove("iptables-nft-save");
    machine.answers.remove("iptables-legacy-save");
    let captured = of(&machine);
    assert_eq!(captured.files["iptables.save"], KUBE);
    assert!(captured.manifest.parts[0].why.as_ref().unwrap().contains("one back end"));
}

#[test]
fn what_is_missing_fails_or_hangs_is_said_and_the_rest_is_captured() {
    let limit = Duration::from_secs(3);
    let mut machine = whole()
        .fails("nft -s list ruleset", ToolFailure::TimedOut(limit))
        .fails("ip -6 rule", ToolFailure::Failed("Operation not supported".into()))
        .fails("iptables-legacy-save", ToolFailure::Failed("no right".into()));
    machine.answers.remove("ipset save");
    let captured = of(&machine);
    assert_eq!(
        lacks(&captured.manifest),
        [
            ("iptables-legacy-save", PartState::Failed),
            ("nft -s list ruleset", PartState::TimedOut),
            ("ipset save", PartState::Missing),
            ("ip -6 rule", PartState::Failed),
        ]
    );
    let why = captured.manifest.lacks().nth(1).unwrap().why.as_deref();
    assert_eq!(why, Some("did not end within 3 s"));
    for file in ["nft.txt", "ipset.save", "rule", "conntrack"] {
        assert!(!captured.files.contains_key(file), "{file}");
    }
    assert!(captured.files.contains_key("iptables.save") && captured.files.contains_key("route"));
}

#[test]
fn servers_come_from_the_kernel_where_ipvsadm_is_not() {
    let listed = "IP Virtual Server version 1.2.1 (size=4096)\n\
        Prot LocalAddress:Port Scheduler Flags\n  -> RemoteAddress:Port Forward Weight ActiveConn InActConn\n";
    let machine = whole().has("/proc/net/ip_vs", listed);
    assert_eq!(of(&machine).files["ipvs.save"], listed);
    let saved = "-A -t 10.0.0.1:80 -s rr\n";
    let machine = machine.says("ipvsadm -S -n", saved);
    assert_eq!(of(&machine).files["ipvs.save"], saved);
    // ipvsadm would load the module.
    let without = whole().says("ipvsadm -S -n", saved);
    assert_eq!(of(&without).files["ipvs.save"], "");
    assert!(!without.asked.borrow().iter().any(|command| command.starts_with("ipvsadm")));
}

#[test]
fn connections_and_counters_are_captured_on_request_only() {
    let machine = whole()
        .says("iptables-nft-save -c", KUBE)
        .says("iptables-legacy-save -c", NONE)
        .says("ip6tables-nft-save -c", NONE)
        .says("ip6tables-legacy-save -c", NONE)
        .says("nft list ruleset", "table ip x {\n}\n")
        .has("/proc/net/nf_conntrack", "ipv4 2 tcp 6 1 ESTABLISHED\n");
    assert!(!of(&machine).files.contains_key("conntrack"));
    assert!(!machine.asked.borrow().iter().any(|command| command.ends_with("-c")));
    let options = Options { conntrack: true, counters: true };
    let captured = capture(&machine, &node(), options);
    assert!(lacks(&captured.manifest).is_empty(), "{:?}", captured.manifest);
    assert_eq!(captured.files["conntrack"], "ipv4 2 tcp 6 1 ESTABLISHED\n");
}

#[test]
fn rules_that_change_all_the_time_are_not_settled() {
    let machine = Written { restless: Some("iptables-nft-save"), ..whole() };
    assert!(!of(&machine).manifest.settled);
    let asked = machine.asked.borrow().iter().filter(|command| *command == "ip addr").count();
    assert_eq!(asked, 4);
}

#[test]
fn a_capture_is_written_whole_beside_others_or_not_at_all() {
    let folder = Folder::new("beside");
    let bundle = folder.0.join("bundle");
    fs::create_dir_all(bundle.join("objects")).unwrap();
    let captured = of(&whole());
    add(&captured, &bundle).unwrap();
    let second = capture(&whole(), &"n2".parse().unwrap(), Options::default());
    add(&second, &bundle).unwrap();
    // Put together by hand, it goes on to say nothing of itself.
    assert_eq!(names(&bundle), ["nodes", "objects"]);
    assert_eq!(names(&bundle.join("nodes")), ["n1", "n2"]);
    assert!(matches!(add(&captured, &bundle), Err(AddError::Exists(_))));
    // A file cannot become a folder of nodes.
    let blocked = folder.0.join("blocked");
    fs::create_dir_all(&blocked).unwrap();
    fs::write(blocked.join("nodes"), "").unwrap();
    assert!(matches!(add(&captured, &blocked), Err(AddError::Io(..))));
    assert_eq!(names(&blocked), ["nodes"]);
    assert_eq!(names(&folder.0), ["blocked", "bundle"]);
}

#[test]
fn a_bundle_that_says_what_it_holds_lists_the_node() {
    let folder = Folder::new("listed");
    let bundle = folder.0.join("bundle");
    fs::create_dir_all(&bundle).unwrap();
    let path = bundle.join("bundle.json");
    let before = BundleManifest {
        others: [("mine".into(), 7.into())].into_iter().collect(),
        ..BundleManifest::new()
    };
    fs::write(&path, before.text()).unwrap();
    let captured = of(&whole());
    add(&captured, &bundle).unwrap();
    let after: BundleManifest = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    let taken_at = captured.manifest.taken_at;
    let nodes = vec![NodeCaptured { node: "n1".to_owned(), taken_at }];
    assert_eq!(after, BundleManifest { nodes, ..before });
    assert_eq!(names(&bundle), ["bundle.json", "nodes"]);
    // What cannot be listed is not added.
    fs::write(&path, "{").unwrap();
    let second = capture(&whole(), &"n2".parse().unwrap(), Options::default());
    assert!(matches!(add(&second, &bundle), Err(AddError::Manifest(..))));
    assert_eq!(names(&bundle.join("nodes")), ["n1"]);
    let archive = folder.0.join("bundle.tar.gz");
    assert!(matches!(add(&second, &archive), Err(AddError::Archive(_))));
    assert_eq!(names(&folder.0), ["bundle"]);
}

fn add(captured: &Captured, bundle: &Path) -> Result<PathBuf, AddError> {
    let Manifest { node, taken_at, .. } = captured.manifest.clone();
    add_node(bundle, &NodeCaptured { node, taken_at }, &captured.clone().into_files())
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// A folder of one test, gone when it ends.
struct Folder(PathBuf);

impl Folder {
    fn new(test: &str) -> Self {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("capture-{test}"));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
