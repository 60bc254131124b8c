//! A cluster in IPVS mode in a small machine, of a user who is not root.

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, Write as _};
use std::os::fd::OwnedFd;
use std::process::Stdio;

use k8s_openapi::api::core::v1::{Node, Pod};
use kube::ResourceExt as _;
use rustix::event::{PollFd, PollFlags, poll};
use uturn_machine::Machine;
use uturn_testing::{Requirement, skip};

use super::installed::{Installed, client, kill_supervisor, text};
use super::rows::{answers_of, is_front, list, replace, runtime};
use super::stories;

/// How many calls are made to see both endpoints: IPVS takes them in turn.
const CALLS: usize = 4;

/// Plays what is wanted.
pub(crate) fn play(root: &Installed, is_wanted: &dyn Fn(&str) -> bool) {
    let machine = match Machine::find() {
        Ok(machine) => machine,
        Err(why) => return skip(Requirement::Machine, "a cluster in a small machine", why),
    };
    if is_wanted("machine") {
        of_nobody(root, &machine);
    }
    stories::play_in_ipvs(root, is_wanted);
}

/// The shop for an ordinary user, or else for root.
fn of_nobody(root: &Installed, machine: &Machine) {
    let nobody = root.for_nobody();
    if nobody.is_none() {
        let why = "the program is in a folder of root's alone";
        skip(Requirement::Unprivileged, "a cluster of an ordinary user", why);
    }
    let how: &[&str] = if nobody.is_some() { &[] } else { &["--vm"] };
    shop(nobody.as_ref().unwrap_or(root), how, machine);
}

/// The shop in IPVS mode: kubectl's way in, calls from pods, and nothing left of a supervisor that
/// was killed.
fn shop(installed: &Installed, how: &[&str], machine: &Machine) {
    let (gone, kept) = io::pipe().unwrap();
    // Unlike the pipe's own end, a copy stays open in programs that are started.
    let inherited: OwnedFd = rustix::io::dup(&kept).unwrap();
    drop(kept);
    let options = ["--example", "shop", "--mode", "ipvs"];
    let kubeconfig = installed.up(&[&options, how].concat());
    drop(inherited);
    let folder = kubeconfig.parent().unwrap();
    let runtime = runtime();
    let client = runtime.block_on(client(&kubeconfig));

    let nodes = runtime.block_on(list::<Node>(&client));
    let names: Vec<String> = nodes.iter().map(Node::name_any).collect();
    assert_eq!(names, ["n1", "n2", "n3"]);
    let info = nodes[0].status.as_ref().unwrap().node_info.as_ref().unwrap();
    assert!(machine.kernel().ends_with(&info.kernel_version), "{}", info.kernel_version);

    let pods = runtime.block_on(list::<Pod>(&client));
    let fronts: Vec<&Pod> = pods.iter().filter(|pod| is_front(pod)).collect();
    let named = |pod: &&Pod| format!("by pod shop/{}", pod.name_any());
    let expected: BTreeSet<String> = fronts.iter().map(named).collect();
    assert_eq!(expected.len(), 2);
    assert_eq!(answers_of(installed, "shop/web", "http://front/", CALLS), expected);
    assert_eq!(answers_of(installed, "node/n2", "http://172.16.12.7/", CALLS), expected);
    let bound = installed.in_pod("node/n1", &["ip", "-brief", "address", "show", "kube-ipvs0"]);
    assert!(text(&bound.stdout).contains("172.16.12.7/32"), "{}", text(&bound.stdout));

    let mut inside = installed
        .lab(&["exec", "shop/web", "--", "sh", "-c", "cat; echo to err >&2; exit 7"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    inside.stdin.take().unwrap().write_all(b"as it was\n").unwrap();
    let output = inside.wait_with_output().unwrap();
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    assert_eq!((out.as_str(), err.as_str()), ("as it was\n", "to err\n"));
    assert_eq!(output.status.code(), Some(7));
    // A watch goes through the relay too.
    runtime.block_on(replace(&client, fronts[0]));
    let again = installed.lab(&["up", "--vm"]).output().unwrap();
    assert_eq!(again.status.code(), Some(3), "{}", text(&again.stderr));

    kill_supervisor(folder);
    let output = installed.lab(&["down"]).output().unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(!fs::exists(folder).unwrap(), "{} is left", folder.display());
    let mut all = [PollFd::new(&gone, PollFlags::IN)];
    // It is closed when the last process is gone.
    poll(&mut all, None).unwrap();
    assert!(all[0].revents().contains(PollFlags::HUP));
    assert!(!installed.in_pod("node/n1", &["true"]).status.success());
}
