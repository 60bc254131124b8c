//! `uturn collect --here` in network namespaces with the rules that uturn itself writes, and
//! `uturn check nodes` over what it captured.

use std::fs;
use std::process::{Command, Output};

use serde_json::Value;
use uturn_testing::node_faults::{IPTABLES, NFTABLES, NodeFault};
use uturn_testing::{Requirement, skip};

use crate::common::{Folder, transcript, uturn};

const OBJECTS: &str = "
apiVersion: v1
kind: Node
metadata: {name: n1}
spec: {podCIDR: 10.1.1.0/24, podCIDRs: [10.1.1.0/24]}
status: {addresses: [{type: InternalIP, address: 10.0.0.11}]}
---
apiVersion: v1
kind: Node
metadata: {name: n2}
spec: {podCIDR: 10.1.2.0/24, podCIDRs: [10.1.2.0/24]}
status: {addresses: [{type: InternalIP, address: 10.0.0.12}]}
---
apiVersion: v1
kind: Pod
metadata: {namespace: shop, name: web-0, labels: {app: web}}
spec: {nodeName: n1, containers: [{name: c, image: i, ports: [{containerPort: 8080}]}]}
status: {phase: Running, podIP: 10.1.1.10, podIPs: [{ip: 10.1.1.10}], conditions: [{type: Ready, status: 'True'}]}
---
apiVersion: v1
kind: Pod
metadata: {namespace: shop, name: web-1, labels: {app: web}}
spec: {nodeName: n2, containers: [{name: c, image: i, ports: [{containerPort: 8080}]}]}
status: {phase: Running, podIP: 10.1.2.10, podIPs: [{ip: 10.1.2.10}], conditions: [{type: Ready, status: 'True'}]}
---
apiVersion: v1
kind: Service
metadata: {namespace: shop, name: web}
spec:
  type: NodePort
  clusterIP: 172.16.1.1
  clusterIPs: [172.16.1.1]
  selector: {app: web}
  ports: [{port: 80, targetPort: 8080, nodePort: 30080, protocol: TCP}]
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {namespace: shop, name: web-a, labels: {kubernetes.io/service-name: web}}
addressType: IPv4
ports: [{name: '', port: 8080, protocol: TCP}]
endpoints:
- {addresses: [10.1.1.10], nodeName: n1, conditions: {ready: true}, targetRef: {kind: Pod, namespace: shop, name: web-0}}
- {addresses: [10.1.2.10], nodeName: n2, conditions: {ready: true}, targetRef: {kind: Pod, namespace: shop, name: web-1}}
---
apiVersion: uturn.dev/v1alpha1
kind: Facts
spec:
  provider: none
  network: {serviceCIDRs: [172.16.0.0/16], podCIDRs: [10.1.0.0/16]}
  kubeProxy: {version: v1.34.4, mode: MODE}
";

/// What stands for the node: its interfaces, routes and sysctls.
const NODE: &str = "ip link set lo up
ip link add eth0 type veth peer name far0
ip link set far0 up
ip addr add 10.0.0.11/24 dev eth0
ip link set eth0 up
ip route add default via 10.0.0.1 dev eth0
ip link add cbr0 type veth peer name far1
ip link set far1 up
ip addr add 10.1.1.1/24 dev cbr0
ip link set cbr0 up
ip route add 10.1.2.0/24 via 10.0.0.12 dev eth0
sysctl -qw net.ipv4.ip_forward=1
sysctl -qw net.ipv4.conf.all.route_localnet=1
sysctl -qw net.bridge.bridge-nf-call-iptables=1
";

/// What other programs leave on a healthy node.
const OTHERS: &str = "iptables -N DOCKER-USER
iptables -A DOCKER-USER -j RETURN
iptables -I FORWARD -j DOCKER-USER
iptables -N f2b-sshd
iptables -A f2b-sshd -s 198.51.100.77 -j REJECT
iptables -A f2b-sshd -j RETURN
iptables -I INPUT -p tcp --dport 22 -j f2b-sshd
iptables -t nat -N KUBE-KUBELET-CANARY
iptables -t mangle -N KUBE-KUBELET-CANARY
iptables -t nat -N CNI-HOSTPORT-DNAT
iptables -t nat -A CNI-HOSTPORT-DNAT -p tcp --dport 8099 -j DNAT --to-destination 10.1.1.77:80
iptables -t nat -A PREROUTING -m addrtype --dst-type LOCAL -j CNI-HOSTPORT-DNAT
iptables -t nat -A POSTROUTING -s 10.1.0.0/16 ! -d 10.1.0.0/16 -j MASQUERADE
iptables -t raw -A PREROUTING -p tcp --syn -m hashlimit --hashlimit-above 1000/sec \
  --hashlimit-mode srcip --hashlimit-name flood -j DROP
iptables -I FORWARD -p tcp --syn -m connlimit --connlimit-above 500 -j REJECT
if iptables -t nat -L KUBE-SERVICES >/dev/null 2>&1; then
  iptables -t nat -A PREROUTING -j KUBE-SERVICES
fi
";

/// Loads the rules of a mode.
fn load(mode: &str) -> &'static str {
    match mode {
        "iptables" => "iptables-restore <rules\n",
        _ => "nft -f rules\n",
    }
}

/// The codes that `check nodes` names for n1 after this script, what it prints, and what a scan does.
fn found(mode: &str, test: &str, script: &str) -> Result<(Vec<String>, String, String), String> {
    let folder = Folder::new(test);
    folder.file("objects.yaml", &OBJECTS.replace("MODE", mode));
    let rules = uturn(&["rules", "-f", "objects.yaml", "--node", "n1"]);
    let rules = { rules }.current_dir(&folder.0).output().unwrap();
    assert!(rules.status.success(), "{}", transcript(&rules));
    fs::write(folder.0.join("rules"), &rules.stdout).unwrap();
    let program = env!("CARGO_BIN_EXE_uturn");
    let script =
        format!("{NODE}{}{script}\n{program} collect --here --node n1 -o bundle\n", load(mode));
    let made = Command::new("unshare")
        .args(["-n", "sh", "-ec", &script])
        .current_dir(&folder.0)
        .output()
        .map_err(|why| why.to_string())?;
    if !made.status.success() {
        return Err(transcript(&made));
    }
    let check =
        ["check", "nodes", "-f", "objects.yaml", "--bundle", "bundle", "--complete", "-o", "json"];
    let checked = uturn(&check).current_dir(&folder.0).output().unwrap();
    let (codes, text) = failed(&checked, Some("node/n1"))?;
    let scan = ["scan", "-f", "objects.yaml", "--bundle", "bundle", "--complete"];
    let scanned = transcript(&uturn(&scan).current_dir(&folder.0).output().unwrap());
    // The same is found without the names and addresses.
    let redact = ["collect", "-f", "objects.yaml", "--bundle", "bundle", "--redact", "-o", "shown"];
    let redacted = uturn(&redact).current_dir(&folder.0).output().unwrap();
    if !redacted.status.success() {
        return Err(transcript(&redacted));
    }
    let check = ["check", "nodes", "--bundle", "shown", "-o", "json"];
    let checked = uturn(&check).current_dir(&folder.0).output().unwrap();
    let (shown, shown_text) = failed(&checked, None)?;
    if shown == codes {
        Ok((codes, text, scanned))
    } else {
        Err(format!("{codes:?}, and redacted {shown:?}: {text}\n{shown_text}"))
    }
}

/// The codes that the lines of a node's list lead to, or those of all nodes, and all that was
/// printed.
fn failed(checked: &Output, node: Option<&str>) -> Result<(Vec<String>, String), String> {
    let text = transcript(checked);
    let all: Value =
        serde_json::from_slice(&checked.stdout).map_err(|why| format!("{why}: {text}"))?;
    let lists = all["checklists"].as_array().ok_or(text.clone())?;
    let wanted = lists.iter().filter(|list| node.is_none_or(|node| list["subject"] == node));
    let checks = wanted.filter_map(|list| list["checks"].as_array()).flatten();
    let failed = checks.filter(|check| check["state"] == "failed");
    let codes = failed.map(|check| {
        let next = check["next"].as_str().unwrap_or_default();
        next.trim_start_matches("uturn explain ").to_owned()
    });
    Ok((codes.collect(), text))
}

fn can_run(mode: &str) -> bool {
    let probe = format!("{NODE}iptables -t nat -L -n >&2\n");
    let probe = if mode == "nftables" { format!("{probe}nft list ruleset >&2\n") } else { probe };
    match uturn_testing::in_a_namespace(&probe, "") {
        Ok(_) => true,
        Err(why) => {
            let missing = if mode == "nftables" { Requirement::Nft } else { Requirement::Kernel };
            skip(missing, "captures of namespaces that stand for nodes", why);
            false
        }
    }
}

fn faults(mode: &str, faults: &[NodeFault]) {
    if !can_run(mode) {
        return;
    }
    let healthy = found(mode, &format!("nodes-{mode}"), "").unwrap();
    assert!(healthy.0.is_empty(), "{}", healthy.1);
    assert!(healthy.1.contains("lines compared"), "{}", healthy.1);
    let beside = found(mode, &format!("nodes-{mode}-beside"), OTHERS).unwrap();
    assert!(beside.0.is_empty(), "{}", beside.1);
    let scanned = &beside.2;
    assert!(scanned.contains("nothing found; "), "{scanned}");
    assert!(!scanned.contains("calls to"), "all is judged: {scanned}");
    let mut wrong = Vec::new();
    for (nth, fault) in faults.iter().enumerate() {
        match found(mode, &format!("nodes-{mode}-{nth}"), fault.script) {
            Ok((codes, ..)) if codes == [fault.code] => {}
            Ok((codes, text, _)) => {
                wrong.push(format!("{}: {}, not {codes:?}: {text}", fault.name, fault.code));
            }
            Err(why) => wrong.push(format!("{}: {why}", fault.name)),
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn each_fault_of_a_node_in_iptables_mode_is_found() {
    faults("iptables", IPTABLES);
}

#[test]
fn each_fault_of_a_node_in_nftables_mode_is_found() {
    faults("nftables", NFTABLES);
}

#[test]
fn a_capture_is_not_written_over() {
    let folder = Folder::new("nodes-again");
    folder.file("bundle/nodes/n1/addr", "");
    let again = folder.run(&["collect", "--here", "--node", "n1", "-o", "bundle"]);
    assert!(again.starts_with("exit 2\n"), "{again}");
    assert!(again.contains("bundle/nodes/n1 exists already"), "{again}");
    let unnamed = folder.run(&["collect", "--here", "--node", "No Name", "-o", "bundle"]);
    assert!(unnamed.starts_with("exit 2\n"), "{unnamed}");
}
