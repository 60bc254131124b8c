//! A fault has one code and the same cures whatever it is asked by: the finding, the Service, the
//! Ingress, or the URL that people call.

use uturn_diagnose::analysis::{Options, case_of, cures_of_finding};
use uturn_diagnose::cure::{self, Case, Cure, TrialBase};
use uturn_diagnose::doubts;
use uturn_diagnose::flow_codes::FlowCodes;
use uturn_scan::FewCalls;

use super::*;

/// What a flow shows, by a trace and by cures.
#[derive(Debug)]
struct Asked {
    codes: Vec<Code>,
    because: String,
    /// The titles of the cures that are offered.
    cures: Vec<String>,
}

fn asked(objects: &str, from: &str, to: &str) -> Asked {
    let text = [nodes_and_pods(), objects.to_owned(), facts(&[IPTABLES, NAMES])].concat();
    let manifests = Manifests::of(vec![Source { name: "made.yaml".into(), text }]);
    let manifests = manifests.complete_if(true);
    let cluster = manifests.cluster().unwrap();
    let engine = Engine::new(&cluster).unwrap();
    let flow = flow(from, to);
    let verdicts = engine.cases(&flow).unwrap();
    let codes = FlowCodes::new(&engine, &flow);
    let because = verdicts.iter().find_map(|verdict| codes.because(verdict));
    let case = Case::flow(&manifests, &FewCalls::new(&engine), flow.clone()).unwrap();
    let traced = codes.of(&verdicts);
    assert_eq!(case.codes().into_iter().collect::<Vec<_>>(), traced);
    let cures = cure::cures(&TrialBase::new(&manifests, &engine), &case);
    let offered = cures.into_iter().filter(|cure| cure.is_offered()).map(|cure| cure.title);
    Asked {
        codes: traced,
        because: because.unwrap_or_default().to_string(),
        cures: offered.collect(),
    }
}

fn flow(from: &str, to: &str) -> Flow {
    Flow { from: from.parse().unwrap(), to: to.parse().unwrap(), protocol: Protocol::Tcp }
}

/// Leads the host of [`ingress`] to a node.
const NAMES: &str = "dns: {outside: {shop.example.com: 10.0.0.11}}";

/// The URL of the Ingress of [`ingress`], at a node's port of its controller.
const URL: &str = "http://shop.example.com:30090/";

#[test]
fn why_a_service_has_no_endpoints_is_said_by_its_address_and_url_too() {
    let service = "---
apiVersion: v1
kind: Service
metadata: {name: front, namespace: shop}
spec:
  type: NodePort
  clusterIP: 172.16.0.20
  selector: {app: wep}
  ports: [{port: 80, targetPort: 8080, nodePort: 30070}]
";
    for to in
        ["svc/shop/front:80", "172.16.0.20:80", "http://172.16.0.20/", "http://10.0.0.11:30070/"]
    {
        let asked = asked(service, "node/n2", to);
        assert_eq!(asked.codes, [Code::NoEndpoints], "{to}");
        assert!(asked.because.contains("its selector app=wep"), "{to}: {}", asked.because);
        assert!(asked.cures.iter().any(|cure| cure.contains("app=web")), "{to}: {asked:?}");
    }
}

#[test]
fn a_port_name_that_no_pod_has_is_named_by_url_too() {
    let service = "---
apiVersion: v1
kind: Service
metadata: {name: front, namespace: shop}
spec:
  clusterIP: 172.16.0.20
  selector: {app: web}
  ports: [{port: 80, targetPort: web}]
";
    for to in ["svc/shop/front:80", "http://172.16.0.20/"] {
        let asked = asked(service, "pod/shop/web-1", to);
        assert_eq!(asked.codes, [Code::NamedPortMissing], "{to}");
        assert!(asked.because.contains("targetPort \"web\" is not a port"), "{to}: {asked:?}");
        assert!(!asked.cures.is_empty(), "{to}");
    }
}

#[test]
fn an_ingress_that_nothing_serves_is_named_by_the_url_of_its_host() {
    let text = ingress("--ingress-class=public", "ingressClassName: nginx");
    let asked = asked(&text, "outside/10.0.0.99", URL);
    assert_eq!(asked.codes, [Code::IngressIgnored]);
    assert!(asked.because.contains("no controller serves Ingress shop/web"), "{asked:?}");
    assert_eq!(asked.cures, ["ingressClassName public for ingress/shop/web"]);
}

#[test]
fn a_backend_that_is_missing_is_named_by_the_url_of_its_host() {
    let served = ingress("--ingress-class=public", "ingressClassName: public");
    let port = "backend: {service: {name: web, port: {number: 80}}}";
    let text = served.replace(port, "backend: {service: {name: web, port: {number: 8080}}}");
    let asked = asked(&text, "outside/10.0.0.99", URL);
    assert_eq!(asked.codes, [Code::BackendMissing]);
    assert!(asked.because.contains("has no port 8080"), "{asked:?}");
    let title = "port 80 of svc/shop/web instead of 8080, which it does not have";
    assert_eq!(asked.cures, [title]);
}

#[test]
fn the_backend_behind_a_controller_has_its_own_reason() {
    let served = ingress("--ingress-class=public", "ingressClassName: public");
    let text = served.replace("selector: {app: web}", "selector: {app: wep}");
    let asked = asked(&text, "outside/10.0.0.99", URL);
    assert_eq!(asked.codes, [Code::NoEndpoints]);
    assert!(asked.because.contains("its selector app=wep"), "{asked:?}");
    assert!(asked.because.contains("Service shop/web"), "{asked:?}");
    assert!(asked.cures.iter().any(|cure| cure.contains("app=web")), "{asked:?}");
}

/// What a scan warns of about what a flow calls: the code, the condition and the first cure.
fn doubts(objects: &str, from: &str, to: &str) -> Vec<(Code, String, String)> {
    doubts_on(&[IPTABLES, NAMES], objects, from, to)
}

fn doubts_on(fields: &[&str], objects: &str, from: &str, to: &str) -> Vec<(Code, String, String)> {
    doubts_in([nodes_and_pods(), objects.to_owned(), facts(fields)].concat(), from, to)
}

fn doubts_in(text: String, from: &str, to: &str) -> Vec<(Code, String, String)> {
    let manifests = Manifests::of(vec![Source { name: "made.yaml".into(), text }]);
    let cluster = manifests.cluster().unwrap();
    let engine = Engine::new(&cluster).unwrap();
    let flow = flow(from, to);
    let verdicts = engine.cases(&flow).unwrap();
    let found = doubts::of_flow(&engine, &flow, &verdicts);
    let each = found.iter().map(|finding| {
        let cures = cures_of_finding(&manifests, &engine, finding).unwrap();
        let first = cures.first().map(|cure| cure.text.clone()).unwrap_or_default();
        (finding.code, finding.conditions.join(" and "), first)
    });
    each.collect()
}

#[test]
fn a_trace_says_under_which_condition_nobody_announces_the_address() {
    let given = balanced_service("172.16.0.10", "", "", "{ip: 10.0.9.9}")
        .replace("port: 80,", "port: 80, targetPort: 8080,");
    let objects = pool(false) + &given;
    let found = doubts(&objects, "outside", "10.0.9.9:80");
    let [(Code::NoTargets, condition, cure)] = found.as_slice() else { panic!("{found:?}") };
    assert!(!condition.is_empty());
    assert_eq!(cure, "an L2Advertisement for pool first");
    // Nodes serve their own pods whatever is announced.
    assert_eq!(doubts(&objects, "pod/shop/web-1", "10.0.9.9:80"), []);
    assert_eq!(doubts(&(pool(true) + &given), "outside", "10.0.9.9:80"), []);
}

#[test]
fn a_trace_says_that_the_image_listens_elsewhere() {
    let service = "---
apiVersion: v1
kind: Service
metadata: {name: plain, namespace: plain}
spec:
  type: NodePort
  clusterIP: 172.16.0.20
  selector: {app: plain}
  ports: [{name: a, port: 8099, nodePort: 30070}, {name: b, port: 80, nodePort: 30071}]
";
    let objects = &*[POD_OF_NGINX, service].concat();
    let condition = "nothing listens on 8099".to_owned();
    let cure = "targetPort 80 instead of 8099 for svc/plain/plain port 8099".to_owned();
    for to in ["svc/plain/plain:8099", "http://10.0.0.11:30070/"] {
        let found = doubts(objects, "node/n2", to);
        assert_eq!(found, [(Code::WrongPort, condition.clone(), cure.clone())], "{to}");
    }
    assert_eq!(doubts(objects, "node/n2", "svc/plain/plain:80"), []);
}

#[test]
fn a_trace_says_why_a_host_has_no_address() {
    let served = "alb.ingress.kubernetes.io/target-type: instance";
    let objects =
        alb(served, "ClusterIP").replace("host: shop.example.com", "host: '*.example.net'");
    let fields = [IPTABLES, "provider: aws"];
    for host in ["http://www.example.net/", "https://www.example.net/"] {
        let found = doubts_on(&fields, &objects, "outside", host);
        let [(Code::NoTargets, condition, _)] = found.as_slice() else { panic!("{found:?}") };
        assert_eq!(condition, "");
    }
    assert_eq!(doubts_on(&fields, &objects, "outside", "http://www.example.org/"), []);
}

#[test]
fn a_trace_says_that_an_address_is_asked_for_and_not_given() {
    let asking = balanced_service("172.16.0.10", "", "loadBalancerIP: 10.0.9.7", "")
        .replace("port: 80,", "port: 80, targetPort: 8080,");
    // Whether another machine has the address is known where the ranges of the network are stated.
    let text = [nodes_and_pods(), asking.clone(), facts(&[IPTABLES])].concat();
    let text = text.replace("vpcCIDRs: [10.0.0.0/16], ", "");
    for to in ["10.0.9.7:80", "http://10.0.9.7/"] {
        let found = doubts_in(text.clone(), "outside", to);
        let [(Code::Pending, _, cure)] = found.as_slice() else { panic!("{to}: {found:?}") };
        assert!(cure.starts_with("call node port 30080"), "{cure}");
    }
    assert_eq!(doubts(&asking, "outside", "10.0.0.11:30080"), []);
    assert_eq!(doubts(&asking, "pod/shop/web-1", "svc/shop/web:80"), []);
}

/// The titles of the cures that are offered for the only finding with a code, and the changed lines
/// of the first.
fn cured(text: String, code: Code) -> (Vec<String>, Vec<String>) {
    let manifests = Manifests::of(vec![Source { name: "made.yaml".into(), text }]);
    let manifests = manifests.complete_if(true);
    let cluster = manifests.cluster().unwrap();
    let analysis = uturn_diagnose::analyze(&manifests, &cluster, &Options::default()).unwrap();
    let mut own = analysis.findings.iter().filter(|own| own.code == code);
    let finding = own.next().unwrap_or_else(|| panic!("{:#?}", analysis.findings));
    assert!(own.next().is_none(), "{:#?}", analysis.findings);
    let engine = Engine::new(&cluster).unwrap();
    let case = case_of(&manifests, &FewCalls::new(&engine), finding).unwrap().unwrap();
    let cures = cure::cures(&TrialBase::new(&manifests, &engine), &case);
    let offered: Vec<&Cure> = cures.iter().filter(|cure| cure.is_offered()).collect();
    let titles: Vec<String> = offered.iter().map(|cure| cure.title.clone()).collect();
    let shown: Vec<&str> = finding.cures.iter().map(|cure| &*cure.text).collect();
    assert_eq!(shown, titles, "a scan names the same");
    let lines = offered.first().into_iter().flat_map(|cure| &cure.diffs);
    let lines = lines.flat_map(|diff| diff.lines().skip(2));
    let lines = lines.filter(|line| line.starts_with(['+', '-']));
    (titles, lines.map(|line| line.replace("  ", "")).collect())
}

#[test]
fn a_service_gets_addresses_of_both_families() {
    let both = |of: &str, v4: &str, v6: &str| format!("{{{of}: {v4}}}, {{{of}: '{v6}'}}");
    let objects = |spec: &str| {
        let node = "---
apiVersion: v1
kind: Node
metadata: {name: n1}
spec: {podCIDRs: [10.1.1.0/24, 'fd00:1::/64']}
status: {addresses: [{type: InternalIP, address: 10.0.0.11}, {type: InternalIP, address: 'fd00::11'}]}
";
        let pod = format!(
            "---
apiVersion: v1
kind: Pod
metadata: {{name: web-1, namespace: shop, labels: {{app: web}}}}
spec: {{nodeName: n1, containers: [{{name: c, image: c, ports: [{{containerPort: 8080}}]}}]}}
status:
  phase: Running
  podIP: 10.1.1.2
  podIPs: [{}]
  conditions: [{{type: Ready, status: 'True'}}]
",
            both("ip", "10.1.1.2", "fd00:1::2")
        );
        let service = format!(
            "---
apiVersion: v1
kind: Service
metadata: {{name: web, namespace: shop}}
spec:
  type: NodePort
  {spec}
  selector: {{app: web}}
  ports: [{{port: 80, targetPort: 8080, nodePort: 30080}}]
"
        );
        [node.to_owned(), pod, service, facts(&[IPTABLES])].concat()
    };
    let (titles, lines) = cured(objects("clusterIP: 172.16.0.10"), Code::OneFamily);
    assert_eq!(titles, ["ipFamilyPolicy: PreferDualStack for svc/shop/web"]);
    assert_eq!(lines, ["+ipFamilyPolicy: PreferDualStack"]);
    let single = "clusterIP: 172.16.0.10\n  ipFamilyPolicy: SingleStack";
    let (_, lines) = cured(objects(single), Code::OneFamily);
    assert_eq!(lines, ["-ipFamilyPolicy: SingleStack", "+ipFamilyPolicy: PreferDualStack"]);
}

/// Where the class counts by its name, it gets the name that the controller serves.
#[test]
fn an_ingress_that_may_be_ignored_gets_the_class_by_name() {
    let text = ingress("--ingress.class=public", "ingressClassName: haproxy-public")
        .replace(
            "registry.k8s.io/ingress-nginx/controller:v1.12.0",
            "haproxytech/kubernetes-ingress:3.2.13",
        )
        .replace("args: [/nginx-ingress-controller, ", "args: [")
        .replace("metadata: {name: public}", "metadata: {name: haproxy-public}")
        .replace("k8s.io/ingress-nginx", "haproxy.org/ingress-controller/public");
    let text = [nodes_and_pods(), text, facts(&[IPTABLES])].concat();
    let (titles, lines) = cured(text, Code::IngressIgnored);
    let title = "ingressClassName public for ingress/shop/web, and an IngressClass of this name";
    assert_eq!(titles, [title]);
    assert!(lines.contains(&"+kind: IngressClass".to_owned()), "{lines:?}");
}

#[test]
fn a_kube_proxy_gets_the_name_of_its_node_by_the_finding_too() {
    let objects = "---
apiVersion: v1
kind: Service
metadata: {name: web, namespace: shop}
spec:
  type: NodePort
  clusterIP: 172.16.0.10
  externalTrafficPolicy: Local
  selector: {app: web}
  ports: [{port: 80, targetPort: 8080, nodePort: 30080}]
---
apiVersion: v1
kind: ConfigMap
metadata: {name: kube-proxy, namespace: kube-system}
data:
  config.conf: |
    kind: KubeProxyConfiguration
    hostnameOverride: n2
---
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: kube-proxy, namespace: kube-system}
spec:
  selector: {matchLabels: {k8s-app: kube-proxy}}
  template:
    metadata: {labels: {k8s-app: kube-proxy}}
    spec:
      hostNetwork: true
      containers:
      - name: kube-proxy
        image: kube-proxy:v1.34.4
        command: [kube-proxy, --config=/var/lib/kube-proxy/config.conf]
";
    let text = [nodes_and_pods(), objects.to_owned(), facts(&[IPTABLES])].concat();
    let (titles, lines) = cured(text, Code::ProxyNamedOther);
    let begins =
        ["--hostname-override=$(NODE_NAME) in DaemonSet", "no hostnameOverride in ConfigMap"];
    for (title, begin) in titles.iter().zip(begins) {
        assert!(title.starts_with(begin), "{titles:?}");
    }
    assert!(lines.concat().contains("--hostname-override=$(NODE_NAME)"), "{lines:?}");
}
