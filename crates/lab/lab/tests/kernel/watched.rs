//! What is seen of a lab, and that labs leave each other and a full machine alone.

use std::fs;
use std::net::Ipv4Addr;
use std::path::Path;
use std::process::Command;
use std::thread;

use rustix::process::{Pid, Signal, kill_process};
use uturn_lab::{Explanation, Watching};
use uturn_model::network::SecurityGroup;
use uturn_model::node::RpFilter;
use uturn_model::{Mechanism, Outcome};

use crate::rows::{INGRESS, LATE, SERVICE, flow, labs_of, plan, quick, start_victim};
use crate::set::{Set, forget_vips, here};

pub(crate) const ROWS: [(&str, fn()); 7] = [
    ("watched-return", asymmetric_return),
    ("watched-filter", reverse_path_filter),
    ("watched-group", security_group),
    ("watched-no-process", no_process_listens),
    ("watched-no-candidate", no_candidate),
    ("two-labs", two_labs),
    ("full-disk", full_disk),
];

/// The loop is seen where it happens: in the explanation, and in the captures.
fn asymmetric_return() {
    let folder = std::env::temp_dir().join(format!("uturn-captures-{}", std::process::id()));
    let watching = Watching { captures: Some(folder.clone()), explain: true };
    let (cluster, balancers) = quick(2);
    let flows = [flow("pod/shop/web-1", INGRESS)];
    let plan = plan(&cluster, &balancers, &flows);
    let watched = uturn_lab::watch(&plan, &watching, None, &mut |_| {}).unwrap();
    assert_eq!(watched.flows[0].counts, [(Outcome::AT_ONCE, 6), (LATE, 6)]);
    let [explanation] = &watched.explanations[..] else { panic!("{watched:?}") };
    assert_eq!(explanation.outcome, Some(LATE));
    assert_eq!(explanation.mechanism, Some(Mechanism::AsymmetricReturn), "{explanation:#?}");
    let at_pod = |leaves, from: &str, flags: &str| {
        explanation.sightings.iter().any(|seen| {
            let fits = seen.packet.starts_with(from) && seen.packet.ends_with(flags);
            seen.place == "pod shop/web-1" && seen.leaves == leaves && fits
        })
    };
    assert!(at_pod(false, "10.0.0.11:30080 → 10.1.1.10:", "SYN-ACK"), "{explanation:#?}");
    assert!(at_pod(true, "10.1.1.10:", "→ 10.0.0.11:30080 RST"), "{explanation:#?}");
    let probed = explanation.sightings.iter().any(|seen| seen.packet.contains("100.64."));
    assert!(!probed, "health checks are no part of it: {explanation:#?}");

    let node = packets(&folder.join("n1-eth0.pcap"));
    let has = |all: &[Seen], from: &str, flags| {
        all.iter().any(|explanation| explanation.from == from && explanation.flags & 0x16 == flags)
    };
    let to_node =
        |explanation: &Seen| explanation.to == "10.0.0.11:30080" && explanation.flags & 0x16 == SYN;
    let client = node
        .iter()
        .find(|explanation| to_node(explanation) && explanation.from.starts_with("10.1.1.10:"));
    let client = &client.expect("the load balancer sends it to n1 with the client's address").from;
    let back =
        |explanation: &Seen| explanation.from == "10.0.0.11:30080" && explanation.to == *client;
    assert!(!node.iter().any(back), "the answer never leaves by n1's link");
    let pod = packets(&folder.join("pod-shop-web-1.pcap"));
    assert!(
        pod.iter().any(|explanation| back(explanation) && explanation.flags & 0x16 == SYN | ACK),
        "it is in the pod"
    );
    assert!(has(&pod, client, RST), "which resets it");
    assert!(has(&packets(&folder.join("fabric-n1.pcap")), "10.0.0.100:80", SYN | ACK));
    fs::remove_dir_all(&folder).unwrap();
}

/// The kernel itself reports that the reverse-path filter dropped a packet.
fn reverse_path_filter() {
    let mut set = quick(1);
    forget_vips(&mut set);
    set.0.nodes.values_mut().for_each(|node| node.rp_filter = Some(RpFilter::Strict));
    let explanation = explain(&set, SERVICE);
    assert_eq!(explanation.mechanism, Some(Mechanism::ReversePathFilter), "{explanation:#?}");
}

fn security_group() {
    let mut set = quick(2);
    let group = SecurityGroup {
        name: "sg-none".into(),
        inbound: Vec::new(),
        outbound: Vec::new(),
        origin: here(),
    };
    set.0.security_groups.insert(group.name.clone(), group);
    for lb in &mut set.1 {
        lb.security_groups = vec!["sg-none".into()];
    }
    let explanation = explain(&set, INGRESS);
    assert_eq!(explanation.outcome, Some(Outcome::Hangs));
    assert_eq!(explanation.mechanism, Some(Mechanism::SecurityGroup), "{explanation:#?}");
}

fn no_process_listens() {
    let explanation = explain(&quick(1), "10.1.1.10:81");
    assert_eq!(explanation.outcome, Some(Outcome::Refused));
    assert_eq!(explanation.mechanism, Some(Mechanism::WrongPort), "{explanation:#?}");
}

/// The only target calls: the rule is found that drops its packets.
fn no_candidate() {
    let mut set = quick(1);
    forget_vips(&mut set);
    let explanation = explain_from("node/n1", &set, SERVICE);
    assert_eq!(explanation.outcome, Some(Outcome::Hangs));
    assert_eq!(explanation.mechanism, Some(Mechanism::NoCandidate), "{explanation:#?}");
    // The second is the lab's own, where the kernel has no nf_tables.
    let names = ["of table uturn_lb", "-A LB-NO-TARGET"];
    assert!(names.iter().any(|name| explanation.because.contains(name)), "{explanation:#?}");
}

/// Two labs of one process, and one of another.
fn two_labs() {
    let (mut other, _) = start_victim();
    let stands = labs_of(other.id());
    let measure = || {
        let (cluster, balancers) = quick(2);
        let flows = [flow("pod/shop/web-1", INGRESS), flow("pod/shop/web-1", SERVICE)];
        let measured = uturn_lab::measure(&plan(&cluster, &balancers, &flows), &mut |_| {});
        measured.unwrap().into_iter().map(|flow| flow.counts).collect::<Vec<_>>()
    };
    let all: Vec<_> = thread::scope(|scope| {
        let both = [scope.spawn(measure), scope.spawn(measure)];
        both.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let expected = vec![vec![(Outcome::AT_ONCE, 6), (LATE, 6)], vec![(Outcome::AT_ONCE, 12)]];
    assert_eq!(all, [expected.clone(), expected]);
    assert_eq!(labs_of(other.id()), stands, "the other lab is as it was");
    kill_process(Pid::from_child(&other), Signal::TERM).unwrap();
    assert!(other.wait().unwrap().success());
}

/// With no room for what a run has to note, it says so and leaves nothing. In a folder of
/// its own: a private mount.
fn full_disk() {
    let script = "mount -t tmpfs -o size=4k tmpfs /run && \"$0\" victim; \
                  find /run -mindepth 1 ! -path /run/netns | sed 's/^/left: /'";
    let program = std::env::current_exe().unwrap();
    let output = Command::new("unshare")
        .args(["--mount", "--propagation", "private", "sh", "-c", script])
        .arg(program)
        .output()
        .unwrap();
    let stdout = String::from_utf8(output.stdout).unwrap();
    assert!(stdout.contains("No space left on device"), "{stdout}");
    assert!(!stdout.contains("left: "), "{stdout}");
}

fn explain(set: &Set, to: &str) -> Explanation {
    explain_from("pod/shop/web-1", set, to)
}

fn explain_from(from: &str, set: &Set, to: &str) -> Explanation {
    let flows = [flow(from, to)];
    let watching = Watching { captures: None, explain: true };
    let plan = plan(&set.0, &set.1, &flows);
    let mut watched = uturn_lab::watch(&plan, &watching, None, &mut |_| {}).unwrap();
    assert_eq!(watched.explanations.len(), 1, "{watched:?}");
    watched.explanations.remove(0)
}

const SYN: u8 = 2;
const RST: u8 = 4;
const ACK: u8 = 16;

/// A packet of TCP in a capture.
struct Seen {
    from: String,
    to: String,
    flags: u8,
}

/// Reads a capture as others would: its header, then a header and bytes for each frame.
fn packets(file: &Path) -> Vec<Seen> {
    let bytes = fs::read(file).unwrap();
    let word = |at: usize| u32::from_ne_bytes(bytes[at..at + 4].try_into().unwrap());
    assert_eq!((word(0), word(20)), (0xa1b2_3c4d, 1), "pcap with nanoseconds, of Ethernet");
    let mut all = Vec::new();
    let mut at = 24;
    while at < bytes.len() {
        let length = word(at + 8) as usize;
        assert_eq!(length, word(at + 12) as usize, "whole frames");
        assert!(word(at + 4) < 1_000_000_000, "nanoseconds");
        let frame = &bytes[at + 16..at + 16 + length];
        at += 16 + length;
        if frame[12..14] != [8, 0] || frame[23] != 6 {
            continue;
        }
        let tcp = 14 + usize::from(frame[14] & 15) * 4;
        let end = |ip: usize, port: usize| {
            let ip: [u8; 4] = frame[ip..ip + 4].try_into().unwrap();
            let port = u16::from_be_bytes([frame[port], frame[port + 1]]);
            format!("{}:{port}", Ipv4Addr::from(ip))
        };
        let (from, to) = (end(26, tcp), end(30, tcp + 2));
        all.push(Seen { from, to, flags: frame[tcp + 13] });
    }
    all
}
