//! Ways that objects and Facts leave open, or close: who has an address, who answers for it, and what a
//! load balancer's annotations do not ask for.

use uturn_model::Verdict;

use super::cures::{offered, tried};
use super::*;

/// The verdicts of a call in a cluster of these documents.
fn traced(text: &str, from: &str, to: &str) -> Vec<Verdict> {
    let source = Source { name: "made.yaml".into(), text: text.to_owned() };
    let cluster = Manifests::of(vec![source]).complete_if(true).cluster().unwrap();
    let flow =
        Flow { from: from.parse().unwrap(), to: to.parse().unwrap(), protocol: Protocol::Tcp };
    Engine::new(&cluster).unwrap().cases(&flow).unwrap()
}

/// How each case of a call ends: its conditions, the outcome, and why.
fn ends(text: &str, from: &str, to: &str) -> Vec<String> {
    let end = |verdict: &Verdict| {
        let outcomes: Vec<String> =
            verdict.outcomes.iter().map(|(outcome, _)| outcome.to_string()).collect();
        let why: Vec<&str> = verdict.mechanisms.iter().map(|own| own.as_str()).collect();
        let conditions = verdict.conditions.join(" and ");
        [conditions, outcomes.join(" or "), why.join(" and ")].join(": ")
    };
    traced(text, from, to).iter().map(end).collect()
}

fn all(objects: &str, fields: &[&str]) -> String {
    [nodes_and_pods(), objects.to_owned(), facts(fields)].concat()
}

/// An internal Ingress of Google's, at the address of an internal load balancer of a Service.
fn shared() -> String {
    let notes = "networking.gke.io/load-balancer-type: Internal";
    let service =
        balanced_service("172.16.0.10", notes, "loadBalancerIP: 10.0.9.9", "{ip: 10.0.9.9}");
    let ingress = "---
apiVersion: v1
kind: Service
metadata: {name: front, namespace: shop}
spec: {clusterIP: 172.16.0.11, selector: {app: web}, ports: [{port: 8000, targetPort: 8080}]}
---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: front, namespace: shop, annotations: {kubernetes.io/ingress.class: gce-internal}}
spec:
  rules:
  - host: shop.example.com
    http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: front, port: {number: 8000}}}}]}
status: {loadBalancer: {ingress: [{ip: 10.0.9.9}]}}
";
    service.replace("port: 80,", "port: 5672,") + ingress
}

#[test]
fn an_address_that_a_service_and_an_ingress_share_ends_on_nodes() {
    let fields = [IPTABLES, "provider: gcp"];
    let text = all(&shared(), &fields);
    assert_eq!(ends(&text, "pod/shop/web-1", "10.0.9.9:80"), [": refused: address-taken"]);
    assert_eq!(
        ends(&text, "outside/10.0.0.200", "http://10.0.9.9/")[0],
        ": 404 at once: no-rule-for-path"
    );
    let found = findings(&shared(), &fields);
    let (severity, subject, _, said) = only(&found, Code::AddressTaken);
    assert_eq!((severity, &*subject), (Severity::Error, "Service shop/web"));
    assert!(said.contains("the address of the load balancer of Ingress shop/front"), "{said}");
    let cures = tried(text, Code::AddressTaken);
    assert!(offered(&cures).contains(&"an address of its own for svc/shop/web"), "{cures:#?}");
    // With an address for each, nothing is taken.
    let apart = shared().replace(
        "loadBalancer: {ingress: [{ip: 10.0.9.9}]}}\n---",
        "loadBalancer: {ingress: [{ip: 10.0.9.10}]}}\n---",
    );
    assert_eq!(with_code(&findings(&apart, &fields), Code::AddressTaken), []);
}

/// A load balancer that Facts state may be a program of the node that has its address.
#[test]
fn a_stated_load_balancer_may_run_on_the_node_that_holds_its_address() {
    let fields = [
        IPTABLES,
        "nodes: {n1: {localAddresses: [10.0.0.100]}}",
        "loadBalancers: [{vip: 10.0.0.100, listeners: [{port: 8443, snat: true, targets: {nodes: all, port: 6443}}]}]",
    ];
    assert_eq!(ends(&all("", &fields), "node/n1", "10.0.0.100:8443"), [": not known: not-given"]);
}

/// Two nodes with public addresses, and a Service with these external IPs.
fn with_external(ips: &str, fields: &[&str]) -> String {
    let spec = format!("externalIPs: [{ips}]");
    let service = balanced_service("172.16.0.10", "", &spec, "")
        .replace("type: LoadBalancer", "type: ClusterIP")
        .replace("nodePort: 30080", "targetPort: 8080");
    let text = all(&service, fields);
    ["10.0.0.11", "10.0.0.12"].into_iter().fold(text, |text, own| {
        let public = own.replace("10.0.0.", "52.24.0.");
        let addresses = format!("address: {own}}}, {{type: ExternalIP, address: {public}}}");
        text.replace(&format!("address: {own}}}"), &addresses)
    })
}

#[test]
fn a_public_address_of_a_node_arrives_as_its_own() {
    let aws = [IPTABLES, "provider: aws"];
    let text = with_external("52.24.0.11", &aws);
    assert_eq!(ends(&text, "outside", "52.24.0.11:80"), [": refused: address-taken"]);
    let verdicts = traced(&text, "outside", "52.24.0.11:80");
    let supposed: Vec<String> =
        verdicts[0].supposed.iter().map(|own| own.subject.to_string()).collect();
    assert_eq!(supposed, ["what 52.24.0.11 leads to", "port 80 of node n1"]);
    let cures = tried(text, Code::AddressTaken);
    let title = "10.0.0.11 in place of 52.24.0.11 in externalIPs of svc/shop/web";
    assert_eq!(offered(&cures), [title], "{cures:#?}");
    let own = with_external("10.0.0.11", &aws);
    assert_eq!(ends(&own, "outside", "52.24.0.11:80"), [": answered at once: "]);
    // Without a cloud that translates addresses, the node may have it.
    let text = with_external("52.24.0.11", &[IPTABLES, "provider: none"]);
    assert_eq!(
        ends(&text, "outside", "52.24.0.11:80"),
        [
            "the network translates 52.24.0.11 to 10.0.0.11: refused: address-taken",
            "node n1 itself has 52.24.0.11: answered at once: ",
        ]
    );
    let stated = with_external(
        "52.24.0.11",
        &[IPTABLES, "provider: none", "nodes: {n1: {localAddresses: [52.24.0.11]}}"],
    );
    assert_eq!(ends(&stated, "outside", "52.24.0.11:80"), [": answered at once: "]);
}

#[test]
fn an_external_ip_is_walked_at_each_node() {
    let external = |policy: &str, mode: &str| {
        let spec = format!("externalIPs: [10.0.7.7], externalTrafficPolicy: {policy}");
        let service = balanced_service("172.16.0.10", "", "", "")
            .replace("spec:\n", &format!("spec:\n  {}\n", spec.replace(", ", "\n  ")))
            .replace("nodePort: 30080", "nodePort: 30080, targetPort: 8080")
            .replace("type: LoadBalancer", "type: NodePort");
        // Only node n1 has an endpoint.
        all(&service, &[mode]).replace(
            "{name: web-2, namespace: shop, labels: {app: web}}",
            "{name: other, namespace: shop}",
        )
    };
    let of = |policy, mode| ends(&external(policy, mode), "outside", "10.0.7.7:80");
    assert_eq!(of("Cluster", IPTABLES), [": answered at once: "]);
    let local = of("Local", IPTABLES);
    assert_eq!(local[0], "the network brings 10.0.7.7 to n1: answered at once: ");
    assert!(local[1].starts_with("the network brings 10.0.7.7 to n2: hangs"), "{local:?}");
    // An IPVS filter of that release knows no external IPs under policy Local: every node refuses.
    let ipvs = "kubeProxy: {mode: ipvs, version: v1.27.5}";
    assert_eq!(of("Local", ipvs), [": refused: proxy-filter"]);
    let supposed = &traced(&external("Cluster", IPTABLES), "outside", "10.0.7.7:80")[0].supposed;
    assert!(supposed.iter().any(|own| own.subject.to_string() == "what 10.0.7.7 leads to"));
}

/// A Service of K3s under policy Local, with the pod of its load balancer on node n1.
fn relayed(release: &str, status: &str) -> String {
    let key = "svccontroller.k3s.cattle.io/";
    let spec = "externalTrafficPolicy: Local";
    let service = balanced_service("172.16.0.10", "", spec, &format!("{{ip: {status}}}"))
        .replace("nodePort: 30080", "nodePort: 30080, targetPort: 8080");
    format!(
        "{service}---
apiVersion: v1
kind: Pod
metadata: {{name: svclb-web-1, namespace: kube-system, labels: {{app: svclb-web, {key}svcname: web, {key}svcnamespace: shop}}}}
spec: {{nodeName: n1, containers: [{{name: lb-tcp-80, image: 'rancher/klipper-lb:{release}', ports: [{{containerPort: 80, hostPort: 80}}]}}]}}
status: {{phase: Running, podIP: 10.1.1.7, conditions: [{{type: Ready, status: 'True'}}]}}
"
    )
}

#[test]
fn a_relay_that_accepts_another_port_than_it_sends_to_drops_calls() {
    let fields = [IPTABLES, "provider: k3s"];
    let of =
        |release| ends(&all(&relayed(release, "10.0.7.7"), &fields), "outside", "10.0.0.11:80");
    assert_eq!(of("v0.4.0"), [": hangs: firewall"]);
    assert_eq!(of("v0.4.3"), [": hangs: firewall"]);
    assert_eq!(of("v0.3.5"), [": answered at once: "]);
    assert_eq!(of("v0.4.4"), [": answered at once: "]);
    let found = findings(&relayed("v0.4.0", "10.0.7.7"), &fields);
    let (severity, subject, _, said) = only(&found, Code::NodeFirewall);
    assert_eq!((severity, &*subject), (Severity::Error, "Service shop/web"));
    assert!(said.contains("klipper-lb v0.4.0 accepts what is for port 80"), "{said}");
    // kube-proxy serves the addresses in the status, past the pods.
    let found = findings(&relayed("v0.4.0", "10.0.0.11"), &fields);
    assert_eq!(only(&found, Code::NodeFirewall).0, Severity::Info);
    assert_eq!(
        with_code(&findings(&relayed("v0.4.4", "10.0.7.7"), &fields), Code::NodeFirewall),
        []
    );
    let cures = tried(all(&relayed("v0.4.0", "10.0.7.7"), &fields), Code::NodeFirewall);
    let titles = [
        "rancher/klipper-lb:v0.4.4 in Pod kube-system/svclb-web-1",
        "policy Cluster for svc/shop/web",
    ];
    assert_eq!(offered(&cures), titles, "{cures:#?}");
}

/// A Service whose endpoints somebody wrote without a node, announced by these speakers.
fn nodeless(release: &str) -> String {
    let service = balanced_service("172.16.0.10", "", "", "{ip: 10.0.9.9}")
        .replace("  selector: {app: web}\n", "");
    format!(
        "{service}---
apiVersion: v1
kind: Endpoints
metadata: {{name: web, namespace: shop}}
subsets: [{{addresses: [{{ip: 10.0.0.200}}], ports: [{{port: 80}}]}}]
---
apiVersion: apps/v1
kind: DaemonSet
metadata: {{name: speaker, namespace: metallb-system}}
spec:
  selector: {{matchLabels: {{app: metallb}}}}
  template:
    metadata: {{labels: {{app: metallb}}}}
    spec: {{hostNetwork: true, containers: [{{name: speaker, image: 'metallb/speaker:{release}'}}]}}
"
    )
}

#[test]
fn old_speakers_announce_from_nodes_of_endpoints_only() {
    let found = findings(&nodeless("v0.9.3"), &[IPTABLES]);
    let (severity, subject, conditions, said) = only(&found, Code::NoTargets);
    assert_eq!((severity, &*subject), (Severity::Warning, "Service shop/web"));
    assert_eq!(conditions, ["MetalLB announces the address by layer2"]);
    assert!(said.contains("10.0.0.200 has no nodeName"), "{said}");
    for release in ["v0.11.0", "v0.14.9"] {
        assert_eq!(with_code(&findings(&nodeless(release), &[IPTABLES]), Code::NoTargets), []);
    }
    let named = nodeless("v0.9.3").replace("{ip: 10.0.0.200}", "{ip: 10.0.0.200, nodeName: n1}");
    assert_eq!(with_code(&findings(&named, &[IPTABLES]), Code::NoTargets), []);
    let cures = tried(all(&nodeless("v0.9.3"), &[IPTABLES]), Code::NoTargets);
    assert_eq!(offered(&cures), ["nodeName: n1 for the endpoints in Endpoints shop/web"]);
}

/// The ConfigMap that MetalLB reads before 0.13.
fn configured(release: &str, protocol: &str) -> String {
    nodeless(release)
        + &format!(
            "---
apiVersion: v1
kind: ConfigMap
metadata: {{name: config, namespace: metallb-system}}
data:
  config: |
    address-pools:
    - name: default
      protocol: {protocol}
      addresses:
      - 10.0.9.0/24
"
        )
}

#[test]
fn the_configuration_of_old_speakers_says_how_they_announce() {
    let found = findings(&configured("v0.9.3", "layer2"), &[IPTABLES]);
    let (severity, _, conditions, said) = only(&found, Code::NoTargets);
    assert_eq!((severity, conditions.len()), (Severity::Error, 0), "{said}");
    for silent in [configured("v0.9.3", "bgp"), configured("v0.12.1", "layer2")] {
        assert_eq!(with_code(&findings(&silent, &[IPTABLES]), Code::NoTargets), []);
        assert_eq!(with_code(&findings(&silent, &[IPTABLES]), Code::Pending), []);
    }
    // Before 0.13 there are no IPAddressPools that could lack.
    let waiting = configured("v0.12.1", "layer2").replace("{ip: 10.0.9.9}", "");
    let (severity, _, _, said) = only(&findings(&waiting, &[IPTABLES]), Code::Pending);
    assert_eq!(severity, Severity::Warning, "{said}");
}

/// An ALB's Ingress with these annotations, and an address.
fn served_alb(notes: &str) -> String {
    alb(notes, "NodePort").replace("targetPort: 8080", "targetPort: 8080, nodePort: 30080").replace(
        "loadBalancer: {}",
        "loadBalancer: {ingress: [{hostname: a.eu-west-1.elb.amazonaws.com}]}",
    )
}

#[test]
fn an_alb_with_groups_of_its_own_may_be_shut_out() {
    let aws = [IPTABLES, "provider: aws"];
    let prefix = "alb.ingress.kubernetes.io/";
    let own = format!("{prefix}scheme: internet-facing, {prefix}security-groups: sg-1");
    let (severity, subject, conditions, said) =
        only(&findings(&served_alb(&own), &aws), Code::SecurityGroup);
    assert_eq!((severity, &*subject), (Severity::Warning, "Ingress shop/web"));
    assert_eq!(conditions, ["no rule of the groups of nodes and pods lets the load balancer in"]);
    assert!(said.contains("groups of its own (sg-1)"), "{said}");
    let cures = tried(all(&served_alb(&own), &aws), Code::SecurityGroup);
    let title = format!(
        "annotate ingress/shop/web with {prefix}manage-backend-security-group-rules: \"true\""
    );
    assert_eq!(offered(&cures), [title]);
    let managed = format!("{own}, {prefix}manage-backend-security-group-rules: 'true'");
    let open = format!("{prefix}scheme: internet-facing");
    for fine in [managed, open] {
        assert_eq!(
            with_code(&findings(&served_alb(&fine), &aws), Code::SecurityGroup),
            [],
            "{fine}"
        );
    }
}

#[test]
fn an_alb_is_internal_unless_it_is_asked_to_face_the_internet() {
    let aws = [IPTABLES, "provider: aws"];
    let key = "alb.ingress.kubernetes.io/scheme";
    let (severity, subject, conditions, said) =
        only(&findings(&served_alb(""), &aws), Code::NoRoute);
    assert_eq!((severity, &*subject), (Severity::Info, "Ingress shop/web"));
    assert!(conditions.is_empty() && said.contains("an ALB is internal then"), "{said}");
    for stated in ["internal", "internet-facing"] {
        let found = findings(&served_alb(&format!("{key}: {stated}")), &aws);
        assert_eq!(with_code(&found, Code::NoRoute), [], "{stated}");
    }
    let url = "http://a.eu-west-1.elb.amazonaws.com/";
    let text = all(&served_alb(""), &aws);
    assert_eq!(ends(&text, "outside/8.8.8.8", url), [": hangs: no-route"]);
    assert_eq!(ends(&text, "outside/10.0.0.77", url), [": 404 at once: no-rule-for-path"]);
    let cures = tried(text, Code::NoRoute);
    let title = format!("annotate ingress/shop/web with {key}: \"internet-facing\"");
    assert_eq!(offered(&cures), [title], "{cures:#?}");
}

#[test]
fn an_application_gateway_may_lack_the_routes_of_kubenet() {
    let gateway = alb("", "ClusterIP")
        .replace("ingressClassName: alb", "ingressClassName: azure-application-gateway")
        .replace("{name: alb}", "{name: azure-application-gateway}")
        .replace("ingress.k8s.aws/alb", "azure/application-gateway")
        .replace("loadBalancer: {}", "loadBalancer: {ingress: [{ip: 20.50.60.70}]}");
    let of = |plugin: &str| {
        let network = format!("network: {{plugin: {plugin}, podCIDRs: [10.1.0.0/16]}}");
        [nodes_and_pods(), gateway.clone(), facts(&[IPTABLES, "provider: azure"])]
            .concat()
            .replace(&format!("network: {}", uturn_testing::manifests::NETWORK), &network)
    };
    let found = |text: String| {
        let source = Source { name: "made.yaml".into(), text };
        let cluster = Manifests::of(vec![source]).complete_if(true).cluster().unwrap();
        let engine = Engine::new(&cluster).unwrap();
        let scanner = Scanner::new(&engine);
        let all = diagnose(&scanner, &scanner.scan(&scanner.targets()).unwrap()).unwrap();
        with_code(&all, Code::NoRoute)
    };
    let kubenet = found(of("kubenet"));
    let [(severity, _, conditions, _)] = kubenet.as_slice() else { panic!("{kubenet:?}") };
    assert_eq!(*severity, Severity::Warning);
    assert_eq!(conditions, &["that route table is not associated with the gateway's subnet"]);
    assert_eq!(found(of("azure-cni")), []);
    let cures = tried(of("kubenet"), Code::NoRoute);
    assert_eq!(offered(&cures), ["the nodes' route table associated with the gateway's subnet"]);
}

#[test]
fn a_node_without_a_default_route_reaches_no_cluster_ip() {
    let service = balanced_service("172.16.0.10", "", "", "")
        .replace("type: LoadBalancer", "type: ClusterIP")
        .replace("nodePort: 30080", "targetPort: 8080");
    let of = |nodes: &str| all(&service, &[IPTABLES, nodes]);
    let without = of("nodes: {n1: {routes: []}}");
    let call = "172.16.0.10:80";
    assert_eq!(ends(&without, "node/n1", call), [": unreachable: no-route"]);
    assert_eq!(ends(&without, "node/n2", call), [": answered at once: "]);
    for given in [
        "nodes: {n1: {routes: [172.16.0.0/12, 10.1.0.0/16]}}",
        "nodes: {n1: {routes: [0.0.0.0/0]}}",
    ] {
        assert_eq!(ends(&of(given), "node/n1", call), [": answered at once: "], "{given}");
    }
}

#[test]
fn a_load_balancer_of_an_unknown_cloud_is_judged_by_what_facts_state() {
    let service = balanced_service("172.16.0.10", "", "", "{ip: 52.24.9.9}")
        .replace("nodePort: 30080", "nodePort: 30080, targetPort: 8080");
    let of = |listener: &str| {
        let facts =
            format!("loadBalancers: [{{vip: 52.24.9.9, listeners: [{{port: {listener}}}]}}]");
        ends(&all(&service, &[IPTABLES, &facts]), "outside", "52.24.9.9:80")
    };
    assert_eq!(of("80, snat: true"), [": answered at once: "]);
    assert_eq!(of("80"), [": not known: not-modelled"]);
    assert_eq!(of("443, snat: true"), [": not known: not-modelled"]);
}

#[test]
fn a_bridge_that_facts_tell_of_sends_nothing_back() {
    let of = |plugin: &str| {
        let network = format!(
            "network: {{plugin: {plugin}, podCIDRs: [10.1.0.0/16], vpcCIDRs: [10.0.0.0/8]}}"
        );
        let service = balanced_service("172.16.0.10", "", "", "")
            .replace("type: LoadBalancer", "type: ClusterIP")
            .replace("nodePort: 30080", "targetPort: 8080");
        let text = all(&service, &[IPTABLES, "nodes: {'*': {hairpin: false}}"]);
        let text =
            text.replace(&format!("network: {}", uturn_testing::manifests::NETWORK), &network);
        ends(&text, "pod/shop/web-1", "172.16.0.10:80")
    };
    assert_eq!(of("azure-cni"), [": answered at once or hangs: hairpin-off"]);
    assert_eq!(of("calico"), [": answered at once: "]);
}

/// A Gateway of Google's with a route to a Service whose pod is probed by this path.
fn google_gateway(probe: &str) -> String {
    format!(
        "---
apiVersion: gateway.networking.k8s.io/v1
kind: GatewayClass
metadata: {{name: gke-l7-global-external-managed}}
spec: {{controllerName: networking.gke.io/gateway}}
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {{name: web, namespace: shop}}
spec: {{gatewayClassName: gke-l7-global-external-managed, listeners: [{{name: http, protocol: HTTP, port: 80}}]}}
status: {{addresses: [{{type: IPAddress, value: 203.0.113.5}}]}}
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {{name: web, namespace: shop}}
spec:
  parentRefs: [{{name: web}}]
  hostnames: [shop.example.com]
  rules: [{{backendRefs: [{{name: api, port: 8080}}]}}]
---
apiVersion: v1
kind: Service
metadata: {{name: api, namespace: shop}}
spec: {{clusterIP: 172.16.0.20, selector: {{app: api}}, ports: [{{port: 8080}}]}}
---
apiVersion: v1
kind: Pod
metadata: {{name: api, namespace: shop, labels: {{app: api}}}}
spec: {{nodeName: n1, containers: [{{name: c, image: c, ports: [{{containerPort: 8080}}], readinessProbe: {{httpGet: {{path: {probe}, port: 8080}}}}}}]}}
status: {{phase: Running, podIP: 10.1.1.20, conditions: [{{type: Ready, status: 'True'}}]}}
"
    )
}

#[test]
fn a_gateway_asks_for_another_page_than_the_kubelet() {
    let fields = [IPTABLES, "provider: gcp"];
    let found = findings(&google_gateway("/livez"), &fields);
    let (severity, subject, conditions, said) = only(&found, Code::CheckCannotPass);
    assert_eq!((severity, &*subject), (Severity::Warning, "HTTPRoute shop/web"));
    assert_eq!(conditions.len(), 1);
    assert!(said.contains("asked for /livez by the kubelet"), "{said}");
    assert_eq!(with_code(&findings(&google_gateway("/"), &fields), Code::CheckCannotPass), []);
    let cures = tried(all(&google_gateway("/livez"), &fields), Code::CheckCannotPass);
    let title = "HealthCheckPolicy api: health checks ask svc/shop/api for /livez";
    assert_eq!(offered(&cures), [title], "{cures:#?}");
}

/// An API server outside the nodes reads the Service and dials an endpoint.
#[test]
fn a_managed_api_server_dials_endpoints() {
    let apis = "---
apiVersion: v1
kind: Endpoints
metadata: {name: kubernetes, namespace: default}
subsets: [{addresses: [{ip: 10.0.5.5}], ports: [{name: https, port: 443}]}]
";
    let service = balanced_service("172.16.0.10", "", "", "")
        .replace("type: LoadBalancer", "type: ClusterIP")
        .replace("port: 80, nodePort: 30080", "port: 443, targetPort: 8443");
    let group =
        "securityGroups: {sg: {inbound: [{action: accept, protocol: tcp, ports: 443, peer: all}]}}";
    let of = |from: &str, ports: &str| {
        let group = group.replace("443", ports);
        let fields = [IPTABLES, "nodes: {'*': {securityGroups: [sg]}}", &*group];
        ends(&all(&(apis.to_owned() + &service), &fields), from, "https://web.shop.svc/")
    };
    assert_eq!(of("outside/10.0.5.5", "443"), [": hangs: security-group"]);
    assert_eq!(of("outside/10.0.5.5", "8443"), [": answered at once: "]);
    assert_eq!(of("outside/10.0.5.6", "8443").len(), 2);
}

/// A load balancer that sends a PROXY header breaks every call of an API server behind it.
#[test]
fn an_api_server_reads_no_header() {
    let apis = "---
apiVersion: v1
kind: Endpoints
metadata: {name: kubernetes, namespace: default}
subsets: [{addresses: [{ip: 10.0.0.11}], ports: [{name: https, port: 6443}]}]
";
    let of = |header: &str| {
        let balancer = format!(
            "loadBalancers: [{{hostname: api.example.com, product: AWS Classic Load Balancer, listeners: \
             [{{port: 6443, {header}targets: {{nodes: [n1]}}}}]}}]"
        );
        all(apis, &[IPTABLES, &balancer])
    };
    let call = "https://api.example.com:6443/";
    assert_eq!(ends(&of(""), "node/n2", call), [": answered at once: "]);
    assert_eq!(ends(&of("proxyHeader: v1, "), "node/n2", call), [": TLS error: proxy-header"]);
}
