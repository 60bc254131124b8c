//! Cures of findings that objects show without a walk: each is offered as the fault is gone from the
//! edited cluster, and changes what the finding names.

use uturn_diagnose::analysis::case_of;
use uturn_diagnose::cure::{self, Cure, TrialBase};
use uturn_scan::FewCalls;

use super::*;

/// Returns the cures of the only finding with a code.
fn cures_of(objects: &str, fields: &[&str], code: Code) -> Vec<Cure> {
    let text = [nodes_and_pods(), objects.to_owned(), facts(fields)].concat();
    cures_in(text, code)
}

pub(super) fn cures_in(text: String, code: Code) -> Vec<Cure> {
    all_of(text, code, true)
}

/// Returns the cures of the only finding with a code, which a walk need not give.
pub(super) fn tried(text: String, code: Code) -> Vec<Cure> {
    all_of(text, code, false)
}

fn all_of(text: String, code: Code, is_walked: bool) -> Vec<Cure> {
    let source = Source { name: "made.yaml".into(), text };
    let manifests = Manifests::of(vec![source]).complete_if(true);
    let cluster = manifests.cluster().unwrap();
    let engine = Engine::new(&cluster).unwrap();
    let scanner = Scanner::new(&engine);
    let found = diagnose(&scanner, &scanner.scan(&scanner.targets()).unwrap()).unwrap();
    let mut own = found.iter().filter(|finding| finding.code == code);
    let finding = own.next().unwrap_or_else(|| panic!("no {code}: {found:#?}"));
    assert!(own.next().is_none(), "{code}: {found:#?}");
    let case = case_of(&manifests, &FewCalls::new(&engine), finding).unwrap().unwrap();
    assert!(!is_walked || case.codes().contains(&code), "{:?}", case.codes());
    assert!(!case.before.is_fine());
    cure::cures(&TrialBase::new(&manifests, &engine), &case)
}

/// Returns the titles of what is offered.
pub(super) fn offered(cures: &[Cure]) -> Vec<&str> {
    cures.iter().filter(|cure| cure.is_offered()).map(|cure| &*cure.title).collect()
}

/// Returns the changed lines of the first cure with a name.
pub(super) fn changes(cures: &[Cure], name: &str) -> Vec<String> {
    let cure = cures.iter().find(|cure| cure.is_offered() && cure.name == name);
    let cure = cure.unwrap_or_else(|| panic!("{name} is not offered: {cures:#?}"));
    assert!(cure.after.as_ref().unwrap().is_fine(), "{name}");
    let lines = cure.diffs.iter().flat_map(|diff| diff.lines().skip(2));
    let lines = lines.filter(|line| line.starts_with(['+', '-']));
    lines.map(|line| line.replace("  ", "")).collect()
}

#[test]
fn an_ingress_gets_the_class_that_is_served() {
    let text = ingress("--ingress-class=public", "ingressClassName: nginx");
    let cures = cures_of(&text, &[IPTABLES], Code::IngressIgnored);
    assert_eq!(offered(&cures), ["ingressClassName public for ingress/shop/web"]);
    assert_eq!(
        changes(&cures, "ingress-class"),
        ["-ingressClassName: nginx", "+ingressClassName: public"]
    );

    // The old annotation makes way for the field.
    let old = "annotations: {kubernetes.io/ingress.class: nginx, a: b}}";
    let text = ingress("--ingress-class=public", "").replace(
        "kind: Ingress\nmetadata: {name: web, namespace: shop}",
        &format!("kind: Ingress\nmetadata: {{name: web, namespace: shop, {old}"),
    );
    let cures = cures_of(&text, &[IPTABLES], Code::IngressIgnored);
    let changed = changes(&cures, "ingress-class").concat();
    assert!(changed.contains("annotations: {a: b}"), "{changed}");
    assert!(changed.contains("+ingressClassName: public"), "{changed}");

    let text = ingress("--ingress-class=public", "");
    let cures = cures_of(&text, &[IPTABLES], Code::IngressIgnored);
    let titles = [
        "ingressClassName public for ingress/shop/web",
        "IngressClass public is the default one",
        "--watch-ingress-without-class=true for Pod ingress-nginx/nginx-1",
    ];
    assert_eq!(offered(&cures), titles);
}

#[test]
fn a_waiting_service_is_called_at_a_node() {
    let waiting = balanced_service("172.16.0.10", "", "", "");
    let cures = cures_of(&waiting, &[IPTABLES], Code::Pending);
    assert_eq!(
        offered(&cures),
        [
            "call node port 30080 of any node, as 10.0.0.11:30080, for port 80",
            "type NodePort for svc/shop/web"
        ]
    );
    // Nothing answers there: that is no way.
    let closed = waiting.replace("selector: {app: web}", "selector: {app: other}");
    let cures = cures_of(&closed, &[IPTABLES], Code::Pending);
    assert_eq!(offered(&cures), ["type NodePort for svc/shop/web"]);
}

#[test]
fn a_service_gets_an_address_that_is_there() {
    let asking = balanced_service("172.16.0.10", "", "loadBalancerIP: 10.0.9.7", "");
    let cures = cures_of(&(pool(true) + &asking), &[IPTABLES], Code::Pending);
    assert!(offered(&cures).contains(&"no loadBalancerIP for svc/shop/web"), "{cures:#?}");
}

#[test]
fn a_pool_gets_what_announces_it() {
    let given = balanced_service("172.16.0.10", "", "", "{ip: 10.0.9.9}");
    let cures = cures_of(&(pool(false) + &given), &[IPTABLES], Code::NoTargets);
    assert_eq!(offered(&cures)[0], "an L2Advertisement for pool first");
    let changed = changes(&cures, "announce");
    assert!(changed.contains(&"+kind: L2Advertisement".to_owned()), "{changed:?}");
}

#[test]
fn an_address_of_a_node_is_left_to_it() {
    let external = balanced_service("172.16.0.10", "", "externalIPs: [10.0.0.11, 10.0.7.7]", "");
    let external =
        external.replace("type: LoadBalancer", "type: ClusterIP").replace("nodePort: 30080", "");
    let cures = cures_of(&external, &[IPVS], Code::AddressTaken);
    assert_eq!(offered(&cures), ["no 10.0.0.11 in externalIPs of svc/shop/web"]);
    let changed = changes(&cures, "no-external-ip").concat();
    assert!(changed.contains("externalIPs: [10.0.7.7]"), "{changed}");

    let announced = balanced_service("172.16.0.10", "", "", "{ip: 10.0.0.12}");
    let announced = pool(true).replace("10.0.9.8-10.0.9.9", "10.0.0.12/31") + &announced;
    let cures = cures_of(&announced, &[IPTABLES], Code::AddressTaken);
    let changed = changes(&cures, "smaller-pool").concat();
    assert!(changed.contains("10.0.0.13/32"), "{changed}");
    assert!(!changed.contains("+spec: {addresses: [\"10.0.0.12"), "{changed}");
}

/// Calls of the address itself are given up, as the cure says.
#[test]
fn an_ingress_at_the_address_of_a_node_is_called_elsewhere() {
    let external = balanced_service("172.16.0.10", "", "externalIPs: [10.0.0.11]", "");
    let external = external.replace("type: LoadBalancer", "type: NodePort");
    let at_node = "spec: {rules: [{host: shop.example.com}]}
status: {loadBalancer: {ingress: [{ip: 10.0.0.11}]}}
";
    let ingress = format!(
        "---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {{name: web, namespace: shop}}
{at_node}"
    );
    let cures = cures_of(&(external + &ingress), &[IPVS], Code::AddressTaken);
    let offered = |cure: &&Cure| cure.is_offered() && cure.name == "no-external-ip";
    let cure = cures.iter().find(offered).unwrap();
    assert!(
        cure.effects.iter().any(|effect| effect.starts_with("ingress/shop/web has this address"))
    );
    assert!(cure.effects.iter().any(|effect| effect.contains("30080 for port 80")), "{cure:#?}");
}

#[test]
fn an_alb_gets_targets() {
    let stated = alb("alb.ingress.kubernetes.io/target-type: instance", "ClusterIP");
    let cures = cures_of(&stated, &[IPTABLES, "provider: aws"], Code::NoTargets);
    assert!(changes(&cures, "node-port").concat().contains("type: NodePort"));
    // The pods of this cluster have no addresses of the VPC.
    let by_pods = cures.iter().find(|cure| cure.name == "pods-as-targets").unwrap();
    assert!(!by_pods.is_offered(), "{by_pods:#?}");
}

#[test]
fn a_host_port_is_forwarded_or_the_hosts_own() {
    let objects = "---
apiVersion: v1
kind: ConfigMap
metadata: {name: cilium-config, namespace: kube-system}
data: {kube-proxy-replacement: 'false', enable-host-port: 'true'}
---
apiVersion: v1
kind: Pod
metadata: {name: edge, namespace: shop}
spec:
  nodeName: n1
  containers: [{name: c, image: c, ports: [{containerPort: 8080, hostPort: 80}]}]
status: {phase: Running, podIP: 10.1.1.9, conditions: [{type: Ready, status: 'True'}]}
---
apiVersion: uturn.dev/v1alpha1
kind: Facts
spec:
  network: {plugin: cilium, podCIDRs: [10.1.0.0/16], vpcCIDRs: [10.0.0.0/16]}
  kubeProxy: {mode: iptables, version: v1.34.4}
";
    let cures = cures_in(nodes_and_pods() + objects, Code::HostPortOff);
    let titles = [
        "cni-chaining-mode: portmap in ConfigMap kube-system/cilium-config",
        "hostNetwork for Pod shop/edge",
    ];
    assert_eq!(offered(&cures), titles);
    assert!(changes(&cures, "host-network").concat().contains("hostNetwork: true"));
}

#[test]
fn a_gateway_gets_the_label_and_the_port_of_its_proxy() {
    let cures = cures_of(&mesh("ingressgateway", 80), &[IPTABLES], Code::GatewayOpensNothing);
    assert_eq!(offered(&cures), ["selector istio: edge for Gateway shop/shop"]);
    assert_eq!(
        changes(&cures, "gateway-selector"),
        ["-selector: {istio: ingressgateway}", "+selector: {istio: edge}"]
    );
    let cures = cures_of(&mesh("edge", 30_090), &[IPTABLES], Code::GatewayOpensNothing);
    assert_eq!(offered(&cures), ["port 80 instead of 30090 for a server of Gateway shop/shop"]);
    // The call that is refused for it is cured by the same edit.
    let cures = cures_of(&mesh("edge", 30_090), &[IPTABLES], Code::WrongPort);
    assert!(changes(&cures, "gateway-port").concat().contains("number: 80"));
}

#[test]
fn a_target_port_becomes_that_of_the_image() {
    let service = "---
apiVersion: v1
kind: Service
metadata: {name: plain, namespace: plain}
spec: {clusterIP: 172.16.0.20, selector: {app: plain}, ports: [{port: 8099}]}
";
    let cures = cures_of(&[POD_OF_NGINX, service].concat(), &[IPTABLES], Code::WrongPort);
    assert_eq!(offered(&cures), ["targetPort 80 instead of 8099 for svc/plain/plain port 8099"]);
    assert!(changes(&cures, "target-port").concat().contains("targetPort: 80"));
}

#[test]
fn a_backend_becomes_the_service_or_port_that_is_there() {
    let served = ingress("--ingress-class=public", "ingressClassName: public");
    let port = "backend: {service: {name: web, port: {number: 80}}}";
    let by_name = served.replace(port, "backend: {service: {name: web, port: {name: http}}}");
    let cures = cures_of(&by_name, &[IPTABLES], Code::BackendMissing);
    assert_eq!(
        offered(&cures),
        ["port 80 of svc/shop/web instead of http, which it does not have"]
    );
    // The only Service of the namespace, whatever it is called.
    let other =
        served.replace(port, "backend: {service: {name: shop-frontend, port: {number: 80}}}");
    let cures = cures_of(&other, &[IPTABLES], Code::BackendMissing);
    assert_eq!(
        offered(&cures),
        ["svc/shop/web instead of shop/shop-frontend, which does not exist"]
    );
    assert!(changes(&cures, "ingress-backend").concat().contains("name: web"));
}

/// The cluster's DNS.
pub(super) const DNS: &str = "---
apiVersion: v1
kind: Service
metadata: {name: kube-dns, namespace: kube-system}
spec:
  clusterIP: 172.16.0.53
  selector: {k8s-app: kube-dns}
  ports: [{name: dns, port: 53, protocol: UDP}]
---
apiVersion: v1
kind: Pod
metadata: {name: coredns, namespace: kube-system, labels: {k8s-app: kube-dns}}
spec:
  nodeName: n1
  containers: [{name: coredns, image: coredns, ports: [{containerPort: 53, protocol: UDP}]}]
status: {phase: Running, podIP: 10.1.1.53, conditions: [{type: Ready, status: 'True'}]}
---
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

#[test]
fn a_node_calls_the_address_of_a_service() {
    let objects = "---
apiVersion: v1
kind: Service
metadata: {name: files, namespace: shop}
spec: {clusterIP: 172.16.0.30, selector: {app: web}, ports: [{port: 2049, targetPort: 8080}]}
---
apiVersion: v1
kind: PersistentVolume
metadata: {name: files}
spec: {nfs: {server: files.shop.svc.cluster.local, path: /}}
---
apiVersion: v1
kind: Service
metadata: {name: registry, namespace: shop}
spec:
  type: NodePort
  clusterIP: 172.16.0.31
  selector: {app: web}
  ports: [{port: 5000, targetPort: 8080, nodePort: 30500}]
---
apiVersion: v1
kind: Pod
metadata: {name: waits, namespace: shop}
spec: {nodeName: n2, containers: [{name: c, image: 'registry:5000/app:1'}]}
status: {phase: Pending}
";
    let cut =
        objects.find("---\napiVersion: v1\nkind: Service\nmetadata: {name: registry").unwrap();
    let cures = cures_of(&(DNS.to_owned() + &objects[..cut]), &[IPTABLES], Code::NameNotFound);
    let title = "spec.nfs.server 172.16.0.30, the cluster IP of svc/shop/files";
    assert_eq!(offered(&cures)[0], title);
    let cures = cures_of(&(DNS.to_owned() + &objects[cut..]), &[IPTABLES], Code::NameNotFound);
    let titles = [
        "image from 172.16.0.31:5000, the cluster IP of svc/shop/registry",
        "image from localhost:30500, the node port of svc/shop/registry",
    ];
    assert_eq!(offered(&cures)[..2], titles);
    assert!(changes(&cures, "cluster-ip").concat().contains("172.16.0.31:5000/app:1"));
}

/// Tries the cures of these findings in the scan itself, too.
#[test]
fn a_scan_names_the_cures() {
    let text = [
        nodes_and_pods(),
        ingress("--ingress-class=public", "ingressClassName: nginx"),
        facts(&[IPTABLES]),
    ]
    .concat();
    let source = Source { name: "made.yaml".into(), text };
    let manifests = Manifests::of(vec![source]).complete_if(true);
    let cluster = manifests.cluster().unwrap();
    let options = uturn_diagnose::analysis::Options::default();
    let analysis = uturn_diagnose::analyze(&manifests, &cluster, &options).unwrap();
    let mut own = analysis.findings.iter().filter(|own| own.code == Code::IngressIgnored);
    let titles: Vec<&str> = own.next().unwrap().cures.iter().map(|cure| &**cure).collect();
    assert_eq!(titles, ["ingressClassName public for ingress/shop/web"]);
}

#[test]
fn the_api_server_calls_a_port_that_is_there() {
    let objects = |port: &str, target: &str| {
        format!(
            "---
apiVersion: v1
kind: Service
metadata: {{name: guard, namespace: shop}}
spec: {{clusterIP: 172.16.0.40, selector: {{app: web}}, ports: [{{port: 8443, targetPort: {target}}}]}}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {{name: guard}}
webhooks:
- name: guard.example.com
  clientConfig: {{service: {{namespace: shop, name: guard, port: {port}}}}}
  rules: [{{apiGroups: [apps], apiVersions: [v1], operations: [CREATE], resources: [deployments]}}]
"
        )
    };
    let cures = cures_of(&objects("443", "8080"), &[IPTABLES], Code::ApiServerCallFails);
    let title = "port 8443 of svc/shop/guard instead of 443, which it does not have";
    assert_eq!(offered(&cures), [title]);
    assert!(changes(&cures, "called-port").concat().contains("port: 8443"));
    // The Service's own cures count here, too.
    let cures = cures_of(&objects("8443", "https"), &[IPTABLES], Code::ApiServerCallFails);
    assert!(offered(&cures)[0].starts_with("targetPort "), "{cures:#?}");
}

#[test]
fn endpoints_get_the_name_of_the_services_port() {
    let objects = "---
apiVersion: v1
kind: Service
metadata: {name: data, namespace: shop}
spec: {clusterIP: 172.16.0.40, ports: [{name: sql, port: 5432}]}
---
apiVersion: v1
kind: Endpoints
metadata: {name: data, namespace: shop}
subsets: [{addresses: [{ip: 10.1.1.2}], ports: [{port: 5432}]}]
";
    let cures = cures_of(objects, &[IPTABLES], Code::NoEndpoints);
    let titles = [
        "port name sql in Endpoints shop/data, as in svc/shop/data",
        "port without a name in svc/shop/data, as its endpoints have it",
    ];
    assert_eq!(offered(&cures), titles);
    assert!(changes(&cures, "endpoint-port").concat().contains("name: sql"));
}

#[test]
fn health_checks_are_told_to_ask_what_is_answered() {
    let udp = "[{port: 53, targetPort: 8080, nodePort: 30053, protocol: UDP}]";
    let cures_for = |target: &str, ports: &str| {
        let notes = format!("NLB-nlb-target-type: {target}");
        cures_of(&nlb_service(&notes, "", ports), NLB_FACTS, Code::CheckCannotPass)
    };
    let key =
        "annotate svc/shop/web with service.beta.kubernetes.io/aws-load-balancer-healthcheck-port";
    let cures = cures_for("instance", udp);
    let titles = offered(&cures);
    assert_eq!(titles.len(), 1, "{titles:?}");
    assert!(titles[0].starts_with(&format!("{key}: \"10256\" and ")), "{titles:?}");
    let both = udp.replace('[', "[{port: 80, targetPort: 8080, nodePort: 30080, name: web}, ");
    let cures = cures_for("instance", &both.replace("UDP", "UDP, name: dns"));
    assert_eq!(offered(&cures)[0], format!("{key}: \"30080\""));
    let cures = cures_for("ip", udp);
    assert_eq!(offered(&cures), [format!("{key}: \"8080\"")]);

    let header = "NLB-nlb-target-type: ip, NLB-proxy-protocol: '*', NLB-healthcheck-protocol: http, \
                  NLB-healthcheck-port: '10254'";
    let ports = "[{port: 80, targetPort: 8080, nodePort: 30080}]";
    let cures = cures_of(&nlb_service(header, "", ports), NLB_FACTS, Code::CheckCannotPass);
    let changed = changes(&cures, "answerable-checks").concat();
    assert!(changed.contains("healthcheck-port: traffic-port"), "{changed}");
    assert!(changed.contains("healthcheck-protocol: tcp"), "{changed}");
}

/// The rule is for the address and port of the health checks; calls fail for the same reason.
#[test]
fn health_checks_that_a_group_drops_are_let_in() {
    let notes = "service.beta.kubernetes.io/azure-load-balancer-internal: 'true'";
    let service = balanced_service("172.16.0.10", notes, "", "{ip: 10.0.9.9}")
        .replace("nodePort: 30080", "nodePort: 30080, targetPort: 8080");
    let groups = "securityGroups: {sg: {inbound: [{action: accept, protocol: all, ports: all, peer: \
                  10.0.0.0/16}, {action: drop, protocol: all, ports: all, peer: all}]}}";
    let nodes = "nodes: {'*': {securityGroups: [sg]}}";
    let fields = [IPTABLES, "provider: azure", nodes, groups];
    for code in [Code::ProbeBlackhole, Code::NoCandidate] {
        let cures = cures_of(&service, &fields, code);
        assert_eq!(offered(&cures)[0], "let TCP 30080 from 168.63.129.16/32 in, in sg", "{code}");
    }
}

/// Calls fail too, with what the load balancer itself answers; both have the cure.
#[test]
fn a_backend_reported_as_unhealthy_is_asked_for_another_page() {
    let objects = reported(r#"{"k8s-be-30080--a":"UNHEALTHY"}"#);
    let fields = [IPTABLES, "provider: gcp"];
    let cures = cures_of(&objects, &fields, Code::CheckCannotPass);
    let title = "health checks of svc/shop/web ask for /healthz: BackendConfig web-check, named in \
                 cloud.google.com/backend-config";
    assert_eq!(offered(&cures), [title]);
    let found = findings(&objects, &fields);
    assert_eq!(with_code(&found, Code::NoCandidate), []);
    let cluster = cluster(&objects, &fields);
    let flow = Flow {
        from: "outside".parse().unwrap(),
        to: "http://203.0.113.9/".parse().unwrap(),
        protocol: Protocol::Tcp,
    };
    let verdict = Engine::new(&cluster).unwrap().verdict(&flow).unwrap();
    assert_eq!(verdict.mechanisms, [Mechanism::NoCandidate]);
    let healthy = super::cluster(&reported(r#"{"k8s-be-30080--a":"HEALTHY"}"#), &fields);
    assert_eq!(Engine::new(&healthy).unwrap().verdict(&flow).unwrap().mechanisms, []);
}

#[test]
fn a_node_lets_in_what_wraps_packets() {
    let rules = "nodes: {n2: {iptables: \"*filter\\n-A INPUT -p udp -j REJECT\\nCOMMIT\\n\"}}";
    let service = "---
apiVersion: v1
kind: Service
metadata: {name: web, namespace: shop}
spec: {clusterIP: 172.16.0.10, selector: {app: web}, ports: [{port: 80, targetPort: 8080}]}
";
    let facts = facts(&[IPTABLES, rules])
        .replace("global-router", "global-router, plugin: flannel, transport: tunnel");
    let text = [nodes_and_pods(), service.to_owned(), facts].concat();
    let cures = cures_in(text, Code::NodeFirewall);
    let title = "on n2, let UDP 8472, in which nodes wrap what pods send, from 10.0.0.0/16 pass in chain INPUT";
    assert_eq!(offered(&cures)[0], title);
}
