//! The lab in the small machine.

use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use uturn_testing::commands::{Folder, transcript, uturn};

/// The cases of a report. `None`, with the reason noted, where there can be no machine.
fn cases(what: &str, output: &Output, status: i32) -> Option<Vec<Value>> {
    let why = String::from_utf8_lossy(&output.stderr);
    if output.status.code() == Some(3) && (why.contains("machine needs") || why.contains("carry")) {
        uturn_testing::skip(uturn_testing::Requirement::Machine, what, why);
        return None;
    }
    assert_eq!(output.status.code(), Some(status), "{}", transcript(output));
    let report = serde_json::from_slice::<Value>(&output.stdout);
    let report = report.unwrap_or_else(|why| panic!("{why}: {}", transcript(output)));
    Some(report["scenarios"].as_array().unwrap().clone())
}

fn ran_in_machine(case: &Value) -> bool {
    case["ran_on"].as_str().is_some_and(|place| place.starts_with("User Mode Linux"))
}

fn agrees(case: &Value, connects: u64) {
    let flows = case["flows"].as_array().unwrap();
    assert!(!flows.is_empty(), "{case:#}");
    for flow in flows {
        let measured = flow["measured"].as_array().unwrap();
        let count: u64 = measured.iter().map(|group| group["count"].as_u64().unwrap()).sum();
        assert!(flow["agrees"] == true && count >= connects, "{case:#}");
    }
}

#[test]
fn scenarios_are_measured_in_it() {
    let args =
        ["lab", "verify", "--vm", "l4-iptables", "--nodes", "2", "--connects", "10", "-o", "json"];
    let Some(cases) = cases("lab --vm", &uturn(&args).output().unwrap(), 0) else { return };
    let mode = |mode: &str| {
        cases.iter().find(|case| case["case"].as_str().unwrap().contains(mode)).unwrap()
    };
    assert!(ran_in_machine(mode("iptables")));
    agrees(mode("iptables"), 10);
    let nftables = mode("nftables");
    assert_eq!(nftables["ran_on"], Value::Null);
    assert!(nftables["not_run"].as_str().unwrap().contains("no nf_tables"), "{nftables:#}");
}

#[test]
fn a_scenario_from_standard_input_is_measured_in_it() {
    let scenario = "
apiVersion: uturn.dev/v1alpha1
kind: Scenario
metadata: {name: own}
spec:
  shows: The shape's backend answers a client beside it.
  nodes: [1]
  shape: {network: global-router, backends: last, clients: first}
  facts: {provider: tke, kubeProxy: {mode: ipvs, version: v1.34.4}}
  flows:
  - from: clients
    to: pod/shop/web-1:8080
    expect: [{outcomes: [{outcome: hangs}]}]
";
    let mut args =
        uturn(&["lab", "run", "--vm", "own", "-f", "-", "--connects", "3", "-o", "json"]);
    let mut child =
        args.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), scenario.as_bytes()).unwrap();
    // What is expected is wrong on purpose.
    let output = child.wait_with_output().unwrap();
    let Some(cases) = cases("lab --vm -f -", &output, 1) else { return };
    assert!(cases.len() == 1 && ran_in_machine(&cases[0]), "{cases:#?}");
    let flow = &cases[0]["flows"][0];
    assert_eq!(flow["agrees"], false, "{flow:#}");
    assert_eq!(flow["measured"][0]["outcome"], "answered", "{flow:#}");
}

/// Without any word of the kernel's for why it drops something: by what it counts, and by
/// which addresses it takes for its own.
#[test]
fn what_fails_in_it_is_explained_and_captured() {
    let folder = Folder::new("machine-explained");
    let place = folder.0.join("captures");
    let args = [
        "lab",
        "verify",
        "--explain",
        "--mode",
        "ipvs",
        "--nodes",
        "2",
        "l4-ipvs-upstream",
        "ipvs-host-local-remote",
        "--vm",
        "--connects",
        "2",
        "-o",
        "json",
        "--pcap",
        place.to_str().unwrap(),
    ];
    let output = uturn(&args).output().unwrap();
    let Some(cases) = cases("lab --vm --explain", &output, 0) else { return };
    assert!(cases.len() == 2 && cases.iter().all(ran_in_machine), "{cases:#?}");
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let explained = report["explained"].as_array().unwrap();
    let of = |scenario: &str, is_probe: bool| -> Vec<&Value> {
        let is_it = |explanation: &&Value| {
            explanation["scenario"] == scenario
                && explanation["health_check_of"].is_string() == is_probe
        };
        explained.iter().filter(is_it).collect()
    };
    // Both nodes have bound the address that their health checks come from.
    let probes = of("l4-ipvs-upstream", true);
    assert_eq!(probes.len(), 2, "{explained:#?}");
    // The other node has bound the address that the first one calls from.
    let calls = of("ipvs-host-local-remote", false);
    assert_eq!(calls.len(), 1, "{explained:#?}");
    for explanation in probes.into_iter().chain(calls) {
        assert_eq!(explanation["mechanism"], "local-source-drop", "{explanation:#}");
        assert!(
            explanation["because"].as_str().unwrap().contains("in_martian_src"),
            "{explanation:#}"
        );
        let last = explanation["packets"].as_array().unwrap().last().unwrap();
        assert!(last["place"].as_str().unwrap().starts_with("node "), "{explanation:#}");
    }
    assert!(explained.iter().all(|explanation| explanation["agrees"] == true), "{explained:#?}");
    let captured = place.join("l4-ipvs-upstream-2-nodes-ipvs/n1-eth0.pcap");
    let bytes = std::fs::read(&captured).unwrap();
    assert!(bytes.starts_with(&0xa1b2_3c4d_u32.to_ne_bytes()) && bytes.len() > 24 + 16 + 54);
}

/// By what nodes and the network around them have counted.
#[test]
fn counters_say_where_a_packet_ended() {
    let rows = ["cross-node-forwarding", "no-bandwidth", "no-endpoint", "wrong-port"];
    let words =
        ["lab", "verify", "--vm", "--explain", "--mode", "iptables", "--nodes", "2", "-o", "json"];
    let args = [&words[..], &["--connects", "1"], &rows].concat();
    let output = uturn(&args).output().unwrap();
    let Some(_) = cases("lab --vm --explain", &output, 0) else { return };
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let explained = report["explained"].as_array().unwrap();
    for row in rows {
        let mut its =
            explained.iter().filter(|explanation| explanation["scenario"] == row).peekable();
        assert!(its.peek().is_some(), "{row}");
        for explanation in its {
            assert!(
                explanation["mechanism"].is_string() && explanation["agrees"] == true,
                "{explanation:#}"
            );
        }
    }
}

#[test]
fn users_other_than_root_get_it_unasked() {
    let what = "lab of an ordinary user";
    let root = Path::new("/proc/self")
        .metadata()
        .is_ok_and(|own| std::os::unix::fs::MetadataExt::uid(&own) == 0);
    let program = env!("CARGO_BIN_EXE_uturn-lab");
    let as_nobody = |program: &str, args: &[&str]| {
        let mut command = if root { Command::new("setpriv") } else { Command::new("env") };
        if root {
            command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]);
        }
        command.arg(program).args(args).current_dir("/").stdin(Stdio::null()).output()
    };
    if !as_nobody("test", &["-x", program]).is_ok_and(|output| output.status.success()) {
        return uturn_testing::skip(
            uturn_testing::Requirement::Unprivileged,
            what,
            "uturn is built in a folder of root's alone",
        );
    }
    let args = ["lab", "verify", "l4-iptables", "--nodes", "1", "--connects", "3", "-o", "json"];
    // The case in nftables mode runs nowhere.
    let Some(cases) = cases(what, &as_nobody(program, &args).unwrap(), 3) else { return };
    let ran: Vec<&Value> = cases.iter().filter(|case| ran_in_machine(case)).collect();
    assert!(!ran.is_empty(), "{cases:#?}");
    ran.iter().for_each(|case| agrees(case, 3));
}
