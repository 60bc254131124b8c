//! Cures that the evidence of a finding names: the setting that keeps something out, the Service that
//! is meant, the port that another object has.

use uturn_diagnose::cure::{self, Case, TrialBase};
use uturn_scan::FewCalls;

use super::cures::{changes, cures_in, offered, tried};
use super::*;
use crate::api_server::{GUARD, WEBHOOK};
use crate::https_hosts::{CLUSTER, TRAEFIK};
use crate::stated_names::{CLUSTER as NAMES, WORKER};

/// A cluster with Traefik, whose Ingress has these annotations, and more objects.
fn traefik(notes: &str, more: &str) -> String {
    let own = [("NOTES", notes), ("BEHIND", "websecure"), ("  TLS\n", "")];
    let with = |text: String, (mark, value): &(&str, &str)| text.replace(mark, value);
    TRAEFIK.iter().chain(&own).fold(CLUSTER.to_owned(), with) + more
}

/// A Gateway with a listener of these fields and this status, and a route of another namespace.
fn gateway(parent: &str, listener: &str, status: &str) -> String {
    format!(
        "
apiVersion: gateway.networking.k8s.io/v1
kind: GatewayClass
metadata: {{name: traefik}}
spec: {{controllerName: traefik.io/gateway-controller}}
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {{name: edge, namespace: edge}}
spec: {{gatewayClassName: traefik, listeners: [{{name: front, protocol: HTTP, {listener}}}]}}
status: {{addresses: [{{value: 203.0.113.10}}]{status}}}
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {{name: shop, namespace: web}}
spec: {{parentRefs: [{{name: edge, namespace: edge{parent}}}], hostnames: [route.example.com], rules: [{{backendRefs: [{{name: shop, port: 80}}]}}]}}
status:
  parents:
  - controllerName: traefik.io/gateway-controller
    parentRef: {{name: edge, namespace: edge{parent}}}
    conditions: [{{type: Accepted, status: 'False', reason: NotAllowedByListeners}}]
---
apiVersion: v1
kind: Namespace
metadata: {{name: web}}
"
    )
}

#[test]
fn a_listener_takes_a_route() {
    let all = "allowedRoutes: {namespaces: {from: All}}";
    let labelled =
        "allowedRoutes: {namespaces: {from: Selector, selector: {matchLabels: {edge: open}}}}";
    let from_all = "allowedRoutes.namespaces.from: All for listener front of Gateway edge/edge";
    let one = "allowedRoutes of namespaces edge and web for listener front of Gateway edge/edge";
    let label = "label edge=open on namespace web, for which listener front asks";
    let host = "listener front of Gateway edge/edge for every host instead of *.example.org";
    let kind = "allowedRoutes.kinds with HTTPRoute for listener front of Gateway edge/edge";
    let section = "sectionName front instead of fornt, which Gateway edge/edge does not have, in \
                   httproute/web/shop";
    let grpc = "allowedRoutes: {namespaces: {from: All}, kinds: [{kind: GRPCRoute}]}";
    for (parent, more, titles) in [
        ("", "", vec![from_all, one]),
        ("", labelled, vec![label, from_all]),
        ("", &*format!("hostname: '*.example.org', {all}"), vec![host]),
        ("", grpc, vec![kind]),
        (", sectionName: fornt", all, vec![section]),
        // The status has another reason, which no edit is known for.
        ("", &*format!("hostname: '*.example.com', {all}"), vec![]),
    ] {
        let more = format!("port: 8000, {more}").replace(", }", "}");
        let more = more.trim_end_matches(", ");
        let text = traefik("", &gateway(parent, more, ""));
        let cures = cures_in(text, Code::IngressIgnored);
        assert_eq!(offered(&cures), titles, "{parent} {more}");
    }
}

#[test]
fn a_route_may_lead_to_another_namespace() {
    let all = "port: 8000, allowedRoutes: {namespaces: {from: All}}";
    let routes = gateway("", all, "")
        .replace("{name: shop, namespace: web}", "{name: shop, namespace: edge}")
        .replace("backendRefs: [{name: shop,", "backendRefs: [{name: shop, namespace: web,");
    let status = routes.find("status:\n  parents:").unwrap();
    let end = status + routes[status..].find("---").unwrap();
    let routes = routes[..status].to_owned() + &routes[end..];
    let cures = cures_in(traefik("", &routes), Code::NoEndpoints);
    let title = "ReferenceGrant web/shop-from-edge: HTTPRoutes of namespace edge may lead to \
                 svc/web/shop";
    assert_eq!(offered(&cures)[0], title);
    assert!(changes(&cures, "reference-grant").concat().contains("kind: ReferenceGrant"));
}

/// A listener has the port of the controller's pods, and not that of its Service.
#[test]
fn a_listener_has_the_port_of_the_pods() {
    let all = "port: 80, allowedRoutes: {namespaces: {from: All}}";
    let status = ", listeners: [{name: front, conditions: \
                  [{type: Accepted, status: 'False', reason: PortUnavailable}]}]";
    let cures = cures_in(traefik("", &gateway("", all, status)), Code::IngressIgnored);
    assert_eq!(
        offered(&cures),
        ["port 8000 instead of 80 for listener front of Gateway edge/edge"]
    );
    assert!(changes(&cures, "listener-port").concat().contains("port: 8000"));
}

#[test]
fn a_virtual_service_names_a_gateway_with_its_namespace() {
    let routes = "---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: shop, namespace: web}
spec: {hosts: [shop.example.com], gateways: [mesh, other/one, shop], http: [{route: [{destination: {host: shop}}]}]}
";
    let text = nodes_and_pods() + &mesh("edge", 80) + routes + &facts(&[IPTABLES]);
    let apart = text.replace("gateways: [mesh, other/one, shop]", "gateways: [other/one, shop]");
    let cures = cures_in(apart, Code::GatewayOpensNothing);
    assert_eq!(offered(&cures), ["gateways: shop/shop in VirtualService web/shop"]);
    assert!(changes(&cures, "gateway-name").concat().contains("[other/one, shop/shop]"));
}

#[test]
fn a_webhook_names_the_service_of_its_url() {
    let url = "{url: 'https://guard.guard.svc.cluster.local/check?a=b'}";
    let by_url = WEBHOOK.replace("{service: {namespace: guard, name: guard, path: /check}}", url);
    let api = "
apiVersion: v1
kind: Service
metadata: {name: kubernetes, namespace: default}
spec: {clusterIP: 10.96.0.1, ports: [{name: https, port: 443, targetPort: 6443}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: kubernetes, namespace: default, labels: {kubernetes.io/service-name: kubernetes}}
addressType: IPv4
ports: [{name: https, port: 6443, protocol: TCP}]
endpoints: [{addresses: [ADDRESS]}]
---
";
    for address in ["10.0.0.11", "10.7.0.5"] {
        let text = [GUARD, &api.replace("ADDRESS", address), &by_url].concat();
        let cures = tried(text, Code::ApiServerCallFails);
        let title = "clientConfig.service guard/guard in place of the url \
                     https://guard.guard.svc.cluster.local/check?a=b";
        assert_eq!(offered(&cures), [title], "{address}");
        let changed = changes(&cures, "called-service").concat();
        assert!(changed.contains("namespace: guard, name: guard, path: "), "{changed}");
        assert!(!changed.contains("+  clientConfig: {url"), "{changed}");
    }
}

#[test]
fn a_caller_gets_the_name_of_the_service_that_is_meant() {
    let worker = |call: &str| WORKER.replace("POLICY", "").replace("CALL", call);
    let text = NAMES.to_owned() + &worker("tcp://my-cache:6379/0");
    let cures = cures_in(text.clone(), Code::NameNotFound);
    assert_eq!(offered(&cures)[0], "cache instead of my-cache in Deployment shop/worker");
    // The same call of the workload itself is cured by the same edit.
    let manifests = Manifests::of(vec![Source { name: "made.yaml".into(), text }]);
    let manifests = manifests.complete_if(true);
    let cluster = manifests.cluster().unwrap();
    let engine = Engine::new(&cluster).unwrap();
    let flow = Flow {
        from: "deploy/shop/worker".parse().unwrap(),
        to: "my-cache:6379".parse().unwrap(),
        protocol: Protocol::Tcp,
    };
    let case = Case::flow(&manifests, &FewCalls::new(&engine), flow).unwrap();
    let by_flow = cure::cures(&TrialBase::new(&manifests, &engine), &case);
    assert_eq!(offered(&by_flow)[0], "cache instead of my-cache in Deployment shop/worker");
    assert!(changes(&cures, "called-name").concat().contains("tcp://cache:6379/0"));

    // A ConfigMap states the name, in a text of lines.
    let config = "---
apiVersion: v1
kind: ConfigMap
metadata: {name: worker, namespace: shop}
data:
  app.conf: |
    # not my-cache-2
    cache = redis://my-cache:6379
";
    let reads =
        WORKER.replace("POLICY", "volumes: [{name: etc, configMap: {name: worker}}]").replace(
            "env: [{name: CACHE, value: 'CALL'}]",
            "volumeMounts: [{name: etc, mountPath: /etc}]",
        );
    let cures = cures_in(NAMES.to_owned() + &reads + config, Code::NameNotFound);
    assert_eq!(offered(&cures)[0], "cache instead of my-cache in ConfigMap shop/worker");
    let changed = changes(&cures, "called-name");
    assert_eq!(changed, ["-cache = redis://my-cache:6379", "+cache = redis://cache:6379"]);
}

/// What answers outside the cluster is not known, and the way there is open.
#[test]
fn a_controller_takes_a_service_that_is_an_alias() {
    let traefik = traefik("", "").replace(
        "spec: {clusterIP: 10.96.0.20, selector: {app: shop}, ports: [{port: 80, targetPort: 8080}]}",
        "spec: {type: ExternalName, externalName: shop.example.net, ports: [{port: 80}]}",
    );
    let cures = cures_in(traefik.clone(), Code::NoEndpoints);
    let argument = "--providers.kubernetesingress.allowExternalNameServices=true for Pod web/front";
    assert_eq!(offered(&cures)[0], argument);
    assert!(cures[0].diffs.concat().contains("allowExternalNameServices=true"));

    let haproxy = traefik
        .replace("ports: [{port: 80}]}", "}")
        .replace("shop.example.net, }", "shop.example.net}")
        .replace("image: 'traefik:v3.1.0'", "image: 'quay.io/jcmoraisjr/haproxy-ingress:v0.13.8'")
        .replace("traefik.io/ingress-controller", "haproxy-ingress.github.io/controller")
        .replace("targetPort: web,", "targetPort: 80,");
    let args = haproxy.find("args: [").unwrap();
    let end = args + haproxy[args..].find("ports:").unwrap();
    let mut haproxy = haproxy;
    haproxy.replace_range(args..end, "args: [--ingress-class=own], ");
    let haproxy =
        haproxy.replace("name: web, containerPort: 8000", "name: http, containerPort: 80");
    let cures = cures_in(haproxy, Code::NoEndpoints);
    assert_eq!(offered(&cures)[0], "port 80 in svc/web/shop, which the rule names");
    assert!(cures[0].diffs.concat().contains("port: 80"));
}

#[test]
fn an_ingress_asks_for_the_entry_point_that_clients_call() {
    let note = "traefik.ingress.kubernetes.io/router.entrypoints";
    let cures = cures_in(traefik(&format!("{note}: web"), ""), Code::NoRuleForPath);
    let titles = [
        format!("{note}: web,websecure for ingress/web/shop, instead of web only"),
        format!("no {note} for ingress/web/shop, which keeps it to web"),
    ];
    assert_eq!(offered(&cures), titles);
}

#[test]
fn a_readiness_probe_asks_what_another_probe_asks() {
    let pod = |probes: &str, state: &str| {
        let service = balanced_service("172.16.0.10", "", "", "")
            .replace("type: LoadBalancer", "type: ClusterIP")
            .replace("nodePort: 30080", "targetPort: 8080")
            .replace("{app: web}", "{app: slow}");
        let objects = format!(
            "---
apiVersion: v1
kind: Pod
metadata: {{name: slow, namespace: shop, labels: {{app: slow}}}}
spec:
  nodeName: n1
  containers: [{{name: c, image: c, ports: [{{name: http, containerPort: 8080}}], {probes}}}]
status:
  phase: Running
  podIP: 10.1.1.9
  conditions: [{{type: Ready, status: 'False'}}]
  containerStatuses: [{{name: c, ready: false, state: {state}}}]
"
        );
        let text = nodes_and_pods() + &service + &objects + &facts(&[IPTABLES]);
        cures_in(text, Code::NoEndpoints)
    };
    let running = "{running: {startedAt: '2026-01-01T00:00:00Z'}}";
    let live = "livenessProbe: {httpGet: {path: /alive, port: http}}";
    let by_path = format!("readinessProbe: {{httpGet: {{path: /ready, port: http}}}}, {live}");
    let title = "readiness probe of container c in Pod shop/slow asks GET /alive at http instead of \
                 GET /ready at http";
    assert_eq!(offered(&pod(&by_path, running)), [title]);
    assert!(offered(&pod(&by_path, "{waiting: {reason: CrashLoopBackOff}}")).is_empty());
    let by_port = "readinessProbe: {tcpSocket: {port: 8081}}";
    let title =
        "readiness probe of container c in Pod shop/slow asks TCP at 8080 instead of TCP at 8081";
    assert_eq!(offered(&pod(by_port, running)), [title]);
}

#[test]
fn the_filter_of_kube_proxy_is_passed_by_policy_or_release() {
    let service = balanced_service("172.16.0.10", "", "externalTrafficPolicy: Local", "")
        .replace("nodePort: 30080", "nodePort: 30080, targetPort: 8080")
        .replace("  ports:", "  externalIPs: [10.0.9.16]\n  ports:");
    let cures = |version: &str| {
        let proxy = format!("kubeProxy: {{mode: ipvs, version: {version}}}");
        let text = nodes_and_pods() + &service + &facts(&[&proxy]);
        let cures = cures_in(text, Code::ProxyFilter);
        offered(&cures).into_iter().map(str::to_owned).collect::<Vec<String>>()
    };
    for (version, newer) in [("v1.28.3", "v1.28.6"), ("v1.29.0", "v1.29.1")] {
        let release = format!("kube-proxy {newer} instead of {version}");
        let all = cures(version);
        assert!(all.contains(&"policy Cluster for svc/shop/web".to_owned()), "{all:?}");
        assert!(all.contains(&release), "{all:?}");
    }
}

/// A Gateway says what a gateway's proxy opens: another target would give clients of TLS plain text.
#[test]
fn the_target_of_a_gateways_port_stays() {
    let one = "{name: http, port: 80, targetPort: 8080, nodePort: 30090}";
    let both = format!("{one}, {{name: https, port: 443, targetPort: 8443}}");
    let objects = mesh("edge", 80)
        .replace(one, &both)
        .replace("args: [proxy, router]", "args: [proxy, router], ports: [{containerPort: 8080}]");
    let text = nodes_and_pods() + &objects + &facts(&[IPTABLES]);
    let cures = cures_in(text, Code::WrongPort);
    assert!(cures.iter().all(|cure| cure.name != "target-port"), "{cures:#?}");
}

/// Callers outside have no name for a Service.
#[test]
fn a_cure_that_helps_all_clients_of_a_finding_comes_first() {
    let service = balanced_service("172.16.0.10", "", "externalTrafficPolicy: Local", "")
        .replace("{app: web}", "{app: only}")
        .replace("type: LoadBalancer", "type: NodePort")
        .replace("port: 80,", "port: 80, targetPort: 8080,");
    let pod =
        RunningPod { name: "only", app: "only", address: "10.1.1.7", ..RunningPod::default() };
    let old = "kubeProxy: {mode: ipvs, version: v1.18.9}";
    let text = [nodes_and_pods(), service, pod.to_string(), facts(&[old])].concat();
    let cures = cures_in(text, Code::NoEndpoints);
    let titles = [
        "policy Cluster for svc/shop/web",
        "call svc/shop/web:80; not for outside in the same network",
    ];
    assert_eq!(offered(&cures), titles);
}
