//! Parts of a cluster, as most pull requests are: what is not there is somewhere else, until
//! something says that this is all.

use super::common::Folder;

const INGRESS: &str = "---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: front, namespace: shop}
spec:
  rules:
  - host: shop.example.com
    http:
      paths:
      - {path: /, pathType: Prefix, backend: {service: {name: web, port: {number: 80}}}}
";

const BALANCED: &str = "---
apiVersion: v1
kind: Service
metadata: {name: web, namespace: shop}
spec:
  type: LoadBalancer
  selector: {app: web}
  ports: [{port: 80, targetPort: 8080}]
";

pub(super) const WORKLOAD: &str = "---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: web, ports: [{name: http, containerPort: 8080}]}]}
";

const CLIENT: &str = "---
apiVersion: apps/v1
kind: Deployment
metadata: {name: client, namespace: shop}
spec:
  selector: {matchLabels: {app: client}}
  template:
    metadata: {labels: {app: client}}
    spec: {containers: [{name: client, image: client}]}
";

/// How a command ends, and the first lines of what it says.
fn ends(folder: &Folder, args: &[&str], count: usize) -> String {
    let all = folder.run(args);
    let lines = all.lines().filter(|line| *line != "--- stdout");
    lines.take(count).collect::<Vec<_>>().join("\n")
}

/// Whose load balancers they are.
const CLOUD: &str = "{apiVersion: uturn.dev/v1alpha1, kind: Facts, spec: {provider: tke}}";

fn codes(folder: &Folder, more: &[&str]) -> Vec<String> {
    let value = folder.run(&[&["scan", "-q", "-f", ".", "-o", "json"], more].concat());
    let (_, text) = value.split_once("--- stdout\n").unwrap();
    let value: serde_json::Value = serde_json::from_str(text).unwrap();
    let code_and_severity = |finding: &serde_json::Value| {
        let word = |key: &str| finding[key].as_str().unwrap().to_owned();
        format!("{} {}", word("code"), word("severity"))
    };
    value["findings"].as_array().unwrap().iter().map(code_and_severity).collect()
}

#[test]
fn an_ingress_alone_leads_to_a_service_elsewhere() {
    let folder = Folder::new("parts-ingress");
    folder.file("facts.yaml", CLOUD);
    folder.file("a.yaml", INGRESS);
    let scan = ends(&folder, &["scan", "-q", "-f", "."], 3);
    assert_eq!(
        scan,
        "exit 0
nothing found; 0 of 0 calls fine
not judged: backends of 1 Ingress; to settle it: give the Services they lead to, or \
         pass --complete if this is all"
    );
    assert_eq!(codes(&folder, &["--complete"]), ["UT402 error"]);
    let to = "ingress/shop/front";
    let trace = ["trace", "-f", ".", "--from", "outside", "--to", to];
    assert_eq!(ends(&folder, &trace, 2), "exit 0\nnot known   UT902 not-given");
    let trace = [&trace[..], &["--complete"]].concat();
    assert!(ends(&folder, &trace, 2).starts_with("exit 1\n503 at once"), "{to}");
    let check = folder.run(&["check", "ingress", "shop/front", "-f", "."]);
    assert!(check.starts_with("exit 0\n") && check.contains("\n0 ok, 0 failed, 7 unknown\n"));
    // The rules that are here are judged beside those that are not.
    let other = INGRESS.replace("name: front", "name: back").replace("name: web", "name: gone");
    let host = other.replace("shop.example.com", "back.example.com");
    folder.file("b.yaml", &[BALANCED, WORKLOAD, CLIENT, &host].concat());
    let scan = folder.run(&["scan", "-q", "-f", "."]);
    assert!(scan.contains("\nnot judged: backends of 1 Ingress; "), "{scan}");
    let to_host = |host: &str| {
        let to = format!("http://{host}/");
        ends(&folder, &["trace", "-f", ".", "--from", "outside", "--to", &to], 2)
    };
    assert_eq!(to_host("shop.example.com"), "exit 0\nanswered at once");
    assert_eq!(to_host("back.example.com"), "exit 0\nnot known   UT902 not-given");
}

#[test]
fn a_service_whose_pods_are_elsewhere_is_not_judged() {
    let folder = Folder::new("parts-service");
    folder.file("facts.yaml", CLOUD);
    folder.file("a.yaml", BALANCED);
    let scan = ends(&folder, &["scan", "-q", "-f", "."], 4);
    assert_eq!(
        scan,
        "exit 0
nothing found; 0 of 0 calls fine
not judged: endpoints of 1 Service; to settle it: give the EndpointSlices, or what makes the \
         pods, or pass --complete if this is all
  endpoints of 1 Service: svc/shop/web: nothing here makes pods with the labels that are selected"
    );
    assert_eq!(codes(&folder, &["--complete"]), ["UT311 error"]);
    let check = folder.run(&["check", "service", "shop/web", "-f", "."]);
    assert!(check.starts_with("exit 0\n") && check.contains("\n0 ok, 0 failed, "), "{check}");
    folder.file("b.yaml", CLIENT);
    let scan = ends(&folder, &["scan", "-q", "-f", "."], 2);
    assert!(scan.contains("nothing found; 0 of 2 calls fine, 2 not judged"), "{scan}");
    assert_eq!(codes(&folder, &["--complete"]), ["UT311 error"]);
    for to in ["svc/shop/web", "http://web/", "http://web.shop.svc.cluster.local/"] {
        let trace = ["trace", "-f", ".", "--from", "deploy/shop/client", "--to", to];
        assert_eq!(ends(&folder, &trace, 2), "exit 0\nnot known   UT902 not-given", "{to}");
    }
    // What makes its pods settles it.
    folder.file("c.yaml", WORKLOAD);
    let scan = folder.run(&["scan", "-q", "-f", "."]);
    assert!(scan.starts_with("exit 0\n") && !scan.contains("not judged"), "{scan}");
    // As does what says that there are none.
    folder.file("c.yaml", &WORKLOAD.replace("replicas: 2", "replicas: 0"));
    assert_eq!(codes(&folder, &[]), ["UT311 warning"]);
}

/// What labels pods while they run is seen in no template, and in no pod that was made of one.
#[test]
fn pods_that_are_labelled_at_run_time_are_no_finding() {
    let folder = Folder::new("parts-labels");
    folder.file("a.yaml", BALANCED);
    folder.file(
        "b.yaml",
        "{apiVersion: v1, kind: Node, metadata: {name: n1}, spec: {podCIDR: 10.1.1.0/24}, status: \
         {addresses: [{type: InternalIP, address: 10.0.0.11}]}}
---
{apiVersion: v1, kind: Pod, metadata: {name: dns, namespace: kube-system}, spec: {nodeName: n1, \
         containers: [{name: c, image: c}]}, status: {phase: Running, podIP: 10.1.1.9}}
---
{apiVersion: v1, kind: Pod, metadata: {name: web, namespace: shop, labels: {role: server}}, spec: \
         {nodeName: n1, containers: [{name: c, image: c}]}, status: {phase: Running, podIP: 10.1.1.10}}
",
    );
    folder.file("facts.yaml", CLOUD);
    let scan = folder.run(&["scan", "-q", "-f", "."]);
    assert!(scan.starts_with("exit 0\n") && !scan.contains("UT311"), "{scan}");
    assert!(scan.contains("svc/shop/web: nothing here makes pods with the labels"), "{scan}");
    let whole = codes(&folder, &["--complete"]);
    assert!(whole.iter().any(|found| found.starts_with("UT311")), "{whole:?}");
}

#[test]
fn a_service_without_a_selector_has_its_endpoints_elsewhere() {
    let folder = Folder::new("parts-no-selector");
    let service =
        BALANCED.replace("  selector: {app: web}\n", "").replace("LoadBalancer", "NodePort");
    folder.file("a.yaml", &[&service, CLIENT].concat());
    let scan = folder.run(&["scan", "-q", "-f", "."]);
    assert!(scan.starts_with("exit 0\n"), "{scan}");
    assert!(scan.contains("\nnot judged: endpoints of 1 Service; to settle it: give the Endpoint"));
    assert_eq!(codes(&folder, &["--complete"]), ["UT311 warning"]);
    let slice = |endpoints: &str| {
        format!(
            "---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {{name: web-1, namespace: shop, labels: {{kubernetes.io/service-name: web}}}}
addressType: IPv4
ports: [{{port: 8080}}]
endpoints: [{endpoints}]
"
        )
    };
    folder.file("b.yaml", &slice(""));
    assert_eq!(codes(&folder, &[]), ["UT311 warning"], "a slice that is empty says it");
    folder.file("b.yaml", &slice("{addresses: [192.0.2.7]}"));
    assert_eq!(codes(&folder, &[]), [""; 0]);
}

#[test]
fn a_name_of_a_service_that_is_not_here_is_not_known() {
    let folder = Folder::new("parts-name");
    folder.file("a.yaml", &[CLIENT, BALANCED].concat());
    for host in ["pay.shop", "pay", "pay.bank.svc", "pay.bank.svc.cluster.local"] {
        let to = format!("http://{host}/");
        let trace = ["trace", "-f", ".", "--from", "deploy/shop/client", "--to", &to];
        assert!(ends(&folder, &trace, 2).contains("not known   UT902 not-given"), "{host}");
    }
    let to = "http://pay.bank.svc.cluster.local/";
    let trace = ["trace", "--complete", "-f", ".", "--from", "deploy/shop/client", "--to", to];
    assert_eq!(ends(&folder, &trace, 2), "exit 1\nname not found   UT501 name-unresolved");
}

/// The Service of CoreDNS among the files and its pods elsewhere: it answers as it does.
#[test]
fn the_cluster_dns_answers_though_its_pods_are_elsewhere() {
    let folder = Folder::new("parts-dns");
    let dns = "---
apiVersion: v1
kind: Service
metadata: {name: kube-dns, namespace: kube-system, labels: {k8s-app: kube-dns}}
spec:
  clusterIP: 172.16.0.2
  selector: {k8s-app: kube-dns}
  ports: [{name: dns, port: 53, protocol: UDP}, {name: dns-tcp, port: 53}]
";
    folder.file("a.yaml", &[CLIENT, WORKLOAD, BALANCED, dns].concat());
    let to = "http://web.shop/";
    let trace = ["trace", "-f", ".", "--from", "deploy/shop/client", "--to", to];
    assert_eq!(ends(&folder, &trace, 2), "exit 0\nanswered at once");
    let check = folder.run(&["check", "dns", "-f", "."]);
    assert!(check.starts_with("exit 0\n") && !check.contains("failed  CoreDNS"), "{check}");
}

#[test]
fn objects_that_take_part_in_no_flow_are_nothing_to_judge() {
    let folder = Folder::new("parts-rbac");
    folder.file(
        "a.yaml",
        "apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: web}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: webs.example.com}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: web}
",
    );
    let scan = folder.run(&["scan", "-f", "."]);
    assert_eq!(
        scan,
        "exit 0
--- stdout
nothing to judge: 3 objects read, none of which takes part in a flow (1 ClusterRole, 1 ConfigMap, \
         1 CustomResourceDefinition)
"
    );
    let json = folder.run(&["scan", "-f", ".", "-o", "json"]);
    assert!(json.starts_with("exit 0\n") && json.contains("\"findings\": []"), "{json}");
    assert!(json.contains("\"ConfigMap\": 1"), "{json}");
    folder.file("a.yaml", WORKLOAD);
    assert_eq!(
        folder.run(&["scan", "-f", "."]),
        "exit 0
--- stdout
nothing to judge: 1 object read, no Service and no Ingress among them (1 Deployment)
"
    );
    folder.file("a.yaml", "# nothing\n");
    assert!(folder.run(&["scan", "-f", "."]).starts_with("exit 2\n"));
}

/// A near miss is a hint, with what has to hold for it to matter.
#[test]
fn what_looks_like_a_slip_is_a_hint() {
    let folder = Folder::new("parts-hints");
    let named = |name: &str| BALANCED.replace("name: web", &format!("name: {name}"));
    folder
        .file("a.yaml", &[INGRESS, WORKLOAD, CLIENT, &named("web-api"), &named("web-ui")].concat());
    assert_eq!(codes(&folder, &[]), ["UT402 info"]);
    let wide = folder.run(&["scan", "-q", "-f", ".", "-o", "wide"]);
    assert!(wide.contains("if Service shop/web does not exist"), "{wide}");
    assert!(wide.contains("the input has web-api, web-ui"), "{wide}");
    assert_eq!(codes(&folder, &["--complete"]), ["UT402 error"]);
    folder.file(
        "a.yaml",
        &[CLIENT, WORKLOAD, &BALANCED.replace("app: web", "app: wbe-front")].concat(),
    );
    assert_eq!(codes(&folder, &[]), [""; 0]);
    let labelled = |label: &str| WORKLOAD.replace("app: web", &format!("app: {label}"));
    let service = BALANCED.replace("app: web", "app: web-front");
    folder.file("a.yaml", &[CLIENT, &labelled("web-frnt"), &service].concat());
    assert_eq!(codes(&folder, &[]), ["UT311 info"]);
    folder.file("a.yaml", &[CLIENT, &labelled("web-front-test"), &service].concat());
    assert_eq!(codes(&folder, &[]), [""; 0], "another one of several");
    // A port that a Service lacks which is here is stated.
    let other = INGRESS.replace("number: 80", "number: 8080");
    folder.file("a.yaml", &[&other, BALANCED, WORKLOAD].concat());
    assert_eq!(codes(&folder, &[]), ["UT402 error"]);
}

/// Charts have pods that run once, with the labels of what they test.
#[test]
fn a_pod_that_helm_runs_once_is_no_endpoint() {
    let folder = Folder::new("parts-hook");
    folder.file("facts.yaml", CLOUD);
    let hook = "---
apiVersion: v1
kind: Pod
metadata: {name: test, namespace: shop, labels: {app: web}, annotations: {helm.sh/hook: test}}
spec: {containers: [{name: wget, image: busybox}], restartPolicy: Never}
";
    let named = BALANCED.replace("targetPort: 8080", "targetPort: http");
    folder.file("a.yaml", &[CLIENT, &named, WORKLOAD, hook].concat());
    let scan = folder.run(&["scan", "-q", "-f", ".", "-o", "wide"]);
    assert!(scan.contains("nothing found; ") && !scan.contains("not judged"), "{scan}");
    assert!(scan.contains("placement of 3 pods of Deployment shop/client, Deployment shop/web"));
    // It says nothing of what makes the pods.
    folder.file("a.yaml", &[CLIENT, &named, hook].concat());
    let scan = folder.run(&["scan", "-q", "-f", "."]);
    assert!(scan.contains("\nnot judged: endpoints of 1 Service; "), "{scan}");
}

/// Some controllers take a port's name for a word of their own.
#[test]
fn an_action_of_an_annotation_is_no_backend() {
    let folder = Folder::new("parts-action");
    folder.file("facts.yaml", CLOUD);
    let action = INGRESS.replace("number: 80", "name: use-annotation");
    folder.file("a.yaml", &action);
    let scan = folder.run(&["scan", "-q", "-f", ".", "--complete"]);
    assert!(!scan.contains("which does not exist"), "{scan}");
    folder.file("a.yaml", &[&action, BALANCED, WORKLOAD].concat());
    let scan = folder.run(&["scan", "-q", "-f", ".", "--complete"]);
    assert!(scan.contains("\nnothing found; 4 of 6 calls fine, 2 not judged"), "{scan}");
    assert!(scan.contains("\nnot judged: backends of 1 Ingress; "), "{scan}");
}

#[test]
fn a_name_outside_has_the_ports_of_its_server() {
    let folder = Folder::new("parts-external-name");
    let file = |port: &str, ports: &str| {
        format!(
            "apiVersion: v1
kind: Service
metadata: {{name: web, namespace: shop}}
spec: {{type: ExternalName, externalName: web.example.com{ports}}}
---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {{name: web, namespace: shop}}
spec: {{defaultBackend: {{service: {{name: web, port: {{{port}}}}}}}}}
"
        )
    };
    folder.file("all.yaml", &file("number: 80", ""));
    assert_eq!(codes(&folder, &[]), [""; 0]);
    // A name says nothing where it is not given, nor does a number beside a list of ports.
    folder.file("all.yaml", &file("name: http", ""));
    assert_eq!(codes(&folder, &[]), ["UT402 error"]);
    folder.file("all.yaml", &file("number: 80", ", ports: [{port: 443}]"));
    assert_eq!(codes(&folder, &[]), ["UT402 error"]);
}

/// Folders hold one object in several versions, of which one is in use. A mixture of them may
/// never have been applied: it leads to no finding. Two equal copies count as one object.
#[test]
fn versions_of_an_object_are_not_mixed() {
    let folder = Folder::new("parts-versions");
    let named = BALANCED.replace("targetPort: 8080", "targetPort: metrics");
    let ingress = INGRESS.replace("number: 80", "name: plain");
    folder.file("facts.yaml", CLOUD);
    folder.file("all.yaml", &[CLIENT, WORKLOAD, BALANCED].concat());
    folder.file("service.yaml", BALANCED);
    assert_eq!(codes(&folder, &["--complete"]), [""; 0], "the same twice");
    let scan = folder.run(&["scan", "-q", "-f", "."]);
    assert!(
        scan.contains(" is defined more than once, ") && !scan.contains("not judged"),
        "{scan}"
    );
    folder.file("service.yaml", &named).file("ingress.yaml", &ingress);
    assert_eq!(codes(&folder, &["--complete"]), [""; 0], "another targetPort");
    let scan = folder.run(&["scan", "-q", "-f", "."]);
    assert!(scan.contains("\nnot judged: 1 object in several versions; to settle it: "), "{scan}");
    // A workload in several versions is what a Service gets its pods from.
    let other = WORKLOAD.replace("image:", "imagePullPolicy: Always, image:");
    let other = other.replace("name: http", "name: web");
    folder.file("service.yaml", &other).file("ingress.yaml", "# none");
    let trace = ["trace", "-f", ".", "--from", "deploy/shop/client", "--to", "svc/shop/web"];
    assert_eq!(ends(&folder, &trace, 2), "exit 0\nnot known   UT902 not-given");
}

/// Load balancers that nodes are themselves write nodes' addresses into statuses: what stands behind
/// such an address is as little known as behind any other.
#[test]
fn a_status_with_a_nodes_address_does_not_say_that_there_are_no_endpoints() {
    let folder = Folder::new("parts-node-address");
    let status = "status: {loadBalancer: {ingress: [{ip: 10.0.0.1}]}}\n";
    let client = "---
apiVersion: v1
kind: Pod
metadata: {name: client, namespace: shop}
spec: {nodeName: n1, containers: [{name: client, image: client}]}
status: {phase: Running, podIP: 10.244.1.9}
---
apiVersion: v1
kind: Node
metadata: {name: n1}
spec: {podCIDR: 10.244.1.0/24}
status: {addresses: [{type: InternalIP, address: 10.0.0.1}]}
";
    folder.file("a.yaml", &format!("{BALANCED}{status}{client}"));
    assert_eq!(codes(&folder, &[]), [""; 0]);
    let trace = ["trace", "-q", "-f", ".", "--from", "pod/shop/client", "--to", "10.0.0.1:80"];
    let first = ends(&folder, &trace, 2);
    assert_eq!(first, "exit 0\nnot known   UT902 not-given");
    // Where this is all, it does.
    assert_eq!(codes(&folder, &["--complete"]), ["UT311 warning"]);
}
