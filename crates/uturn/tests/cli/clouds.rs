//! Clusters of other clouds, and of no cloud: whose load balancers they have, what serves their
//! Services, and in whose words checklists speak.

use uturn_testing::manifests::{ReadyNode, RunningPod, balanced_service, deployment};

use super::common::{Folder, assert_begins, assert_has};

/// Two nodes of a cloud, a client on n1 and a server on n2.
fn nodes_and_pods(provider_id: &str) -> String {
    let node = |number: u32| {
        let spec = format!("podCIDR: 10.244.{number}.0/24, providerID: \"{provider_id}\"");
        let address = format!("10.224.0.{number}");
        ReadyNode { number, address: &address, spec: &spec, ..ReadyNode::default() }.to_string()
    };
    [node(1), node(2), pod("client", 1, ""), pod("web", 2, "")].concat()
}

/// A pod that listens on 80, with this beside its container.
fn pod(name: &str, node: u32, more_containers: &str) -> String {
    RunningPod {
        name,
        app: name,
        node,
        address: &format!("10.244.{node}.9"),
        ports: "{containerPort: 80}",
        more_containers,
        ..RunningPod::default()
    }
    .to_string()
}

/// The Service of the server, of type LoadBalancer.
fn service(annotations: &str, more: &str, status: &str) -> String {
    balanced_service("10.0.12.3", annotations, more, status)
}

fn ingress(class: &str, status: &str) -> String {
    format!(
        "---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {{name: shop, namespace: shop}}
spec:
  ingressClassName: {class}
  rules:
  - host: shop.example.com
    http: {{paths: [{{path: /, pathType: Prefix, backend: {{service: {{name: web, port: {{number: 80}}}}}}}}]}}
status: {{loadBalancer: {{ingress: [{status}]}}}}
"
    )
}

fn facts(spec: &str) -> String {
    format!("---\napiVersion: uturn.dev/v1alpha1\nkind: Facts\nspec: {{{spec}}}\n")
}

const PROXY: &str = "kubeProxy: {mode: iptables, version: v1.34.0}";
const NOT_KNOWN: &str = "exit 0\n--- stdout\nnot known   UT902 not-modelled\n";
const ANSWERED: &str = "exit 0\n--- stdout\nanswered at once\n";

fn trace(folder: &Folder, from: &str, to: &str) -> String {
    folder.run(&["trace", "-f", ".", "--from", from, "--to", to])
}

#[track_caller]
fn assert_lacks(printed: &str, parts: &[&str]) {
    parts.iter().for_each(|part| assert!(!printed.contains(part), "{part:?} is in\n{printed}"));
}

/// A manifest set that names no cloud: nothing is taken from Tencent's on a guess.
#[test]
fn without_a_trace_of_a_cloud_the_load_balancer_is_not_judged() {
    let plain = [
        deployment("web", 1),
        deployment("client", 1),
        service("", "externalTrafficPolicy: Local", "").replace("  clusterIP: 10.0.12.3\n", ""),
    ];
    let printed = Folder::of("clouds-plain", &plain).run(&["scan", "-f", "."]);
    assert_begins(&printed, "exit 0\n--- stdout\nnothing found; ");
    assert_has(
        &printed,
        &[
            "\nnot judged: 1 load balancer of an unknown cloud; to settle it: state spec.provider in Facts, or for another cloud each port's snat in spec.loadBalancers\n",
        ],
    );
    assert_lacks(&printed, &["supposed: cloud", "tke", "address of Service"]);
    let stated = [&plain[..], &[facts("provider: tke")]].concat();
    let printed = Folder::of("clouds-plain-tke", &stated).run(&["scan", "-f", ".", "-o", "wide"]);
    assert_has(&printed, &["supposed: address of Service shop/web: "]);
    assert_lacks(&printed, &["not judged"]);
}

/// An internal NLB that keeps the client's address sends a pod back to its own node, by whatever
/// name it is called. The other load balancer of the cloud is not described.
#[test]
fn an_nlb_that_keeps_the_clients_address_loops_by_any_name() {
    let name = "k8s-shop-web-0123.elb.eu-central-1.amazonaws.com";
    let keeps = "service.beta.kubernetes.io/aws-load-balancer-type: external, \
         service.beta.kubernetes.io/aws-load-balancer-target-group-attributes: \
         preserve_client_ip.enabled=true, \
         external-dns.alpha.kubernetes.io/hostname: www.example.com";
    let alias = format!(
        "---
apiVersion: v1
kind: Service
metadata: {{name: alias, namespace: shop}}
spec: {{type: ExternalName, externalName: {name}}}
"
    );
    let coredns = "---
apiVersion: v1
kind: ConfigMap
metadata: {name: coredns, namespace: kube-system}
data:
  Corefile: |
    .:53 {
        kubernetes cluster.local in-addr.arpa ip6.arpa
        forward . /etc/resolv.conf
    }
";
    let albs = "k8s-shop-shop-0456.eu-central-1.elb.amazonaws.com";
    let parts = [
        nodes_and_pods("aws:///eu-central-1a/i-0"),
        service(keeps, "", &format!("{{hostname: {name}}}")),
        ingress("alb", &format!("{{hostname: {albs}}}")),
        alias,
        coredns.to_owned(),
        facts(&format!("{PROXY}, dns: {{outside: {{shop.example.com: 52.1.2.3}}}}")),
    ];
    let folder = Folder::of("clouds-nlb", &parts);
    let scan = folder.run(&["scan", "-f", "."]);
    assert_has(&scan, &["UT102", "asymmetric-return"]);
    assert_lacks(&scan, &["1 load balancer of AWS NLB"]);
    for to in
        [format!("http://{name}/"), "http://alias.shop/".into(), "http://www.example.com/".into()]
    {
        let printed = trace(&folder, "pod/shop/client", &to);
        assert_begins(
            &printed,
            "exit 1\n--- stdout\n1 in 2 answered at once, 1 in 2 hangs   UT102 asymmetric-return\n",
        );
    }
    for to in ["http://shop.example.com/", "ingress/shop/shop"] {
        // The ALB has an address of its own towards its targets.
        assert_begins(
            &trace(&folder, "pod/shop/client", to),
            "exit 0\n--- stdout\nanswered at once\n",
        );
    }
    assert_begins(&trace(&folder, "pod/shop/client", "svc/shop/web:80"), ANSWERED);
}

/// Load balancers that keep their own address are answered for by the nodes' rules.
#[test]
fn an_address_that_is_kept_is_judged_from_everywhere() {
    for (test, id) in [("aks", "azure:///subscriptions/s"), ("gke", "gce://p/z/n"), ("bare", "")] {
        let annotations = if test == "bare" { "metallb.io/address-pool: a" } else { "" };
        let parts = [nodes_and_pods(id), service(annotations, "", "{ip: 20.1.2.3}"), facts(PROXY)];
        let folder = Folder::of(&format!("clouds-node-port-{test}"), &parts);
        let outside = trace(&folder, "outside", "http://20.1.2.3/");
        assert_begins(&outside, ANSWERED);
        assert_has(&outside, &["keeps the address 20.1.2.3:80"]);
        assert_begins(&trace(&folder, "outside", "10.224.0.1:30080"), ANSWERED);
        assert_begins(&trace(&folder, "pod/shop/client", "http://20.1.2.3/"), ANSWERED);
    }
}

/// k3s lists nodes as load balancers: kube-proxy serves the addresses that are listed, pods of
/// its own the others.
#[test]
fn a_node_in_the_status_serves_its_address_itself() {
    let parts = [nodes_and_pods("k3s://n"), service("", "", "{ip: 10.224.0.2}"), facts(PROXY)];
    let folder = Folder::of("clouds-k3s", &parts);
    assert_begins(&trace(&folder, "outside", "http://10.224.0.2/"), ANSWERED);
    assert_begins(&trace(&folder, "outside", "10.224.0.2:30080"), ANSWERED);
    let printed = trace(&folder, "outside", "http://10.224.0.1/");
    assert_begins(&printed, "exit 0\n--- stdout\nnot known   UT902 not-given\n");
    assert_has(
        &printed,
        &["on which nodes K3s ServiceLB has pods for Service shop/web is not given"],
    );
    assert_begins(&folder.run(&["scan", "-f", "."]), "exit 0\n--- stdout\nnothing found; ");
}

/// A controller in the cluster serves the Ingress at its Service's address: pods get to it, and
/// nothing is made up about what it answers.
#[test]
fn an_ingress_of_a_controller_in_the_cluster_is_not_judged() {
    let parts = [
        nodes_and_pods("azure:///subscriptions/s"),
        service("", "", "{ip: 20.1.2.3}"),
        ingress("nginx", "{ip: 20.1.2.3}"),
        facts(PROXY),
    ];
    let folder = Folder::of("clouds-nginx", &parts);
    let scan = folder.run(&["scan", "-f", "."]);
    assert_begins(&scan, "exit 0\n--- stdout\nnothing found; ");
    assert_has(
        &scan,
        &["1 Ingress that ingress-nginx serves", "trace to svc/shop/web, whose pods serve it"],
    );
    assert_begins(&trace(&folder, "pod/shop/client", "http://shop.example.com/"), ANSWERED);
    assert_begins(&trace(&folder, "pod/shop/client", "ingress/shop/shop"), NOT_KNOWN);
    assert_begins(&trace(&folder, "outside", "http://shop.example.com/"), ANSWERED);
    let check = folder.run(&["check", "ingress", "shop/shop", "-f", "."]);
    assert_has(&check, &["ingress-nginx serves it"]);
    assert_has(&check, &["1 ok, 0 failed, 1 unknown"]);
    assert_lacks(&check, &["404"]);
}

/// Only some clouds serve an Ingress without a class themselves.
#[test]
fn an_ingress_without_a_class_is_not_of_a_cloud_that_serves_its_classes_only() {
    let by = |id: &str, status: &str| {
        let class = ingress("none", status).replace("  ingressClassName: none\n", "");
        assert!(!class.contains("ingressClassName"), "{class}");
        Folder::of("clouds-classless", &[nodes_and_pods(id), class]).run(&["scan", "-f", "."])
    };
    for (id, cloud) in
        [("aws:///eu-central-1a/i-0", "AWS"), ("azure:///subscriptions/s/n", "Azure")]
    {
        let printed = by(id, "{ip: 10.0.9.9}");
        assert_lacks(&printed, &[&format!("load balancer of {cloud}\n")]);
        let said = format!("load balancers of {cloud} serve only classes of their own");
        assert_has(&printed, &["1 Ingress that an unnamed controller serves", &said]);
    }
    assert_lacks(&by("gce://p/z/n", "{ip: 10.0.9.9}"), &["an unnamed controller"]);
    let alb =
        by("aws:///eu-central-1a/i-0", "{hostname: k8s-shop-a-1.eu-west-1.elb.amazonaws.com}");
    assert_lacks(&alb, &["an unnamed controller"]);
}

/// A check that asks for a page is supposed to be answered, and the trace says so.
#[test]
fn a_trace_says_what_health_checks_are_supposed_to_get() {
    let of = |protocol: &str| {
        let service = service("", "externalTrafficPolicy: Cluster", "{ip: 10.0.9.9}");
        let service = service.replace("port: 80,", &format!("port: 80, {protocol}"));
        assert!(service.contains(protocol), "{service}");
        let parts = [nodes_and_pods("azure:///subscriptions/s/n"), service, facts(PROXY)];
        trace(&Folder::of("clouds-page", &parts), "outside", "10.0.9.9:80")
    };
    let said = "supposed: health checks of svc/shop/web :80: targets answer / with 200";
    assert_has(&of("appProtocol: http,"), &[said, "azure-load-balancer-health-probe-request-path"]);
    assert_lacks(&of("name: web,"), &["health checks of"]);
}

/// Cilium's configuration with these values.
fn cilium(values: &str) -> String {
    format!(
        "---
apiVersion: v1
kind: ConfigMap
metadata: {{name: cilium-config, namespace: kube-system}}
data: {{{values}}}
"
    )
}

#[test]
fn cilium_in_place_of_kube_proxy_connects_to_endpoints() {
    let parts = [
        nodes_and_pods(""),
        service("lbipam.cilium.io/ips: 20.1.2.3", "externalTrafficPolicy: Local", "{ip: 20.1.2.3}"),
        cilium("kube-proxy-replacement: \"true\""),
    ];
    let folder = Folder::of("clouds-cilium", &parts);
    let scan = folder.run(&["scan", "-f", "."]);
    assert_begins(&scan, "exit 0\n--- stdout\nnothing found; 4 of 4 calls fine");
    assert_has(&scan, &["supposed: what serves Services: Cilium in place of kube-proxy"]);
    assert_lacks(&scan, &["kube-proxy mode", "kube-proxy version", "cluster CIDR"]);
    for to in ["svc/shop/web:80", "http://20.1.2.3/", "10.224.0.1:30080"] {
        let printed = trace(&folder, "pod/shop/client", to);
        assert_begins(&printed, ANSWERED);
        assert_has(&printed, &["⇒ 10.244.2.9:80", "Cilium, when it connects: Service shop/web"]);
        assert_lacks(&printed, &["KUBE-"]);
    }
    // The node that announces the address serves the call; one without an endpoint is not judged.
    let outside = trace(&folder, "outside", "http://20.1.2.3/");
    assert_begins(&outside, ANSWERED);
    assert_has(&outside, &["⇒ 10.244.2.9:80", "Cilium: Service shop/web"]);
    assert_begins(&trace(&folder, "outside", "10.224.0.1:30080"), NOT_KNOWN);
    let rules = folder.run(&["rules", "-f", ".", "--node", "n1"]);
    assert_has(&rules, &["kube-proxy does not run on node n1: Cilium serves Services"]);
    assert_lacks(&rules, &["KUBE-"]);
    let nodes = folder.run(&["check", "nodes", "-f", "."]);
    assert_has(&nodes, &["Cilium serves Services, and kube-proxy does not run"]);
}

#[test]
fn cilium_without_an_endpoint_refuses_to_connect() {
    let local = service("", "internalTrafficPolicy: Local", "{ip: 20.1.2.3}");
    let parts = [nodes_and_pods(""), local, cilium("kube-proxy-replacement: strict")];
    let folder = Folder::of("clouds-cilium-local", &parts);
    let printed = trace(&folder, "pod/shop/client", "svc/shop/web:80");
    assert_begins(&printed, "exit 1\n--- stdout\nunreachable   UT311 no-endpoint\n");
    assert_begins(&trace(&folder, "pod/shop/web", "svc/shop/web:80"), ANSWERED);
}

/// Beside kube-proxy Cilium leaves Services to it.
#[test]
fn cilium_beside_kube_proxy_replaces_nothing() {
    let parts = [
        nodes_and_pods(""),
        service("", "", "{ip: 20.1.2.3}"),
        cilium("kube-proxy-replacement: \"false\""),
        facts(PROXY),
    ];
    let folder = Folder::of("clouds-cilium-beside", &parts);
    assert_has(&folder.run(&["rules", "-f", ".", "--node", "n1"]), &["KUBE-SERVICES"]);
    assert_lacks(&folder.run(&["scan", "-f", "."]), &["in place of kube-proxy"]);
}

#[test]
fn each_program_in_place_of_kube_proxy_is_recognised() {
    let agent = |name: &str, container: &str| {
        format!(
            "---
apiVersion: apps/v1
kind: DaemonSet
metadata: {{name: {name}, namespace: kube-system}}
spec:
  selector: {{matchLabels: {{app: {name}}}}}
  template:
    metadata: {{labels: {{app: {name}}}}}
    spec: {{hostNetwork: true, containers: [{container}]}}
"
        )
    };
    let felix = "---
apiVersion: crd.projectcalico.org/v1
kind: FelixConfiguration
metadata: {name: default}
spec: {bpfEnabled: true}
";
    let antrea = "---
apiVersion: v1
kind: ConfigMap
metadata: {name: antrea-config, namespace: kube-system}
data:
  antrea-agent.conf: |
    antreaProxy:
      enable: true
      proxyAll: true
";
    let env = "{name: calico-node, image: c, env: [{name: FELIX_BPFENABLED, value: \"true\"}]}";
    let ebpf = "Calico's eBPF data plane";
    for (at, (program, written)) in [
        ("OVN-Kubernetes", agent("ovnkube-node", "{name: c, image: c}")),
        (ebpf, felix.to_owned()),
        (ebpf, agent("calico-node", env)),
        ("AntreaProxy", antrea.to_owned()),
        ("Cilium", agent("cilium", "{name: cilium-agent, image: c}")),
        ("Cilium", facts("kubeProxy: {replacedBy: cilium}")),
    ]
    .into_iter()
    .enumerate()
    {
        let parts = [nodes_and_pods(""), service("", "", "{ip: 20.1.2.3}"), written];
        let folder = Folder::of(&format!("clouds-program-{at}"), &parts);
        let printed = trace(&folder, "pod/shop/client", "svc/shop/web:80");
        assert_begins(&printed, ANSWERED);
        assert_has(&printed, &["⇒ 10.244.2.9:80", program]);
        let vip = trace(&folder, "pod/shop/client", "http://20.1.2.3/");
        assert_begins(&vip, if program == "Cilium" { ANSWERED } else { NOT_KNOWN });
    }
    let router =
        "{name: kube-router, image: c, args: [--run-router=true, --run-service-proxy=true]}";
    let parts =
        [nodes_and_pods(""), service("", "", "{ip: 20.1.2.3}"), agent("kube-router", router)];
    let folder = Folder::of("clouds-kube-router", &parts);
    assert_begins(&trace(&folder, "pod/shop/client", "svc/shop/web:80"), NOT_KNOWN);
    let scan = folder.run(&["scan", "-f", "."]);
    assert_begins(&scan, "exit 0\n--- stdout\nnothing found; ");
    assert_has(&scan, &["1 Service that kube-router serves"]);
}

#[test]
fn the_sidecars_of_a_mesh_are_reported() {
    let sidecar = ", {name: istio-proxy, image: proxyv2}";
    let plain = pod("web", 2, "");
    let parts = [
        nodes_and_pods("").replace(&plain, &pod("web", 2, sidecar)),
        service("", "", "{ip: 20.1.2.3}"),
        facts(PROXY),
    ];
    let printed = Folder::of("clouds-mesh", &parts).run(&["scan", "-f", "."]);
    assert_has(&printed, &["supposed: calls of 1 pod: as without Istio"]);
}

/// Checklists ask for nothing that only Tencent's cloud has.
#[test]
fn checklists_speak_of_the_cloud_that_the_cluster_is_on() {
    let only_tencents =
        ["CVM", "console", "100.64.", "32768", "TkeServiceConfig", "CCN", "VPC has", "tke"];
    for (test, id, named) in [
        ("eks", "aws:///eu-central-1a/i-0", "security groups let 30000-32767 in"),
        ("aks", "azure:///subscriptions/s", "network security groups let 30000-32767 in"),
        ("bare", "", "network firewalls let 30000-32767 in"),
    ] {
        let status =
            if test == "eks" { "{hostname: a.elb.amazonaws.com}" } else { "{ip: 20.1.2.3}" };
        let parts = [nodes_and_pods(id), service("", "", status), facts(PROXY)];
        let folder = Folder::of(&format!("clouds-check-{test}"), &parts);
        let service = folder.run(&["check", "service", "shop/web", "-f", "."]);
        assert_has(&service, &[named]);
        assert_has(&service, &[" 0 failed, "]);
        for topic in ["service", "nodes", "cross-node", "dns"] {
            assert_lacks(&folder.run(&["check", topic, "-f", "."]), &only_tencents);
        }
    }
}

/// What serves node ports in place of kube-proxy is not modelled; health checks that go to pods
/// meet none of it.
#[test]
fn health_checks_of_pods_are_judged_whatever_serves_services() {
    let facts = facts("provider: tke, kubeProxy: {replacedBy: cilium}, declaredPortsOnly: true");
    // By way of the nodes the answer is Cilium's, which sends the check to the pod.
    let check = "failed  health checks of 10.224.9.9";
    for annotation in ["service.cloud.tencent.com/direct-access: \"true\"", ""] {
        // The pod declares port 80, and no other.
        let service = service(annotation, "", "{ip: 10.224.9.9}");
        let service = service.replace("port: 80,", "port: 80, targetPort: 81,");
        let parts = [nodes_and_pods("qcloud:///800006/ins"), service, facts.clone()];
        let folder = Folder::of("clouds-probes", &parts);
        assert_has(&folder.run(&["check", "service", "shop/web", "-f", "."]), &[check]);
    }
}

/// Endpoints that are given count, whatever serves the Service.
#[test]
fn a_service_without_pods_lacks_them_under_a_proxy_that_is_not_modelled() {
    let service = service("", "", "").replace("{app: web}", "{app: nothing}");
    let parts = [nodes_and_pods(""), service, facts("kubeProxy: {replacedBy: kube-router}")];
    let folder = Folder::of("clouds-kube-router-empty", &parts);
    let check = folder.run(&["check", "service", "shop/web", "-f", ".", "--complete"]);
    assert_has(&check, &["uturn explain UT311"]);
}

/// A Service without endpoints is named as such, whatever stands before it: not the load balancer
/// without a target that answers its health checks.
#[test]
fn a_service_without_endpoints_is_no_fault_of_its_load_balancer() {
    let folder = Folder::new("clouds-no-endpoint");
    let azure = "service.beta.kubernetes.io/azure-load-balancer-internal: \"true\"";
    for (provider_id, notes, policy) in [
        ("hcloud://1", "", "Cluster"),
        ("digitalocean://1", "", "Local"),
        ("azure:///subscriptions/0/1", azure, "Cluster"),
        ("azure:///subscriptions/0/1", azure, "Local"),
        ("", "metallb.io/address-pool: pool", "Local"),
    ] {
        let more = format!("externalTrafficPolicy: {policy}");
        let text = nodes_and_pods(provider_id).replace("app: web", "app: other")
            + &service(notes, &more, "{ip: 10.224.0.80}");
        let found = folder.file("a.yaml", &text).run(&["scan", "--complete", "-f", "a.yaml"]);
        assert!(found.contains("UT311"), "{provider_id} {policy}: {found}");
        for other in ["UT103", "UT203"] {
            assert!(!found.contains(other), "{provider_id} {policy}: {found}");
        }
    }
}
