//! `uturn lb run` without root: with just the capabilities that a file needs, and without them.
#![cfg(target_os = "linux")]

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};

use uturn_testing::{Requirement, skip};

use uturn_testing::commands::Folder;

/// A user that owns nothing.
const USER: &str = "65534";

/// A load balancer at an address that each network namespace has.
fn documents(port: u16, protocol: &str, rest: &str) -> String {
    format!(
        "apiVersion: uturn.dev/v1alpha1
kind: LoadBalancer
metadata: {{name: web}}
spec:
  vip: 127.0.0.1
  listeners:
  - port: {port}
    protocol: {protocol}
    {rest}
    targets: ['127.0.0.1:9001']
"
    )
}

/// How a program comes by capabilities.
#[derive(Clone, Copy)]
enum CapabilitiesOf {
    /// It is started with them, as systemd does it.
    Parent,
    /// Its file has all, and it may have only these.
    File,
}

/// Starts a program in a network namespace of its own, as a user with these capabilities alone.
fn start(from: CapabilitiesOf, capabilities: &[&str], program: &[&str], input: &str) -> Child {
    let only: String = capabilities.iter().map(|name| format!(",+{name}")).collect();
    let sets = match from {
        CapabilitiesOf::Parent => ["inh-caps", "ambient-caps", "bounding-set"]
            .map(|set| format!("--{set}=-all{only}"))
            .into_iter()
            .chain(["--no-new-privs".into()])
            .collect(),
        CapabilitiesOf::File => {
            vec!["--inh-caps=-all".into(), format!("--bounding-set=-all{only}")]
        }
    };
    let script = "ip link set lo up && echo 1 > /proc/sys/net/ipv4/ip_forward && exec \"$@\"";
    let mut child = Command::new("unshare")
        .args(["--net", "sh", "-ec", script, "sh", "setpriv", "--reuid", USER, "--regid", USER])
        .arg("--clear-groups")
        .args(sets)
        .args(program)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .env("NO_COLOR", "1")
        .spawn()
        .unwrap();
    // A program that fails early may not read it.
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    child
}

/// What comes of it: `ready`, or the message that it ends with.
fn outcome(from: CapabilitiesOf, program: &str, capabilities: &[&str], documents: &str) -> String {
    let mut child = start(from, capabilities, &[program, "lb", "run", "-f", "-"], documents);
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    if lines.any(|line| line.unwrap().contains("\"event\":\"ready\"")) {
        child.kill().unwrap();
        child.wait().unwrap();
        return "ready".into();
    }
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(3));
    String::from_utf8(output.stderr).unwrap()
}

/// Whether the program can be started so here.
fn can_start(from: CapabilitiesOf, program: &str) -> Result<(), String> {
    let id = Command::new("id").arg("-u").output().map(|output| output.stdout);
    if !id.is_ok_and(|id| id == b"0\n") {
        return Err("it takes root to give a program single capabilities".into());
    }
    let output = start(from, &[], &[program, "--version"], "").wait_with_output().unwrap();
    if output.status.success() {
        Ok(())
    } else {
        Err(String::from_utf8_lossy(&output.stderr).trim().to_owned())
    }
}

#[test]
fn a_capability_that_is_missing_is_named() {
    check(CapabilitiesOf::Parent, env!("CARGO_BIN_EXE_uturn-lb"));
}

/// A program whose file has capabilities, as in a container that is not root's.
#[test]
fn capabilities_of_the_file_are_taken() {
    let folder = Folder::new("lb-capabilities");
    let program = folder.0.join("uturn");
    fs::copy(env!("CARGO_BIN_EXE_uturn-lb"), &program).unwrap();
    let all = "cap_net_bind_service,cap_net_admin,cap_net_raw=p";
    let set = Command::new("setcap").arg(all).arg(&program).output();
    if !set.as_ref().is_ok_and(|output| output.status.success()) {
        let why = format!("setcap: {set:?}");
        return skip(Requirement::Unprivileged, "the capabilities of a file", why);
    }
    check(CapabilitiesOf::File, program.to_str().unwrap());
}

/// Runs what needs capabilities with and without them.
fn check(from: CapabilitiesOf, program: &str) {
    if let Err(why) = can_start(from, program) {
        return skip(Requirement::Unprivileged, "the load balancer without root", why);
    }
    let replaced = "source: 127.0.0.1/32\n    avoidsClient: false\n    healthCheck: none";
    let cases: [(&str, String, &[&str]); 5] = [
        ("a port above 1024", documents(8080, "HTTP", replaced), &[]),
        ("a port below 1024", documents(80, "HTTP", replaced), &["NET_BIND_SERVICE"]),
        ("a kept source", documents(8080, "HTTP", "healthCheck: none"), &["NET_ADMIN"]),
        ("TCP", documents(80, "TCP", "healthCheck: none"), &["NET_ADMIN"]),
        ("UDP", documents(53, "UDP", "healthCheck: {interval: 1s}"), &["NET_ADMIN", "NET_RAW"]),
    ];
    for (what, documents, needed) in cases {
        let lower = |names: &[&str]| names.iter().map(|name| name.to_lowercase()).collect();
        let all: Vec<String> = lower(needed);
        let all: Vec<&str> = all.iter().map(String::as_str).collect();
        assert_eq!(outcome(from, program, &all, &documents), "ready", "{what}");
        for missing in needed {
            let rest: Vec<&str> =
                all.iter().copied().filter(|name| *name != missing.to_lowercase()).collect();
            let message = outcome(from, program, &rest, &documents);
            assert!(message.contains(&format!("capability CAP_{missing}")), "{what}: {message}");
        }
    }
}
