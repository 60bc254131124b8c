//! What a scan says to somebody who has never heard of uturn: who cannot reach what, since what looks
//! like this.

use serde_json::Value;

use super::common::Folder;

/// A Service with an address that every node has in IPVS mode, and with an endpoint on one of them: the
/// programs of the other cannot reach it.
const NODES: &str = "apiVersion: v1
kind: Node
metadata: {name: n1}
spec: {podCIDR: 10.244.1.0/24, providerID: 'gce://p/z/n1'}
status: {addresses: [{type: InternalIP, address: 10.0.0.11}], nodeInfo: {kubeProxyVersion: v1.34.0}}
---
apiVersion: v1
kind: Node
metadata: {name: n2}
spec: {podCIDR: 10.244.2.0/24, providerID: 'gce://p/z/n2'}
status: {addresses: [{type: InternalIP, address: 10.0.0.12}], nodeInfo: {kubeProxyVersion: v1.34.0}}
---
apiVersion: v1
kind: Pod
metadata: {name: web, namespace: shop, labels: {app: web}}
spec: {nodeName: n1, containers: [{name: web, image: web, ports: [{containerPort: 8080}]}]}
status: {podIP: 10.244.1.9, phase: Running, conditions: [{type: Ready, status: 'True'}]}
---
apiVersion: v1
kind: Service
metadata: {name: web, namespace: shop}
spec: {type: LoadBalancer, externalTrafficPolicy: Local, clusterIP: 10.96.0.9, selector: {app: web}, ports: [{port: 80, targetPort: 8080, nodePort: 30080}]}
status: {loadBalancer: {ingress: [{ip: 10.0.0.100}]}}
---
apiVersion: uturn.dev/v1alpha1
kind: Facts
spec: {provider: metallb, kubeProxy: {mode: ipvs}, network: {podCIDRs: [10.244.0.0/16]}}
";

const ON_HOST: &str = "---
apiVersion: v1
kind: Pod
metadata: {name: agent, namespace: NAMESPACE}
spec: {nodeName: n2, hostNetwork: true, containers: [{name: agent, image: agent}]}
status: {podIP: 10.0.0.12, phase: Running, conditions: [{type: Ready, status: 'True'}]}
";

/// A Service and an Ingress that are written wrong, and workloads without pods yet.
const WRITTEN_WRONG: &str = "apiVersion: apps/v1
kind: Deployment
metadata: {name: api, namespace: shop}
spec:
  replicas: 2
  selector: {matchLabels: {app: api}}
  template:
    metadata: {labels: {app: api}}
    spec: {containers: [{name: api, image: api, ports: [{containerPort: 80}]}]}
---
apiVersion: v1
kind: Service
metadata: {name: api, namespace: shop}
spec: {selector: {app: api}, ports: [{port: 80}]}
---
apiVersion: v1
kind: Service
metadata: {name: none, namespace: shop}
spec: {selector: {app: none}, ports: [{port: 80}]}
---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: front, namespace: shop}
spec:
  ingressClassName: nginx
  rules:
  - http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: api, port: {number: 8080}}}}]}
---
apiVersion: networking.k8s.io/v1
kind: IngressClass
metadata: {name: nginx}
spec: {controller: k8s.io/ingress-nginx}
";

fn json(folder: &Folder, args: &[&str]) -> Value {
    let printed = folder.run(&[args, &["-o", "json"]].concat());
    serde_json::from_str(printed.split_once("--- stdout\n").unwrap().1).unwrap()
}

/// Programs that serve all applications call everything in a scan and hardly anything in life.
#[test]
fn the_clusters_own_pods_count_less() {
    for (namespace, severity, exit) in [("shop", "error", 1), ("kube-system", "warning", 0)] {
        let folder = Folder::new(&format!("in-words-{namespace}"));
        let pod = ON_HOST.replace("NAMESPACE", namespace);
        folder.file("a.yaml", &format!("{NODES}{pod}"));
        let scan = folder.run(&["scan", "-f", ".", "-o", "wide"]);
        let row = scan.lines().nth(3).unwrap_or_default();
        assert!(scan.starts_with(&format!("exit {exit}\n")), "{scan}");
        assert!(row.starts_with(&format!("{severity} ")) && row.contains("UT104"), "{scan}");
        assert!(row.contains(&format!("  pod/{namespace}/agent  svc/shop/web ")), "{scan}");
    }
}

/// The object that has to change comes first, and scan, check and trace say the same.
#[test]
fn one_reason_for_one_thing() {
    let folder = Folder::new("in-words-reasons");
    folder.file("a.yaml", WRITTEN_WRONG);
    let port = "Service shop/api has no port 8080; it has 80";
    let selector = "its selector app=none matches none of the 2 pods of namespace shop";
    let input = ["-f", ".", "--complete"];
    let run = |words: &[&str]| folder.run(&[words, &input].concat());
    let scan = run(&["scan", "-o", "wide"]);
    let flat = scan.split_whitespace().collect::<Vec<_>>().join(" ");
    for row in [
        format!("error when called nobody yet ingress/shop/front {port} (/ leads to 8080) UT402"),
        format!("deploy/shop/api (2 pods) svc/shop/none :80 {selector} (no-endpoint) UT311"),
    ] {
        assert!(flat.contains(&row), "{row}: {scan}");
    }
    let check = run(&["check", "ingress", "shop/front"]);
    assert!(check.starts_with("exit 1\n") && check.contains(port), "{check}");
    let check = run(&["check", "service", "shop/none"]);
    assert!(check.contains(&format!("none at all\n          {selector}\n")), "{check}");
    let trace = run(&["trace", "--from", "deploy/shop/api", "--to", "svc/shop/none"]);
    let because = format!("\nbecause: Service shop/none: {selector}\n");
    assert!(trace.contains(&because), "{trace}");
    let scan = json(&folder, &[&["scan"][..], &input].concat());
    let words = scan["findings"].as_array().unwrap().iter().map(|own| own["because"].as_str());
    assert!(
        words.eq([format!("{port} (/ leads to 8080)"), selector.to_owned()]
            .iter()
            .map(|own| Some(&**own))),
        "{scan:#}"
    );
}

/// No line is wider than a page, and a table that is folded has gaps.
#[test]
fn a_table_fits_a_page() {
    let folder = Folder::new("in-words-page");
    let name = "a-name-that-is-much-longer-than-most-are";
    let renamed = WRITTEN_WRONG
        .replace("shop", &format!("{name}-0123456789"))
        .replace("name: api", &format!("name: {name}"));
    folder.file("a.yaml", &renamed);
    let scan = folder.run(&["scan", "-f", ".", "--complete"]);
    let (table, _) = scan.split_once("\n2 findings (").unwrap();
    assert!(table.lines().all(|line| line.chars().count() <= 160), "{scan}");
    assert!(table.contains("\n\nwarning"), "{scan}");
}

#[test]
fn assumptions_that_change_nothing_are_counted() {
    let folder = Folder::new("in-words-supposed");
    folder.file("a.yaml", &format!("{WRITTEN_WRONG}---\n{}", "apiVersion: v1\nkind: Service\nmetadata: {name: api, namespace: shop}\nspec: {selector: {app: api}, ports: [{port: 80}]}\n"));
    let lines = |words: &[&str]| {
        let printed = folder.run(&[words, &["-f", ".", "--complete"]].concat());
        printed
            .lines()
            .filter(|line| line.starts_with("supposed: "))
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    let every = lines(&["scan", "-o", "wide"]);
    assert!(every.len() > 6, "{every:#?}");
    for words in [&["scan"][..], &["check", "service", "shop/api"]] {
        let short = lines(words);
        let count = format!(
            "supposed: {} assumptions, 1 would change this (-o wide lists all: ",
            every.len()
        );
        assert!(short.len() == 2 && short[0].starts_with(&count), "{short:#?}");
        // What the input has twice is not what its author meant.
        assert!(short[1].contains("Service shop/api is defined more than once"), "{short:#?}");
    }
}

#[test]
fn a_cure_without_an_object_lists_the_findings() {
    let folder = Folder::new("in-words-cure");
    folder.file("a.yaml", WRITTEN_WRONG);
    let input = ["-f", ".", "--complete"];
    let all = folder.run(&[&["cure"][..], &input].concat());
    assert!(all.starts_with("exit 1\n--- stdout\nerror: ingress/shop/front"), "{all}");
    assert!(all.contains("\n  uturn cure -f . --complete UT402 ingress/shop/front\n"), "{all}");
    let command = "  uturn cure -f . --complete UT311 svc/shop/none\n";
    assert!(all.contains(command), "{all}");
    let some = folder.run(&[&["cure", "UT311"][..], &input].concat());
    assert!(some.contains(command) && !some.contains("UT402"), "{some}");
    let none = folder.run(&[&["cure", "UT101"][..], &input].concat());
    assert!(none.starts_with("exit 0\n--- stdout\nnothing found"), "{none}");
    let cured = folder.run(&["cure", "-f", ".", "--complete", "UT311", "svc/shop/none"]);
    assert!(cured.contains("svc/shop/none"), "{cured}");
}

/// A baseline is written with as many findings as a later scan knows.
#[test]
fn a_baseline_counts_findings() {
    let folder = Folder::new("in-words-baseline");
    folder.file("a.yaml", WRITTEN_WRONG);
    let input = ["scan", "-f", "a.yaml", "--complete"];
    let written = folder.run(&[&input[..], &["--write-baseline", "known"]].concat());
    assert!(written.contains("known: 2 findings recorded as known"), "{written}");
    let again = folder.run(&[&input[..], &["--baseline", "known"]].concat());
    assert!(again.contains("known: 2 findings\n") || again.contains(": 2 findings"), "{again}");
}
