//! Clusters with both families of addresses, whose network encapsulates each family or not.

use super::common::{Folder, uturn};
use serde_json::Value;

/// What calico-node writes on a node: the ends of its tunnels, by family.
const ENDS: [[&str; 2]; 2] = [
    [
        "projectcalico.org/IPv4VXLANTunnelAddr: 192.168.185.0",
        "projectcalico.org/IPv4VXLANTunnelAddr: 192.168.7.0",
    ],
    [
        "projectcalico.org/IPv6VXLANTunnelAddr: 'fd00:168:185::1'",
        "projectcalico.org/IPv6VXLANTunnelAddr: 'fd00:168:7::1'",
    ],
];

/// Two nodes with Calico. Which families are encapsulated is said by the addresses of tunnels.
fn cluster(mode: &str, encapsulated: [bool; 2]) -> String {
    let mut text = format!(
        "apiVersion: v1
kind: ConfigMap
metadata: {{name: kube-proxy, namespace: kube-system}}
data: {{config.conf: \"{{mode: {mode}, clusterCIDR: '192.168.0.0/16,fd00:168::/32'}}\"}}
---
apiVersion: apps/v1
kind: DaemonSet
metadata: {{name: calico-node, namespace: kube-system}}
spec:
  selector: {{matchLabels: {{k8s-app: calico-node}}}}
  template:
    metadata: {{labels: {{k8s-app: calico-node}}}}
    spec: {{hostNetwork: true, containers: [{{name: calico-node, image: calico}}]}}
"
    );
    for number in [1, 2] {
        let ends = encapsulated.iter().zip(ENDS).filter(|(is_so, _)| **is_so);
        let mut notes = vec![
            format!("projectcalico.org/IPv4Address: 10.0.0.1{number}/24"),
            format!("projectcalico.org/IPv6Address: 'fd00:10::1{number}/64'"),
        ];
        notes.extend(ends.map(|(_, ends)| ends[number - 1].to_owned()));
        text += &format!(
            "---
apiVersion: v1
kind: Node
metadata: {{name: n{number}, annotations: {{{}}}}}
status:
  addresses:
  - {{type: InternalIP, address: 10.0.0.1{number}}}
  - {{type: InternalIP, address: 'fd00:10::1{number}'}}
",
            notes.join(", ")
        );
    }
    for (name, node, v4, v6) in [
        ("client", "n1", "192.168.185.14", "fd00:168:185::14"),
        ("web", "n2", "192.168.7.9", "fd00:168:7::9"),
    ] {
        text += &format!(
            "---
apiVersion: v1
kind: Pod
metadata: {{name: {name}, namespace: shop, labels: {{app: {name}}}}}
spec: {{nodeName: {node}, containers: [{{name: c, image: c, ports: [{{containerPort: 8080}}]}}]}}
status:
  phase: Running
  podIP: {v4}
  podIPs: [{{ip: {v4}}}, {{ip: '{v6}'}}]
  conditions: [{{type: Ready, status: \"True\"}}]
"
        );
    }
    text += "---
apiVersion: v1
kind: Service
metadata: {name: web, namespace: shop}
spec:
  type: NodePort
  ipFamilyPolicy: RequireDualStack
  ipFamilies: [IPv4, IPv6]
  clusterIP: 10.96.7.1
  clusterIPs: [10.96.7.1, 'fd00:96::7:1']
  selector: {app: web}
  ports: [{name: http, port: 80, targetPort: 8080, nodePort: 30081}]
";
    for (family, ip) in [("IPv4", "192.168.7.9"), ("IPv6", "fd00:168:7::9")] {
        text += &format!(
            "---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata:
  name: web-{}
  namespace: shop
  labels: {{kubernetes.io/service-name: web}}
addressType: {family}
endpoints: [{{addresses: ['{ip}'], nodeName: n2, conditions: {{ready: true}}}}]
ports: [{{name: http, port: 8080, protocol: TCP}}]
",
            family.to_lowercase()
        );
    }
    text
}

#[test]
fn each_family_is_encapsulated_or_not() {
    for mode in ["iptables", "ipvs", "nftables"] {
        for encapsulated in [[false, false], [true, false], [false, true], [true, true]] {
            let folder = Folder::new("dual-stack");
            folder.file("cluster.yaml", &cluster(mode, encapsulated));
            let what = format!("{mode}, encapsulated {encapsulated:?}");
            let args = ["scan", "-f", ".", "-o", "json", "--fail-on", "info"];
            let output = uturn(&args).current_dir(&folder.0).output().unwrap();
            let scan: Value = serde_json::from_slice(&output.stdout).unwrap();
            assert_eq!(scan["findings"], serde_json::json!([]), "{what}: {scan:#}");
            let word = |is_so| if is_so { "tunnel" } else { "underlay" };
            let [v4, v6] = encapsulated.map(word);
            let network = &scan["network"];
            assert_eq!(network["transport"], v4, "{what}: {network}");
            let of_v6 = network.get("transport_v6").unwrap_or(&network["transport"]);
            assert_eq!(of_v6, v6, "{what}: {network}");
            for (from, to) in [
                ("node/n1", "http://[fd00:96::7:1]/"),
                ("node/n1", "http://10.96.7.1/"),
                ("pod/shop/client", "http://[fd00:10::11]:30081/"),
                ("outside", "http://[fd00:10::11]:30081/"),
                ("outside", "http://10.0.0.11:30081/"),
            ] {
                let trace = folder.run(&["trace", "-f", ".", "--from", from, "--to", to]);
                let is_answered = trace.starts_with("exit 0\n--- stdout\nanswered at once\n");
                assert!(is_answered, "{what}, {from} to {to}:\n{trace}");
                let [first, second] = encapsulated;
                let is_wrapped = if to.contains('[') { second } else { first };
                let crosses = trace.contains("goes through the tunnel to node n2");
                assert_eq!(crosses, is_wrapped, "{what}, {from} to {to}:\n{trace}");
            }
        }
    }
}

/// A Service with both families whose endpoints have one: calls of the other address are refused.
#[test]
fn each_family_of_a_service_is_scanned() {
    let folder = Folder::new("dual-stack-one-slice");
    let all = cluster("iptables", [false, false]);
    let (without, _) = all.split_once("---\napiVersion: discovery.k8s.io/v1\nkind: EndpointSlice\nmetadata:\n  name: web-ipv6").unwrap();
    folder.file("cluster.yaml", without);
    let scan = folder.run(&["scan", "-f", ".", "--complete"]);
    let row = scan.lines().nth(3).unwrap_or_default();
    for part in ["svc/shop/web [fd00:96::7:1]:80 + 2 more  ", "has no endpoints", "  UT311"] {
        assert!(row.contains(part), "{part}: {scan}");
    }
    assert!(!scan.contains("call svc/shop/web"), "the same name leads there: {scan}");
    let check = folder.run(&["check", "service", "shop/web", "-f", ".", "--complete"]);
    assert!(check.contains("to [fd00:96::7:1]:80: refused (no-endpoint)"), "{check}");
}

/// Each client calls the address of its own family.
#[test]
fn an_ingress_with_both_families_is_scanned() {
    let folder = Folder::new("dual-stack-ingress");
    let mut text = cluster("iptables", [false, false]);
    text += "---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: web, namespace: shop, annotations: {kubernetes.io/ingress.class: qcloud}}
spec: {defaultBackend: {service: {name: web, port: {number: 80}}}}
status: {loadBalancer: {ingress: [{ip: 10.0.0.100}, {ip: 'fd00:10::64'}]}}
---
apiVersion: uturn.dev/v1alpha1
kind: Facts
spec: {provider: tke}
";
    folder.file("cluster.yaml", &text);
    let scan = folder.run(&["scan", "-f", "."]);
    assert!(!scan.starts_with("exit 2"), "{scan}");
    assert!(scan.contains("calls fine"), "{scan}");
}

/// On a node without an IPv4 address, kube-proxy's rules for IPv4 say nothing of its Services.
#[test]
fn rules_of_a_node_are_of_a_family_that_it_has() {
    let folder = Folder::new("dual-stack-rules");
    let dual = cluster("iptables", [false, false]);
    folder.file("all.yaml", &dual);
    let rules = || folder.run(&["rules", "-f", ".", "--node", "n1"]);
    assert!(rules().contains("-d 192.168.7.9/32") || rules().contains("192.168.7.9:8080"));
    let is_v4 = |line: &&str| line.contains("InternalIP, address: 10.0.0.1");
    let v6: Vec<&str> = dual.lines().filter(|line| !is_v4(line)).collect();
    folder.file("all.yaml", &v6.join("\n"));
    let rules = rules();
    assert!(rules.contains("[fd00:168:7::9]:8080"), "{rules}");
}
