//! Addresses that nodes announce on a segment that they share, with real ARP: which nodes answer for
//! an address that they have, and whom a node reaches that has it itself.

use std::process::Command;

type Row = (&'static str, fn());

pub(crate) const ROWS: [Row; 5] = [
    ("announced-ipvs", every_node_that_bound_it_answers),
    ("announced-strict-arp", with_strict_arp_the_kernel_leaves_it_to_the_speaker),
    ("announced-loopback", an_address_on_the_loopback_is_answered_for_too),
    ("announced-loopback-ignored", settings_for_direct_return_keep_the_loopback_quiet),
    ("announced-own-call", a_node_that_has_the_address_calls_itself),
];

const VIP: &str = "10.9.0.100";

/// The device on which kube-proxy binds addresses in IPVS mode.
const IPVS_DEVICE: &str = "kube-ipvs0";

/// What kube-proxy sets with strictARP.
const STRICT_ARP: [(&str, &str); 2] = [("all/arp_ignore", "1"), ("all/arp_announce", "2")];

fn every_node_that_bound_it_answers() {
    let segment = Segment::new("ipvs");
    segment.bind(IPVS_DEVICE);
    assert_eq!(segment.called_by("client"), Met::AClosedPort);
}

fn with_strict_arp_the_kernel_leaves_it_to_the_speaker() {
    let segment = Segment::new("strict");
    segment.set(&STRICT_ARP);
    segment.bind(IPVS_DEVICE);
    assert_eq!(segment.called_by("client"), Met::Nobody);
    // The node's own address is answered for as ever.
    assert_eq!(segment.call("client", "10.9.0.1"), Met::AClosedPort);
}

fn an_address_on_the_loopback_is_answered_for_too() {
    let segment = Segment::new("lo");
    segment.bind("lo");
    assert_eq!(segment.called_by("client"), Met::AClosedPort);
}

fn settings_for_direct_return_keep_the_loopback_quiet() {
    let segment = Segment::new("quiet");
    segment.set(&STRICT_ARP);
    segment.bind("lo");
    assert_eq!(segment.called_by("client"), Met::Nobody);
}

/// Whatever other nodes announce: the call does not leave the node.
fn a_node_that_has_the_address_calls_itself() {
    for device in [IPVS_DEVICE, "lo"] {
        let segment = Segment::new("own");
        segment.set(&STRICT_ARP);
        segment.bind(device);
        segment.ip("node", &["link", "set", "eth0", "down"]);
        assert_eq!(segment.called_by("node"), Met::AClosedPort, "{device}");
    }
}

/// Whom a call met. Nothing listens anywhere: a machine that gets it refuses.
#[derive(Debug, PartialEq, Eq)]
enum Met {
    AClosedPort,
    Nobody,
}

/// A node and a client on one link. Their namespaces go when this is dropped.
struct Segment {
    name: String,
}

impl Segment {
    fn new(what: &str) -> Self {
        let segment = Self { name: format!("uturn-arp-{}-{what}", std::process::id()) };
        let [node, client] = ["node", "client"].map(|place| segment.place(place));
        run(&["netns", "add", &node]).unwrap();
        run(&["netns", "add", &client]).unwrap();
        let pair = ["link", "add", "eth0", "type", "veth", "peer", "name", "eth0", "netns"];
        segment.ip("node", &[&pair[..], &[&client]].concat());
        for (place, address) in [("node", "10.9.0.1/24"), ("client", "10.9.0.2/24")] {
            segment.ip(place, &["address", "add", address, "dev", "eth0"]);
            segment.ip(place, &["link", "set", "lo", "up"]);
            segment.ip(place, &["link", "set", "eth0", "up"]);
        }
        segment
    }

    fn place(&self, place: &str) -> String {
        format!("{}-{place}", self.name)
    }

    /// Gives the node the address.
    fn bind(&self, device: &str) {
        if device != "lo" {
            // As in the lab: where the kernel has no dummy devices, a bridge without ports.
            let place = self.place("node");
            let add = |kind| run(&["-n", &place, "link", "add", device, "type", kind]);
            add("dummy").or_else(|_| add("bridge")).unwrap();
        }
        self.ip("node", &["address", "add", &format!("{VIP}/32"), "dev", device]);
    }

    /// Sets the node's kernel.
    fn set(&self, settings: &[(&str, &str)]) {
        for (key, value) in settings {
            let file = format!("/proc/sys/net/ipv4/conf/{key}");
            let script = format!("echo {value} > {file}");
            run(&["netns", "exec", &self.place("node"), "sh", "-c", &script]).unwrap();
        }
    }

    fn ip(&self, place: &str, words: &[&str]) {
        run(&[&["-n", &self.place(place)], words].concat()).unwrap();
    }

    fn called_by(&self, place: &str) -> Met {
        self.call(place, VIP)
    }

    fn call(&self, place: &str, address: &str) -> Met {
        let script = format!("exec 3<>/dev/tcp/{address}/80");
        let place = self.place(place);
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &place, "bash", "-c", &script]).env("LC_ALL", "C");
        let said = String::from_utf8(command.output().unwrap().stderr).unwrap();
        match (said.contains("Connection refused"), said.contains("No route to host")) {
            (true, false) => Met::AClosedPort,
            (false, true) => Met::Nobody,
            _ => panic!("{place} called {address}: {said}"),
        }
    }
}

impl Drop for Segment {
    fn drop(&mut self) {
        for place in ["node", "client"] {
            // A segment that was not built has none.
            let _ = Command::new("ip").args(["netns", "delete", &self.place(place)]).status();
        }
    }
}

/// Runs `ip`, and returns what it complained of.
fn run(words: &[&str]) -> Result<(), String> {
    let output = Command::new("ip").args(words).output().unwrap();
    let said = || format!("ip {}: {}", words.join(" "), String::from_utf8_lossy(&output.stderr));
    if output.status.success() { Ok(()) } else { Err(said()) }
}
