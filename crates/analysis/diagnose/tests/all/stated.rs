//! Findings that objects show without a walk: addresses that are not given or not announced,
//! Ingresses of nobody, host ports that nothing forwards.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on panics")]

mod cures;
mod cures_of_evidence;
mod doors;
mod judged;
mod ways;

use uturn_diagnose::check::{State, Topic, check};
use uturn_diagnose::{Code, Finding, Severity, diagnose};
use uturn_model::{Cluster, Flow, Mechanism, Protocol};
use uturn_path::Engine;
use uturn_scan::Scanner;
use uturn_snapshot::{Manifests, Source};
use uturn_testing::manifests::{RunningPod, balanced_service, facts, node};

/// A pod of an image that listens on port 80, and declares no port.
const POD_OF_NGINX: &str = "---
apiVersion: v1
kind: Pod
metadata: {name: plain, namespace: plain, labels: {app: plain}}
spec: {nodeName: n1, containers: [{name: c, image: nginx}]}
status: {phase: Running, podIP: 10.1.1.9, conditions: [{type: Ready, status: 'True'}]}
";

/// Two nodes, and a pod with the label `app: web` on each.
fn nodes_and_pods() -> String {
    let pod = |name: &str, node: u32, address: &str| {
        RunningPod { name, app: "web", node, address, ..RunningPod::default() }.to_string()
    };
    [node(1), node(2), pod("web-1", 1, "10.1.1.2"), pod("web-2", 2, "10.1.2.2")].concat()
}

/// A whole cluster of [`nodes_and_pods`], these objects and these Facts.
fn cluster(objects: &str, fields: &[&str]) -> Cluster {
    let text = [nodes_and_pods(), objects.to_owned(), facts(fields)].concat();
    let source = Source { name: "made.yaml".into(), text };
    Manifests::of(vec![source]).complete_if(true).cluster().unwrap()
}

/// All findings of a [`cluster`].
fn findings(objects: &str, fields: &[&str]) -> Vec<Finding> {
    let cluster = cluster(objects, fields);
    let engine = Engine::new(&cluster).unwrap();
    let scanner = Scanner::new(&engine);
    diagnose(&scanner, &scanner.scan(&scanner.targets()).unwrap()).unwrap()
}

/// The findings with a code, each with its severity, subject and conditions, and what it says.
fn with_code(findings: &[Finding], code: Code) -> Vec<(Severity, String, Vec<String>, String)> {
    let own = findings.iter().filter(|finding| finding.code == code);
    own.map(|finding| {
        let conditions = finding.conditions.iter().map(ToString::to_string).collect();
        let said = finding.other_evidence.iter().map(|one| one.what.to_string());
        let said: Vec<String> = said.collect();
        (finding.severity, finding.subject.to_string(), conditions, said.join("; "))
    })
    .collect()
}

fn only(findings: &[Finding], code: Code) -> (Severity, String, Vec<String>, String) {
    let mut all = with_code(findings, code);
    assert_eq!(all.len(), 1, "{code}: {findings:#?}");
    all.remove(0)
}

const IPTABLES: &str = "kubeProxy: {mode: iptables, version: v1.34.4}";
const IPVS: &str = "kubeProxy: {mode: ipvs, version: v1.34.4}";

#[test]
fn a_service_without_an_address_names_its_node_port() {
    let waiting = balanced_service("172.16.0.10", "", "", "");
    let (severity, subject, conditions, said) =
        only(&findings(&waiting, &[IPTABLES]), Code::Pending);
    assert_eq!((severity, &*subject), (Severity::Error, "Service shop/web"));
    assert!(conditions.is_empty(), "{conditions:?}");
    assert!(said.contains("nothing here gives addresses"), "{said}");
    assert!(said.contains("node port 30080 (port 80) of every node"), "{said}");

    let of_class = balanced_service("172.16.0.10", "", "loadBalancerClass: acme.example/lb", "");
    let (severity, _, _, said) = only(&findings(&of_class, &[IPTABLES]), Code::Pending);
    assert_eq!(severity, Severity::Warning);
    assert!(said.contains("acme.example/lb"), "{said}");

    let given = balanced_service("172.16.0.10", "", "", "{ip: 10.0.9.9}");
    assert_eq!(with_code(&findings(&given, &[IPTABLES]), Code::Pending), []);
}

/// A pool of two addresses, and a Service that has one of them.
fn pool(advertisement: bool) -> String {
    let mut text = "---
apiVersion: metallb.io/v1beta1
kind: IPAddressPool
metadata: {name: first, namespace: metallb-system}
spec: {addresses: [10.0.9.8-10.0.9.9]}
"
    .to_owned();
    if advertisement {
        text.push_str(
            "---
apiVersion: metallb.io/v1beta1
kind: L2Advertisement
metadata: {name: first, namespace: metallb-system}
spec: {ipAddressPools: [first]}
",
        );
    }
    text
}

#[test]
fn a_pool_without_the_address_that_is_asked_for() {
    let asking = balanced_service("172.16.0.10", "", "loadBalancerIP: 10.0.9.7", "");
    let (severity, _, _, said) =
        only(&findings(&(pool(true) + &asking), &[IPTABLES]), Code::Pending);
    assert_eq!(severity, Severity::Error);
    assert!(said.contains("it asks for 10.0.9.7, which is in no pool"), "{said}");

    let fitting = balanced_service("172.16.0.10", "", "loadBalancerIP: 10.0.9.9", "");
    let (severity, _, _, said) =
        only(&findings(&(pool(true) + &fitting), &[IPTABLES]), Code::Pending);
    assert_eq!(severity, Severity::Warning, "{said}");
}

#[test]
fn a_pool_that_nothing_announces() {
    let given = balanced_service("172.16.0.10", "", "", "{ip: 10.0.9.9}");
    let (severity, _, _, said) =
        only(&findings(&(pool(false) + &given), &[IPTABLES]), Code::NoTargets);
    assert_eq!(severity, Severity::Error);
    assert!(said.contains("neither an L2Advertisement nor a BGPAdvertisement"), "{said}");
    assert_eq!(with_code(&findings(&(pool(true) + &given), &[IPTABLES]), Code::NoTargets), []);
}

#[test]
fn an_address_of_a_node_is_lost_to_the_others() {
    let mut external = balanced_service("172.16.0.10", "", "externalIPs: [10.0.0.11]", "");
    external =
        external.replace("type: LoadBalancer", "type: ClusterIP").replace("nodePort: 30080", "");
    let (severity, subject, _, said) = only(&findings(&external, &[IPVS]), Code::AddressTaken);
    assert_eq!((severity, &*subject), (Severity::Error, "Service shop/web"));
    assert!(said.contains("spec.externalIPs has 10.0.0.11, the InternalIP of Node n1"), "{said}");
    // In iptables mode only the Service's ports are taken.
    assert_eq!(with_code(&findings(&external, &[IPTABLES]), Code::AddressTaken), []);
    let of_kubelet = external.replace("port: 80,", "port: 10250,");
    let (severity, ..) = only(&findings(&of_kubelet, &[IPTABLES]), Code::AddressTaken);
    assert_eq!(severity, Severity::Warning);

    let announced = balanced_service("172.16.0.10", "", "", "{ip: 10.0.0.12}");
    let announced = pool(true).replace("10.0.9.8-10.0.9.9", "10.0.0.12/32") + &announced;
    let (severity, ..) = only(&findings(&announced, &[IPTABLES]), Code::AddressTaken);
    assert_eq!(severity, Severity::Error);
}

/// Calls that fail because of the address, at other ports of it, are of the same finding and not of
/// one about ports.
#[test]
fn calls_at_a_taken_address_are_of_the_finding_that_names_the_service() {
    let apis = "---
apiVersion: v1
kind: Service
metadata: {name: kubernetes, namespace: default}
spec: {clusterIP: 172.16.0.1, ports: [{name: https, port: 443, targetPort: 6443}]}
---
apiVersion: v1
kind: Endpoints
metadata: {name: kubernetes, namespace: default}
subsets: [{addresses: [{ip: 10.0.0.11}], ports: [{name: https, port: 6443}]}]
";
    let external = balanced_service("172.16.0.10", "", "externalIPs: [10.0.0.11]", "")
        .replace("type: LoadBalancer", "type: ClusterIP")
        .replace("nodePort: 30080", "targetPort: 8080");
    let found = findings(&(apis.to_owned() + &external), &[IPVS]);
    let (_, subject, ..) = only(&found, Code::AddressTaken);
    assert_eq!(subject, "Service shop/web");
    let finding = found.iter().find(|finding| finding.code == Code::AddressTaken).unwrap();
    let is_of_api = |target: &String| target.contains("svc/default/kubernetes");
    assert!(finding.targets.iter().any(is_of_api), "{finding:#?}");
    assert_eq!(with_code(&found, Code::WrongPort), []);

    let fields = &[IPVS];
    let cluster = cluster(&(apis.to_owned() + &external), fields);
    let flow = Flow {
        from: "node/n2".parse().unwrap(),
        to: "10.0.0.11:6443".parse().unwrap(),
        protocol: Protocol::Tcp,
    };
    let verdict = Engine::new(&cluster).unwrap().verdict(&flow).unwrap();
    assert_eq!(verdict.mechanisms, [Mechanism::AddressTaken]);
    let steps = verdict.routes.iter().flat_map(|route| &route.hops).flat_map(|hop| &hop.steps);
    let says = |what: &str| steps.clone().any(|step| step.why.contains(what));
    assert!(says("10.0.0.11 is the address of node n1"), "{verdict:#?}");
    assert!(says("Service shop/web has it too"), "{verdict:#?}");
}

/// A load balancer without a target has endpoints, or lacks them: these are different faults.
#[test]
fn an_address_that_nothing_announces_has_no_target() {
    let flow = Flow {
        from: "outside/10.0.0.200".parse().unwrap(),
        to: "10.0.9.9:80".parse().unwrap(),
        protocol: Protocol::Tcp,
    };
    let excluded = "node.kubernetes.io/exclude-from-external-load-balancers: ''";
    for (selector, mechanism) in
        [("{app: web}", Mechanism::NoTarget), ("{app: nobody}", Mechanism::NoEndpoint)]
    {
        let given = balanced_service("172.16.0.10", "", "", "{ip: 10.0.9.9}")
            .replace("{app: web}", selector);
        let text = [nodes_and_pods(), pool(true), given, facts(&[IPTABLES])].concat();
        let text = ["n1", "n2"].into_iter().fold(text, |text, name| {
            let labelled = format!("metadata: {{name: {name}, labels: {{{excluded}}}}}");
            text.replace(&format!("metadata: {{name: {name}}}"), &labelled)
        });
        let source = Source { name: "made.yaml".into(), text };
        let cluster = Manifests::of(vec![source]).complete_if(true).cluster().unwrap();
        let verdict = Engine::new(&cluster).unwrap().verdict(&flow).unwrap();
        assert_eq!(verdict.mechanisms, [mechanism], "{selector}");
    }
}

/// An ingress-nginx with these arguments, an IngressClass for it, and an Ingress with these fields.
fn ingress(arguments: &str, fields: &str) -> String {
    format!(
        "---
apiVersion: v1
kind: Pod
metadata: {{name: nginx-1, namespace: ingress-nginx, labels: {{app: nginx}}}}
spec:
  nodeName: n1
  containers:
  - name: controller
    image: registry.k8s.io/ingress-nginx/controller:v1.12.0
    args: [/nginx-ingress-controller, {arguments}]
    ports: [{{name: http, containerPort: 80}}]
status: {{phase: Running, podIP: 10.1.1.9, conditions: [{{type: Ready, status: 'True'}}]}}
---
apiVersion: v1
kind: Service
metadata: {{name: nginx, namespace: ingress-nginx}}
spec:
  type: NodePort
  clusterIP: 172.16.0.20
  selector: {{app: nginx}}
  ports: [{{name: http, port: 80, targetPort: http, nodePort: 30090}}]
---
apiVersion: networking.k8s.io/v1
kind: IngressClass
metadata: {{name: public}}
spec: {{controller: k8s.io/ingress-nginx}}
---
apiVersion: v1
kind: Service
metadata: {{name: web, namespace: shop}}
spec: {{clusterIP: 172.16.0.10, selector: {{app: web}}, ports: [{{port: 80, targetPort: 8080}}]}}
---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {{name: web, namespace: shop}}
spec:
  {fields}
  rules:
  - host: shop.example.com
    http: {{paths: [{{path: /, pathType: Prefix, backend: {{service: {{name: web, port: {{number: 80}}}}}}}}]}}
"
    )
}

/// Releases differ in whether a class counts by its name or by its controller.
#[test]
fn a_class_that_fits_by_its_controller_only() {
    let of = |class: &str| {
        let text = ingress("--ingress.class=public", &format!("ingressClassName: {class}"))
            .replace(
                "registry.k8s.io/ingress-nginx/controller:v1.12.0",
                "haproxytech/kubernetes-ingress:3.2.13",
            )
            .replace("args: [/nginx-ingress-controller, ", "args: [")
            .replace("metadata: {name: public}", &format!("metadata: {{name: {class}}}"))
            .replace("k8s.io/ingress-nginx", "haproxy.org/ingress-controller/public");
        with_code(&findings(&text, &[IPTABLES]), Code::IngressIgnored)
    };
    let found = of("haproxy-public");
    let [(severity, subject, conditions, said)] = found.as_slice() else { panic!("{found:#?}") };
    assert_eq!((*severity, &**subject), (Severity::Warning, "Ingress shop/web"));
    assert_eq!(conditions, &["Pod ingress-nginx/nginx-1 goes by the names of classes"]);
    assert!(said.contains("class haproxy-public fits"), "{said}");
    assert_eq!(of("public"), []);
}

#[test]
fn an_ingress_of_nobody() {
    for (fields, begins) in
        [("", "it names no class"), ("ingressClassName: nginx", "its class is nginx")]
    {
        let found = findings(&ingress("--ingress-class=public", fields), &[IPTABLES]);
        let (severity, subject, conditions, said) = only(&found, Code::IngressIgnored);
        assert_eq!((severity, &*subject), (Severity::Error, "Ingress shop/web"));
        assert!(conditions.is_empty(), "{conditions:?}");
        assert!(said.contains(begins) && said.contains("serves class public only"), "{said}");
    }
    for (arguments, fields) in [
        ("--ingress-class=public", "ingressClassName: public"),
        ("--watch-ingress-without-class=true", ""),
    ] {
        let found = findings(&ingress(arguments, fields), &[IPTABLES]);
        assert_eq!(with_code(&found, Code::IngressIgnored), []);
    }
    // A controller that is not known may take Ingresses without a class.
    let other = "---
apiVersion: networking.k8s.io/v1
kind: IngressClass
metadata: {name: other}
spec: {controller: acme.example/ingress}
";
    let found = findings(&(ingress("--ingress-class=public", "") + other), &[IPTABLES]);
    assert_eq!(with_code(&found, Code::IngressIgnored), []);
    // Before 1.0, Ingresses without a class were those of the usual class.
    let old = ingress("--v=2", "").replace("controller:v1.12.0", "controller:v0.48.1");
    assert_eq!(with_code(&findings(&old, &[IPTABLES]), Code::IngressIgnored), []);
}

/// The controller that ignores an Ingress answers 404 for its host.
#[test]
fn a_trace_says_the_same_of_an_ingress_of_nobody() {
    let dns = "dns: {outside: {shop.example.com: 10.0.0.11}}";
    for (arguments, mechanisms) in [
        ("--ingress-class=public", vec![Mechanism::NoRuleForPath]),
        ("--watch-ingress-without-class=true", Vec::new()),
    ] {
        let cluster = cluster(&ingress(arguments, ""), &[IPTABLES, dns]);
        let flow = Flow {
            from: "outside".parse().unwrap(),
            to: "http://shop.example.com:30090/".parse().unwrap(),
            protocol: Protocol::Tcp,
        };
        let verdict = Engine::new(&cluster).unwrap().verdict(&flow).unwrap();
        assert_eq!(verdict.mechanisms, mechanisms, "{arguments}: {verdict:?}");
    }
}

/// An Application Load Balancer's Ingress that waits for its address, and a Service of this type.
fn alb(notes: &str, kind: &str) -> String {
    format!(
        "---
apiVersion: networking.k8s.io/v1
kind: IngressClass
metadata: {{name: alb}}
spec: {{controller: ingress.k8s.aws/alb}}
---
apiVersion: v1
kind: Service
metadata: {{name: web, namespace: shop}}
spec: {{type: {kind}, clusterIP: 172.16.0.10, selector: {{app: web}}, ports: [{{port: 80, targetPort: 8080}}]}}
---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {{name: web, namespace: shop, annotations: {{{notes}}}}}
spec:
  ingressClassName: alb
  rules:
  - host: shop.example.com
    http: {{paths: [{{path: /, pathType: Prefix, backend: {{service: {{name: web, port: {{number: 80}}}}}}}}]}}
status: {{loadBalancer: {{}}}}
"
    )
}

#[test]
fn an_alb_whose_targets_have_no_node_port_is_not_made() {
    let aws = "provider: aws";
    let stated = "alb.ingress.kubernetes.io/target-type: instance";
    let found = findings(&alb(stated, "ClusterIP"), &[IPTABLES, aws]);
    let (severity, subject, conditions, _) = only(&found, Code::NoTargets);
    assert_eq!((severity, &*subject), (Severity::Error, "Ingress shop/web"));
    assert!(conditions.is_empty(), "{conditions:?}");
    // Whether an argument makes pods the default is not given.
    let (severity, _, conditions, _) =
        only(&findings(&alb("", "ClusterIP"), &[IPTABLES, aws]), Code::NoTargets);
    assert_eq!((severity, conditions.len()), (Severity::Warning, 1));

    let ip = alb("alb.ingress.kubernetes.io/target-type: ip", "ClusterIP");
    let found = findings(&ip, &[IPTABLES, aws]);
    assert_eq!(with_code(&found, Code::NoTargets), []);
    assert_eq!(only(&found, Code::Pending).0, Severity::Warning);
}

#[test]
fn a_host_port_that_nothing_forwards() {
    let with = |chaining: &str| {
        let objects = format!(
            "---
apiVersion: v1
kind: ConfigMap
metadata: {{name: cilium-config, namespace: kube-system}}
data: {{kube-proxy-replacement: 'false', cni-chaining-mode: {chaining}, enable-host-port: 'true'}}
---
apiVersion: v1
kind: Pod
metadata: {{name: edge, namespace: shop}}
spec:
  nodeName: n1
  containers: [{{name: c, image: c, ports: [{{containerPort: 8080, hostPort: 80}}]}}]
status: {{phase: Running, podIP: 10.1.1.9, conditions: [{{type: Ready, status: 'True'}}]}}
---
apiVersion: uturn.dev/v1alpha1
kind: Facts
spec:
  network: {{plugin: cilium, podCIDRs: [10.1.0.0/16], vpcCIDRs: [10.0.0.0/16]}}
  kubeProxy: {{mode: iptables, version: v1.34.4}}
"
        );
        let source = Source { name: "made.yaml".into(), text: nodes_and_pods() + &objects };
        let cluster = Manifests::of(vec![source]).complete_if(true).cluster().unwrap();
        let engine = Engine::new(&cluster).unwrap();
        let scanner = Scanner::new(&engine);
        diagnose(&scanner, &scanner.scan(&scanner.targets()).unwrap()).unwrap()
    };
    let (severity, subject, _, said) = only(&with("none"), Code::HostPortOff);
    assert_eq!((severity, &*subject), (Severity::Error, "Pod shop/edge"));
    assert!(said.contains("port 80 of their nodes"), "{said}");
    assert_eq!(with_code(&with("portmap"), Code::HostPortOff), []);
    assert_eq!(with_code(&with("none"), Code::WrongPort), []);
}

/// A gateway of a mesh behind a Service, and a Gateway with this selector and port.
fn mesh(selector: &str, port: u16) -> String {
    format!(
        "---
apiVersion: v1
kind: Pod
metadata: {{name: edge-1, namespace: edge, labels: {{istio: edge}}}}
spec:
  nodeName: n1
  containers: [{{name: istio-proxy, image: docker.io/istio/proxyv2:1.24.0, args: [proxy, router]}}]
status: {{phase: Running, podIP: 10.1.1.9, conditions: [{{type: Ready, status: 'True'}}]}}
---
apiVersion: v1
kind: Service
metadata: {{name: edge, namespace: edge}}
spec:
  type: NodePort
  clusterIP: 172.16.0.20
  selector: {{istio: edge}}
  ports: [{{name: http, port: 80, targetPort: 8080, nodePort: 30090}}]
---
apiVersion: networking.istio.io/v1
kind: Gateway
metadata: {{name: shop, namespace: shop}}
spec:
  selector: {{istio: {selector}}}
  servers: [{{port: {{number: {port}, name: http, protocol: HTTP}}, hosts: [shop.example.com]}}]
"
    )
}

#[test]
fn a_gateway_of_a_mesh_that_opens_nothing() {
    for (selector, port, says) in [
        ("ingressgateway", 80, "gateway pod edge/edge-1 has istio: edge"),
        ("edge", 30_090, "port 30090, which is the node port of port 80"),
    ] {
        let found = findings(&mesh(selector, port), &[IPTABLES]);
        let (severity, subject, _, said) = only(&found, Code::GatewayOpensNothing);
        assert_eq!((severity, &*subject), (Severity::Error, "Gateway shop/shop"));
        assert!(said.contains(says), "{said}");
        // Calls of the Service are refused. Of a gateway that nobody uses, that is no error.
        let (severity, ..) = only(&found, Code::WrongPort);
        assert_eq!(severity == Severity::Info, selector != "edge");
    }
    // Ports that charts give every gateway, of which one is used.
    let one = "{name: http, port: 80, targetPort: 8080, nodePort: 30090}";
    let more = mesh("edge", 80)
        .replace(one, &format!("{one}, {{name: https, port: 443, targetPort: 8443}}"));
    let found = findings(&more, &[IPTABLES]);
    assert_eq!(only(&found, Code::WrongPort).0, Severity::Info);
    for port in [80, 8080] {
        let found = findings(&mesh("edge", port), &[IPTABLES]);
        assert_eq!(with_code(&found, Code::GatewayOpensNothing), []);
        assert_eq!(with_code(&found, Code::WrongPort), []);
    }
}

/// A load balancer probes each port of a gateway's Service, so it has no target for those that no
/// Gateway opens.
#[test]
fn a_balancer_without_a_target_for_a_port_that_no_gateway_opens() {
    let ports = "[{name: http, port: 80, targetPort: 8080, nodePort: 30090}]";
    let more = ports.replace(']', ", {name: https, port: 443, targetPort: 8443, nodePort: 30091}]");
    let whole = mesh("edge", 80).replace("type: NodePort", "type: LoadBalancer").replace(
        ports,
        &format!("{more}\nstatus: {{loadBalancer: {{ingress: [{{ip: 20.1.1.1}}]}}}}"),
    );
    let severities = |objects: &str| {
        let found = findings(objects, &[IPTABLES, "provider: azure"]);
        let own = with_code(&found, Code::NoCandidate);
        own.into_iter().map(|(severity, ..)| severity).collect::<Vec<_>>()
    };
    assert_eq!(severities(&whole), [Severity::Info]);
    // Its Gateway opens another port, which nothing leads to.
    let other = whole.replace("number: 80,", "number: 81,");
    assert_eq!(severities(&other), [Severity::Error]);
}

#[test]
fn a_port_at_which_an_official_image_does_not_listen() {
    let server = |image: &str, port: u16| {
        format!(
            "---
apiVersion: v1
kind: Pod
metadata: {{name: plain, namespace: plain, labels: {{app: plain}}}}
spec: {{nodeName: n1, containers: [{{name: c, image: \"{image}\"}}]}}
status: {{phase: Running, podIP: 10.1.1.9, conditions: [{{type: Ready, status: 'True'}}]}}
---
apiVersion: v1
kind: Service
metadata: {{name: plain, namespace: plain}}
spec: {{clusterIP: 172.16.0.20, selector: {{app: plain}}, ports: [{{port: {port}}}]}}
"
        )
    };
    let found = findings(&server("docker.io/library/nginx:1.27", 8099), &[IPTABLES]);
    let (severity, subject, conditions, said) = only(&found, Code::WrongPort);
    assert_eq!((severity, &*subject), (Severity::Warning, "Service plain/plain"));
    assert_eq!(conditions, ["nothing listens on 8099"]);
    assert!(said.contains("listens on 80 unless"), "{said}");
    for (image, port) in [("nginx:1.27", 80), ("registry.example/nginx:1", 8099)] {
        let found = findings(&server(image, port), &[IPTABLES]);
        assert_eq!(with_code(&found, Code::WrongPort), []);
    }
}

/// A Service of policy Local with its only endpoint on node n1, and these Facts of nodes.
fn local(nodes: &str, more: &str) -> Vec<Finding> {
    let service = balanced_service("172.16.0.10", "", "externalTrafficPolicy: Local", "")
        .replace("{app: web}", "{app: only}")
        .replace("type: LoadBalancer", "type: NodePort")
        .replace("port: 80,", "port: 80, targetPort: 8080,");
    let pod =
        RunningPod { name: "only", app: "only", address: "10.1.1.7", ..RunningPod::default() };
    let objects = [service, pod.to_string(), more.to_owned()].concat();
    findings(&objects, &[IPTABLES, nodes])
}

#[test]
fn a_kube_proxy_under_another_nodes_name() {
    let none = local("", "");
    assert_eq!(with_code(&none, Code::ProxyNamedOther), []);
    // The node without the pod drops calls, as policy Local asks for.
    let (_, _, _, said) = only(&none, Code::NoEndpoints);
    assert!(said.contains("externalTrafficPolicy is Local"), "{said}");
    assert!(said.contains("its endpoints are on node n1"), "{said}");

    let stated = local("nodes: {n1: {kubeProxyName: n2}}", "");
    let (severity, subject, _, said) = only(&stated, Code::ProxyNamedOther);
    assert_eq!((severity, &*subject), (Severity::Error, "Node n1"));
    assert!(said.contains("takes itself for the one of n2"), "{said}");
    let lacks = with_code(&stated, Code::NoEndpoints);
    let says = |(_, _, _, said): &(_, _, _, String)| {
        said.starts_with("kube-proxy on n1 takes itself for that of n2")
    };
    assert!(lacks.iter().any(says), "{lacks:#?}");

    // No policy needs the name of the other node.
    let (severity, ..) =
        only(&local("nodes: {n2: {kubeProxyName: n1}}", ""), Code::ProxyNamedOther);
    assert_eq!(severity, Severity::Info);
}

#[test]
fn the_configmap_that_names_every_kube_proxy_alike_is_at_fault() {
    let with = |command: &str, name: &str| {
        let objects = format!(
            "---
apiVersion: v1
kind: ConfigMap
metadata: {{name: kube-proxy, namespace: kube-system}}
data:
  config.conf: |
    apiVersion: kubeproxy.config.k8s.io/v1alpha1
    kind: KubeProxyConfiguration
    hostnameOverride: \"{name}\"
---
apiVersion: apps/v1
kind: DaemonSet
metadata: {{name: kube-proxy, namespace: kube-system}}
spec:
  selector: {{matchLabels: {{k8s-app: kube-proxy}}}}
  template:
    metadata: {{labels: {{k8s-app: kube-proxy}}}}
    spec:
      hostNetwork: true
      containers: [{{name: kube-proxy, image: 'kube-proxy:v1.34.4', command: [{command}]}}]
"
        );
        local("", &objects)
    };
    let file = "kube-proxy, --config=/var/lib/kube-proxy/config.conf";
    let (severity, subject, _, said) = only(&with(file, "n2"), Code::ProxyNamedOther);
    assert_eq!((severity, &*subject), (Severity::Error, "ConfigMap kube-system/kube-proxy"));
    assert!(said.contains("hostnameOverride is n2"), "{said}");
    let flag = format!("{file}, --hostname-override=$(NODE_NAME)");
    for found in [with(&flag, "n2"), with(file, "")] {
        assert_eq!(with_code(&found, Code::ProxyNamedOther), []);
    }
    let flag = format!("{file}, --hostname-override=n2");
    let (_, subject, _, _) = only(&with(&flag, ""), Code::ProxyNamedOther);
    assert_eq!(subject, "DaemonSet kube-system/kube-proxy");
}

/// What the arguments of one node's own kube-proxy name says nothing about other nodes'.
#[test]
fn the_name_of_one_pod_of_kube_proxy_is_its_own() {
    let pod = "---
apiVersion: v1
kind: Pod
metadata: {name: kube-proxy-n2, namespace: kube-system, labels: {k8s-app: kube-proxy}}
spec:
  nodeName: n2
  hostNetwork: true
  containers: [{name: kube-proxy, image: 'kube-proxy:v1.34.4', command: [kube-proxy, --hostname-override=n2]}]
status: {phase: Running, conditions: [{type: Ready, status: 'True'}]}
";
    assert_eq!(with_code(&local("", pod), Code::ProxyNamedOther), []);
}

#[test]
fn the_filter_of_kube_proxy_is_no_firewall() {
    let of = |version: &str| {
        let service = balanced_service("172.16.0.10", "", "externalTrafficPolicy: Local", "")
            .replace("nodePort: 30080", "nodePort: 30080, targetPort: 8080")
            .replace("  ports:", "  externalIPs: [10.0.9.16]\n  ports:");
        let proxy = format!("kubeProxy: {{mode: ipvs, version: {version}}}");
        let found = findings(&service, &[&proxy]);
        assert_eq!(with_code(&found, Code::NodeFirewall), []);
        with_code(&found, Code::ProxyFilter)
    };
    let found = of("v1.27.5");
    let [(_, subject, ..)] = found.as_slice() else { panic!("{found:#?}") };
    assert_eq!(subject, "Service shop/web");
    for version in ["v1.25.3", "v1.28.6", "v1.34.4"] {
        assert_eq!(of(version), [], "{version}");
    }
}

/// The findings about health checks of a Service behind a Network Load Balancer, with these annotations,
/// `ports` and fields of `spec`.
fn nlb(notes: &str, spec: &str, ports: &str) -> Vec<(Severity, String, Vec<String>, String)> {
    with_code(&findings(&nlb_service(notes, spec, ports), NLB_FACTS), Code::CheckCannotPass)
}

const NLB_FACTS: &[&str] =
    &[IPTABLES, "provider: aws", "dns: {outside: {front.elb.us-east-1.amazonaws.com: 10.0.9.9}}"];

fn nlb_service(notes: &str, spec: &str, ports: &str) -> String {
    let prefix = "service.beta.kubernetes.io/aws-load-balancer";
    let notes = format!("{prefix}-type: external, {notes}").replace("NLB", prefix);
    let name = "{hostname: front.elb.us-east-1.amazonaws.com}";
    balanced_service("172.16.0.10", &notes, spec, name)
        .replace("[{port: 80, nodePort: 30080}]", ports)
}

#[test]
fn a_check_by_tcp_of_a_port_that_takes_datagrams() {
    let udp = "{name: udp, port: 53, targetPort: 8080, nodePort: 30053, protocol: UDP}";
    let tcp = "{name: tcp, port: 53, targetPort: 8080, nodePort: 30053, protocol: TCP}";
    let nodes = "NLB-nlb-target-type: instance";
    let found = nlb(nodes, "", &format!("[{udp}]"));
    let [(severity, _, conditions, said)] = found.as_slice() else { panic!("{found:#?}") };
    assert_eq!((*severity, conditions.len()), (Severity::Warning, 0));
    assert!(said.contains("ask by TCP at port 30053"), "{said}");
    // The program may listen in both ways.
    let pods = "NLB-nlb-target-type: ip";
    let found = nlb(pods, "", &format!("[{udp}]"));
    let [(_, _, conditions, _)] = found.as_slice() else { panic!("{found:#?}") };
    assert_eq!(conditions, &["its pods do not listen by TCP at 8080"]);
    for (notes, spec, ports) in [
        (nodes, "", format!("[{udp}, {tcp}]")),
        (pods, "", format!("[{udp}, {tcp}]")),
        (nodes, "externalTrafficPolicy: Local", format!("[{udp}]")),
        ("NLB-nlb-target-type: instance, NLB-healthcheck-port: '10256'", "", format!("[{udp}]")),
    ] {
        assert_eq!(nlb(notes, spec, &ports), [], "{notes} {spec} {ports}");
    }
}

#[test]
fn a_check_by_http_after_a_header_at_a_port_beside() {
    let ports = "[{port: 80, targetPort: 8080, nodePort: 30080}]";
    let header = "NLB-nlb-target-type: ip, NLB-proxy-protocol: '*'";
    let http = format!("{header}, NLB-healthcheck-protocol: http");
    let found = nlb(&format!("{http}, NLB-healthcheck-port: '10254'"), "", ports);
    let [(_, _, conditions, _)] = found.as_slice() else { panic!("{found:#?}") };
    assert_eq!(conditions, &["what listens at port 10254 reads no PROXY header"]);
    // A name stands for the port that containers give it, or for one that is not given.
    let named = |name: &str| format!("[{{port: 80, targetPort: {name}, nodePort: 30080}}]");
    let of_name = |name: &str, asked: u16| {
        let notes = format!("{http}, NLB-healthcheck-port: '{asked}'");
        let service = nlb_service(&notes, "", &named(name));
        let deployed = with_named_pods(&service);
        with_code(&deployed, Code::CheckCannotPass).len()
    };
    assert_eq!((of_name("http", 10254), of_name("http", 8080), of_name("web", 10254)), (1, 0, 0));
    for notes in [
        format!("{http}, NLB-healthcheck-port: traffic-port"),
        format!("{header}, NLB-healthcheck-protocol: tcp, NLB-healthcheck-port: '10254'"),
        http,
    ] {
        assert_eq!(nlb(&notes, "", ports), [], "{notes}");
    }
}

/// The findings of a cluster whose only pod has the port 8080 by the name `http`.
fn with_named_pods(service: &str) -> Vec<Finding> {
    let pod = RunningPod {
        name: "web-1",
        app: "web",
        node: 1,
        address: "10.1.1.2",
        ports: "{containerPort: 8080, name: http}",
        ..RunningPod::default()
    };
    let text = [node(1), pod.to_string(), service.to_owned(), facts(NLB_FACTS)].concat();
    let source = Source { name: "made.yaml".into(), text };
    let cluster = Manifests::of(vec![source]).complete_if(true).cluster().unwrap();
    let engine = Engine::new(&cluster).unwrap();
    let scanner = Scanner::new(&engine);
    diagnose(&scanner, &scanner.scan(&scanner.targets()).unwrap()).unwrap()
}

/// Scan, the checklist and the walk of health checks say the same.
#[test]
fn checks_that_cannot_pass_are_said_not_to_pass_everywhere() {
    let udp = "[{port: 53, targetPort: 8080, nodePort: 30053, protocol: UDP}]";
    let asked = |notes: &str| {
        let cluster = cluster(&nlb_service(notes, "", udp), NLB_FACTS);
        let engine = Engine::new(&cluster).unwrap();
        let at = "10.0.9.9:53".parse().unwrap();
        let health = engine.health(at, Protocol::Udp).unwrap().unwrap();
        let lists = check(&engine, Topic::Service, |name| name.name.as_str() == "web");
        let mut checks = lists.into_iter().flat_map(|list| list.checks);
        let state = checks.find(|check| check.what.starts_with("health checks")).unwrap().state;
        (health.iter().filter(|target| target.alive).count(), state)
    };
    assert_eq!(asked("NLB-nlb-target-type: instance"), (0, State::Failed));
    // Whether pods listen by TCP is not known.
    assert_eq!(asked("NLB-nlb-target-type: ip"), (2, State::Unknown));
    let elsewhere = "NLB-nlb-target-type: instance, NLB-healthcheck-port: '10256'";
    assert_eq!(asked(elsewhere), (2, State::Ok));
}

/// A Service behind an Ingress of Google's controller, which reports these states of its backends.
fn reported(states: &str) -> String {
    format!(
        "---
apiVersion: v1
kind: Service
metadata: {{name: web, namespace: shop}}
spec: {{type: NodePort, clusterIP: 172.16.0.10, selector: {{app: web}}, ports: [{{port: 80, targetPort: 8080, nodePort: 30080}}]}}
---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata:
  name: web
  namespace: shop
  annotations: {{kubernetes.io/ingress.class: gce, ingress.kubernetes.io/backends: '{states}'}}
spec: {{defaultBackend: {{service: {{name: web, port: {{number: 80}}}}}}}}
status: {{loadBalancer: {{ingress: [{{ip: 203.0.113.9}}]}}}}
"
    )
}

#[test]
fn a_backend_that_the_controller_reports_as_unhealthy() {
    let with = |states: &str| {
        let found = findings(&reported(states), &[IPTABLES, "provider: gcp"]);
        with_code(&found, Code::CheckCannotPass)
    };
    let found = with(r#"{"k8s-be-30080--a":"UNHEALTHY"}"#);
    let [(severity, subject, _, said)] = found.as_slice() else { panic!("{found:#?}") };
    assert_eq!((*severity, &**subject), (Severity::Error, "Ingress shop/web"));
    assert!(said.contains("k8s-be-30080--a"), "{said}");
    let found = with(r#"{"k8s-be-30080--a":"UNHEALTHY","k8s-be-30081--a":"HEALTHY"}"#);
    assert_eq!(found[0].0, Severity::Warning);
    assert_eq!(with(r#"{"k8s-be-30080--a":"HEALTHY"}"#), []);
}

#[test]
fn a_service_of_one_family_on_nodes_of_both() {
    let with = |addresses: &str, ips: &str| {
        let text =
            [nodes_and_pods(), balanced_service("172.16.0.10", "", ips, ""), facts(&[IPTABLES])]
                .concat()
                .replace("type: LoadBalancer", "type: NodePort")
                .replace("port: 80,", "port: 80, targetPort: 8080,");
        let text = ["10.0.0.11", "10.0.0.12"].into_iter().fold(text, |text, ip| {
            let of_node = format!("{{type: InternalIP, address: {ip}}}");
            let number = &ip[ip.len() - 2..];
            let more = addresses.replace("NUMBER", number);
            text.replace(&of_node, &format!("{of_node}{more}"))
        });
        let text = ["10.1.1.2", "10.1.2.2"].into_iter().fold(text, |text, ip| {
            let v6 = format!("fd00:1::{}", &ip[5..6]);
            text.replace(&format!("{{ip: {ip}}}"), &format!("{{ip: {ip}}}, {{ip: '{v6}'}}"))
        });
        let source = Source { name: "made.yaml".into(), text };
        let cluster = Manifests::of(vec![source]).complete_if(true).cluster().unwrap();
        let engine = Engine::new(&cluster).unwrap();
        let scanner = Scanner::new(&engine);
        let found = diagnose(&scanner, &scanner.scan(&scanner.targets()).unwrap()).unwrap();
        with_code(&found, Code::OneFamily)
    };
    let both = ", {type: InternalIP, address: 'fd00::NUMBER'}";
    let found = with(both, "");
    let [(severity, subject, ..)] = found.as_slice() else { panic!("{found:#?}") };
    assert_eq!((*severity, &**subject), (Severity::Info, "Service shop/web"));
    assert_eq!(with("", ""), []);
    let dual = "clusterIPs: [172.16.0.10, 'fd00:2::10']\n  ipFamilies: [IPv4, IPv6]";
    assert_eq!(with(both, dual), []);
}
