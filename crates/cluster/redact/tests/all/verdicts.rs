//! A redacted bundle gives the same verdicts.

use std::path::{Path, PathBuf};

use super::common::{answers, assert_same};
use super::dice::{self, Dice};
use super::seeds;
use uturn_snapshot::{Manifests, Source, json_documents};
use uturn_testing::variables;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..")
}

#[test]
fn of_examples() {
    for example in ["examples/shop", "examples/pull-request"] {
        let (manifests, faults) = Manifests::gather(&[root().join(example)], &[]);
        assert!(faults.is_empty(), "{faults:?}");
        let redacted = assert_same(&manifests, 1, example);
        if variables::is_set(variables::SHOW) {
            for (name, text) in &redacted.files {
                println!("== {name}\n{text}");
            }
        }
    }
}

#[test]
fn of_random_clusters() {
    for seed in seeds::of(0, 8) {
        let text = dice::cluster(&mut Dice::new(seed));
        let manifests =
            Manifests::of(vec![Source { name: "random.yaml".into(), text: text.clone() }]);
        assert_same(&manifests, seed as u8, &format!("seed {seed}\n{text}"));
    }
}

/// A controller of Ingresses of class `nginx`.
const CONTROLLER: &str = "---\napiVersion: v1\nkind: Pod\nmetadata: {name: edge-1, namespace: edge, labels: {app: edge}}\n\
        spec: {nodeName: n1, containers: [{name: controller, image: ingress-nginx/controller:v1.12.1, args: \
        [/nginx-ingress-controller], ports: [{name: http, containerPort: 80}]}]}\n\
        status: {phase: Running, podIP: 10.1.1.80, conditions: [{type: Ready, status: 'True'}]}\n\
        ---\napiVersion: v1\nkind: Service\nmetadata: {name: edge, namespace: edge}\nspec: {type: LoadBalancer, \
        selector: {app: edge}, ports: [{port: 80, nodePort: 30080}]}\n\
        status: {loadBalancer: {ingress: [{ip: 203.0.113.101}]}}\n";

/// An Ingress for a path, and the Service behind it.
fn ingress(name: &str, path: &str, has_endpoint: bool) -> String {
    let mut text = format!(
        "---\napiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata: {{name: \"{name}\", namespace: shop, \
         annotations: {{nginx.ingress.kubernetes.io/use-regex: 'true'}}}}\n\
         spec: {{ingressClassName: nginx, rules: [{{host: shop.example.com, http: {{paths: [{{path: '{path}', \
         pathType: ImplementationSpecific, backend: {{service: {{name: to-{name}, port: {{number: 80}}}}}}}}]}}}}]}}\n\
         status: {{loadBalancer: {{ingress: [{{ip: 203.0.113.101}}]}}}}\n\
         ---\napiVersion: v1\nkind: Service\nmetadata: {{name: to-{name}, namespace: shop}}\n\
         spec: {{selector: {{app: web}}, ports: [{{port: 80, targetPort: 8080}}]}}\n\
         ---\napiVersion: discovery.k8s.io/v1\nkind: EndpointSlice\nmetadata: {{name: to-{name}, namespace: shop, \
         labels: {{kubernetes.io/service-name: to-{name}}}}}\naddressType: IPv4\n"
    );
    text.push_str(if has_endpoint {
        "ports: [{port: 8080}]\nendpoints: [{addresses: [10.1.2.20], nodeName: n2}]\n"
    } else {
        "ports: []\nendpoints: []\n"
    });
    text
}

/// Of several Ingresses with one host and path, the first by its name counts, also where its name is one
/// that stays.
#[test]
fn of_names_that_stay_among_names_that_go() {
    const NAMES: [&str; 18] = [
        "a",
        "aa",
        "aaa",
        "acme",
        "http",
        "http-acme",
        "https",
        "httpsacme",
        "nginx",
        "nginx-2",
        "nginx-acme",
        "traefik",
        "2",
        "2acme",
        "20acme",
        "21",
        "web",
        "zeta",
    ];
    let (mut dice, mut broken) = (Dice::new(9), 0);
    for _ in 0..25 {
        let mut text = format!("{}{CONTROLLER}", nodes_and_pods());
        let mut names = NAMES.to_vec();
        for number in 0..2 + dice.below(3) {
            let name = names.swap_remove(dice.below(names.len()));
            text.push_str(&ingress(name, "/", number > 0));
        }
        let manifests = Manifests::of(vec![Source { name: "all.yaml".into(), text: text.clone() }]);
        let redacted = assert_same(&manifests, 3, &text);
        let files: String = redacted.files.values().map(String::as_str).collect();
        assert!(!["acme", "web", "zeta"].iter().any(|name| files.contains(name)), "{files}");
        broken +=
            usize::from(answers(&manifests)["scan"]["findings"].as_array().unwrap().len() > 1);
    }
    assert!((4..22).contains(&broken), "{broken}");
}

/// A regular expression is for the same paths.
#[test]
fn of_regular_expressions() {
    for (path, is_for_both) in [
        ("/[a-z]+/login", true),
        ("/[a-z]{4,}/login", true),
        ("/([a-z-]+)/(login|logout)", true),
        ("/[^/]+/login", true),
        (r"/\w+/login", true),
        ("/[0-9]+/login", false),
        ("/acme(/|$)(.*)", true),
    ] {
        let text = [
            &*nodes_and_pods(),
            CONTROLLER,
            &ingress("acme-a", path, false),
            &ingress("acme-b", "/acme/login", true),
        ]
        .concat();
        let manifests = Manifests::of(vec![Source { name: "all.yaml".into(), text }]);
        assert_same(&manifests, 3, path);
        let findings = answers(&manifests)["scan"]["findings"].to_string();
        assert_eq!(findings.contains("/acme/login"), is_for_both, "{path}: {findings}");
    }
}

/// Objects that say who announces addresses, and settings of classes of Ingresses.
#[test]
fn of_objects_of_clouds() {
    let node = |number: u8, role: &str| {
        format!(
            "---\napiVersion: v1\nkind: Node\nmetadata: {{name: acme-{number}, labels: {{kubernetes.io/hostname: \
             acme-{number}, acme/role: {role}}}}}\nspec: {{podCIDR: 10.1.{number}.0/24, providerID: \
             aws:///acmezone/i-{number}}}\nstatus: {{addresses: [{{type: InternalIP, address: 10.0.0.1{number}}}]}}\n\
             ---\napiVersion: v1\nkind: Pod\nmetadata: {{name: acmeweb-{number}, namespace: acmeshop, labels: {{app: \
             acmeweb}}}}\nspec: {{nodeName: acme-{number}, containers: [{{name: c, image: i, ports: [{{containerPort: \
             80}}]}}]}}\nstatus: {{phase: Running, podIP: 10.1.{number}.9, conditions: [{{type: Ready, status: \
             'True'}}]}}\n"
        )
    };
    let nodes = [node(1, "acmeedge"), node(2, "acmecore")].concat();
    let announced = |spec: &str| {
        format!(
            "{nodes}---\napiVersion: v1\nkind: Service\nmetadata: {{name: acmeweb, namespace: acmeshop, labels: \
             {{acmeside: acmeedge}}}}\nspec: {{type: LoadBalancer, loadBalancerClass: metallb.io/acme, clusterIP: \
             172.16.0.9, externalTrafficPolicy: Local, selector: {{app: acmeweb}}, ports: [{{port: 80, nodePort: \
             30080}}]}}\nstatus: {{loadBalancer: {{ingress: [{{ip: 10.0.0.240, ipMode: Proxy}}]}}}}\n\
             ---\napiVersion: metallb.io/v1beta1\nkind: IPAddressPool\nmetadata: {{name: acmepool, namespace: acme, \
             labels: {{acmesite: acmelab}}}}\nspec: {{addresses: [10.0.0.240-10.0.0.250, 10.7.0.0/16]}}\n\
             ---\napiVersion: metallb.io/v1beta1\nkind: L2Advertisement\nmetadata: {{name: acmead, namespace: \
             acme}}\nspec: {{{spec}}}\n"
        )
    };
    for spec in [
        "",
        "ipAddressPools: [acmepool]",
        "ipAddressPools: [acmeother]",
        "ipAddressPoolSelectors: [{matchLabels: {acmesite: acmelab}}]",
        "nodeSelectors: [{matchLabels: {acme/role: acmeedge}}], interfaces: [acmeeth]",
        "nodeSelectors: [{matchExpressions: [{key: acme/role, operator: In, values: [acmenone]}]}]",
        "serviceSelectors: [{matchLabels: {acmeside: acmecore}}]",
        "preferredNodeSelectors: [{weight: 3, preference: {matchLabels: {acme/role: acmecore}}}]",
    ] {
        assert_told_alike(&announced(spec), spec);
    }
    let class = |spec: &str| {
        format!(
            "{nodes}---\napiVersion: v1\nkind: Service\nmetadata: {{name: acmeweb, namespace: acmeshop}}\nspec: \
             {{type: NodePort, clusterIP: 172.16.0.9, selector: {{app: acmeweb}}, ports: [{{port: 80, nodePort: \
             30080}}]}}\n\
             ---\napiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata: {{name: acmefront, namespace: \
             acmeshop}}\nspec: {{ingressClassName: acmealb, rules: [{{host: web.acme.example, http: {{paths: [{{path: \
             /, pathType: Prefix, backend: {{service: {{name: acmeweb, port: {{number: 80}}}}}}}}]}}}}]}}\nstatus: \
             {{loadBalancer: {{ingress: [{{hostname: acme-1.eu-west-1.elb.amazonaws.com}}]}}}}\n\
             ---\napiVersion: networking.k8s.io/v1\nkind: IngressClass\nmetadata: {{name: acmealb}}\nspec: \
             {{controller: ingress.k8s.aws/alb, parameters: {{apiGroup: elbv2.k8s.aws, kind: IngressClassParams, \
             name: acmeparams}}}}\n\
             ---\napiVersion: elbv2.k8s.aws/v1beta1\nkind: IngressClassParams\nmetadata: {{name: acmeparams}}\n\
             spec: {{{spec}}}\n"
        )
    };
    for spec in [
        "scheme: internal, targetType: ip",
        "scheme: internet-facing, targetType: instance",
        "certificateArn: ['arn:acme:acm:acme-west-9:812345678901:certificate/acme'], sslRedirectPort: '443'",
        "inboundCIDRs: [81.82.83.0/24], targetType: instance",
    ] {
        assert_told_alike(&class(spec), spec);
    }
}

/// A redacted bundle of a text gives the same verdicts, and has none of its names.
fn assert_told_alike(text: &str, what: &str) {
    let source = Source { name: "all.yaml".into(), text: text.to_owned() };
    let redacted = assert_same(&Manifests::of(vec![source]), 7, what);
    let all: String = redacted.files.values().map(String::as_str).collect();
    for gone in ["acme", "81.82.83.", "812345678901"] {
        assert!(!all.to_lowercase().contains(gone), "{gone} of {what}:\n{all}");
    }
}

/// What a Scenario's shape would make: three nodes with a client each, and pods for its Services.
fn nodes_and_pods() -> String {
    let pod = |name: &str, app: &str, node: u8, host: u8| {
        format!(
            "---\napiVersion: v1\nkind: Pod\nmetadata: {{name: {name}-{node}, namespace: shop, labels: {{app: {app}}}}}\n\
             spec: {{nodeName: n{node}, containers: [{{name: c, image: i, ports: [{{name: http, containerPort: 8080}}]}}]}}\n\
             status: {{phase: Running, podIPs: [{{ip: 10.1.{node}.{host}}}], conditions: [{{type: Ready, status: \"True\"}}]}}\n"
        )
    };
    let mut text = String::new();
    for node in 1..=3 {
        text.push_str(&format!(
            "---\napiVersion: v1\nkind: Node\nmetadata: {{name: n{node}}}\nspec: {{podCIDRs: [10.1.{node}.0/24]}}\n\
             status: {{addresses: [{{type: InternalIP, address: 10.0.0.1{node}}}]}}\n"
        ));
        text.push_str(&pod("client", "client", node, 10));
        if node > 1 {
            text.push_str(&pod("web", "web", node, 20));
        }
    }
    text
}

#[test]
fn of_scenarios() {
    let folder = root().join("scenarios");
    let mut files: Vec<PathBuf> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let mut compared = 0;
    for file in files {
        let name = file.file_name().unwrap().to_string_lossy().into_owned();
        let text = std::fs::read_to_string(&file).unwrap();
        let source = Source { name: "scenario.yaml".into(), text };
        let scenario = json_documents(&[source]).unwrap().remove(0);
        let mut text = nodes_and_pods();
        for object in scenario["spec"]["objects"].as_array().into_iter().flatten() {
            text.push_str(&format!("---\n{object}\n"));
        }
        if scenario["spec"]["facts"].is_object() {
            let facts = &scenario["spec"]["facts"];
            text.push_str(&format!(
                "---\n{{\"apiVersion\": \"uturn.dev/v1alpha1\", \"kind\": \"Facts\", \"spec\": {facts}}}\n"
            ));
        }
        let manifests = Manifests::of(vec![Source { name: "all.yaml".into(), text }]);
        if manifests.load().is_ok() {
            assert_same(&manifests, 4, &name);
            compared += 1;
        }
    }
    assert!(compared > 60, "{compared}");
}

/// What ConfigMaps say of nodes: of their bridge, of their caches of names.
#[test]
fn of_what_nodes_are_set_to() {
    let service = "---\napiVersion: v1\nkind: Service\nmetadata: {name: web, namespace: shop}\nspec: {selector: {app: web}, \
                   clusterIP: 172.20.0.10, ports: [{port: 80, targetPort: 8080}]}\n";
    let flannel = "---\napiVersion: apps/v1\nkind: DaemonSet\nmetadata: {name: kube-flannel-ds, namespace: kube-flannel}\nspec: \
                   {selector: {matchLabels: {app: flannel}}, template: {metadata: {labels: {app: flannel}}, spec: {hostNetwork: true, \
                   containers: [{name: kube-flannel, image: flannel:v1}]}}}\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: \
                   {name: kube-flannel-cfg, namespace: kube-flannel}\ndata: {cni-conf.json: '{\"plugins\": [{\"type\": \
                   \"flannel\", \"delegate\": {\"isDefaultGateway\": true}}, {\"type\": \"portmap\"}]}'}\n";
    let names = "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: nodelocaldns, namespace: kube-system}\ndata: \
                 {Corefile: \".:53 {\\n bind 169.254.25.10\\n forward . 172.20.0.3\\n}\\n\"}\n---\napiVersion: v1\nkind: \
                 ConfigMap\nmetadata: {name: kubelet-config, namespace: kube-system}\ndata: {kubelet: \"clusterDNS: \
                 [169.254.25.10]\\nclusterDomain: cluster.local\\n\"}\n---\napiVersion: v1\nkind: Service\nmetadata: {name: \
                 coredns, namespace: kube-system}\nspec: {clusterIP: 172.20.0.3, ports: [{name: dns, port: 53, protocol: \
                 UDP}]}\n";
    let text = format!("{}{service}{flannel}{names}", nodes_and_pods());
    let manifests = Manifests::of(vec![Source { name: "cluster.yaml".into(), text }]);
    let redacted = assert_same(&manifests, 7, "flannel's configuration");
    let files = format!("{:?}", redacted.files);
    assert!(files.contains("clusterDNS") && !files.contains("clusterDomain"), "{files}");
    assert!(files.contains("delegate") && !files.contains("isDefaultGateway"), "{files}");
}
