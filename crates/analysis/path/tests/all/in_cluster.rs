//! Requests through a controller in the cluster: to its pod, and from there to an endpoint.

#![allow(clippy::unwrap_used, reason = "what is wrong here fails the test")]

use uturn_model::{Cluster, Flow, ProxyExpectation};
use uturn_path::Engine;
use uturn_snapshot::Source;
use uturn_testing::manifests::{facts, node};

/// A pod on a node, called `NAME-NODE`.
fn pod(name: &str, node: u8, host: u8, container: &str) -> String {
    format!(
        "---
apiVersion: v1
kind: Pod
metadata: {{name: {name}-{node}, namespace: shop, labels: {{app: {name}}}}}
spec: {{nodeName: n{node}, containers: [{container}]}}
status: {{phase: Running, podIP: 10.1.{node}.{host}, podIPs: [{{ip: 10.1.{node}.{host}}}], \
         conditions: [{{type: Ready, status: \"True\"}}]}}
"
    )
}

const NGINX: &str = "{name: controller, image: registry.example/ingress-nginx/controller:v1.12.0, \
                     args: [/nginx-ingress-controller, --configmap=$(POD_NAMESPACE)/nginx], \
                     ports: [{name: http, containerPort: 80}, {name: https, containerPort: 443}, \
                     {name: webhook, containerPort: 8443}]}";
const WEB: &str = "{name: web, image: web, ports: [{containerPort: 8080}]}";

/// Two nodes, a controller's pod on the first, a server on each, and a client on the second.
fn objects(settings: &str) -> String {
    let services = format!(
        "---
apiVersion: v1
kind: Service
metadata: {{name: nginx, namespace: shop}}
spec:
  type: LoadBalancer
  clusterIP: 172.16.0.10
  selector: {{app: nginx}}
  ports: [{{name: http, port: 80, targetPort: http, nodePort: 30080}}, \
          {{name: https, port: 443, targetPort: https, nodePort: 30443}}]
status: {{loadBalancer: {{ingress: [{{ip: 10.0.0.100}}]}}}}
---
apiVersion: v1
kind: Service
metadata: {{name: web, namespace: shop}}
spec: {{clusterIP: 172.16.0.11, selector: {{app: web}}, ports: [{{port: 80, targetPort: 8080}}]}}
---
apiVersion: v1
kind: Service
metadata: {{name: empty, namespace: shop}}
spec: {{clusterIP: 172.16.0.12, selector: {{app: none}}, ports: [{{port: 80}}]}}
---
apiVersion: v1
kind: ConfigMap
metadata: {{name: nginx, namespace: shop}}
data: {{{settings}}}
---
apiVersion: networking.k8s.io/v1
kind: IngressClass
metadata: {{name: nginx}}
spec: {{controller: k8s.io/ingress-nginx}}
"
    );
    services
        + &node(1)
        + &node(2)
        + &pod("nginx", 1, 20, NGINX)
        + &pod("web", 1, 30, WEB)
        + &pod("web", 2, 30, WEB)
        + &pod("client", 2, 40, "{name: c, image: c}")
}

fn ingress(extra: &str, host: &str, path: &str, service: &str) -> String {
    format!(
        "---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {{name: front, namespace: shop, annotations: {{{extra}}}}}
spec: {{ingressClassName: nginx, rules: [{{host: {host}, http: {{paths: [{{path: {path}, \
       pathType: Prefix, backend: {{service: {{name: {service}, port: {{number: 80}}}}}}}}]}}}}]}}
"
    )
}

const MODE: &str = "kubeProxy: {mode: iptables, version: v1.34.4}";

fn cluster(manifests: &str, fields: &[&str]) -> Cluster {
    let mut all = vec![MODE];
    all.extend(fields);
    let source = Source { name: "cluster.yaml".into(), text: facts(&all) + manifests };
    uturn_snapshot::read(vec![source]).unwrap().cluster
}

fn outcomes(manifests: &str, fields: &[&str], to: &str) -> Vec<String> {
    let cluster = cluster(manifests, fields);
    let engine = Engine::new(&cluster).unwrap();
    let flow = Flow {
        from: "pod/shop/client-2".parse().unwrap(),
        to: to.parse().unwrap(),
        protocol: uturn_model::Protocol::Tcp,
    };
    let outcomes = engine.verdict(&flow).unwrap().outcomes;
    outcomes.iter().map(|(outcome, share)| format!("{share} {outcome}")).collect()
}

#[test]
fn a_rule_leads_to_an_endpoint_and_no_rule_to_404() {
    let text = objects("") + &ingress("", "a.example.com", "/shop", "web");
    let asked = |to: &str| outcomes(&text, &[], to).join(", ");
    assert_eq!(asked("ingress/shop/front"), "1 answered at once");
    assert_eq!(asked("http://a.example.com/shop/cart"), "1 answered at once");
    assert_eq!(asked("http://a.example.com/"), "1 404 at once");
    assert_eq!(asked("http://10.0.0.100/shop"), "1 404 at once");
    assert_eq!(asked("https://a.example.com/shop"), "1 answered at once");
    assert_eq!(asked("svc/shop/nginx:80"), "1 answered at once");
}

/// The controller's load balancer has only a name, which the controller would publish: half of the
/// calls come back to the client's own node.
#[test]
fn an_ingress_without_a_status_has_the_name_of_its_controllers_load_balancer() {
    let status = "{hostname: a-1.elb.eu-west-1.amazonaws.com}";
    let text = objects("") + &ingress("", "a.example.com", "/", "web");
    let text = text.replace("{ip: 10.0.0.100}", status).replace(
        "metadata: {name: nginx, namespace: shop}\nspec:\n  type: LoadBalancer",
        "metadata: {name: nginx, namespace: shop, annotations: \
         {service.beta.kubernetes.io/aws-load-balancer-type: nlb, \
         service.beta.kubernetes.io/aws-load-balancer-internal: 'true'}}\nspec:\n  type: \
         LoadBalancer",
    );
    let asked = outcomes(&text, &["provider: aws"], "ingress/shop/front");
    assert_eq!(asked, ["0.5 answered at once", "0.5 hangs"]);
}

/// A redirect is followed by the client, not by the load balancer that passed its call on: it calls
/// the load balancer once more.
#[test]
fn a_client_behind_a_load_balancer_follows_a_redirect_itself() {
    let status = "{hostname: a-1.elb.eu-west-1.amazonaws.com}";
    let tls = ingress("", "a.example.com", "/shop", "web")
        .replace("rules: [", "tls: [{hosts: [a.example.com]}], rules: [");
    let text = (objects("") + &tls).replace("{ip: 10.0.0.100}", status).replace(
        "metadata: {name: nginx, namespace: shop}\nspec:\n  type: LoadBalancer",
        "metadata: {name: nginx, namespace: shop, annotations: \
         {service.beta.kubernetes.io/aws-load-balancer-type: nlb}}\nspec:\n  type: LoadBalancer",
    );
    let asked = |to: &str| outcomes(&text, &["provider: aws"], to);
    assert_eq!(asked("http://a.example.com/shop"), ["1 answered at once"]);
    // What the controller says is said to the client, though the load balancer ends TLS.
    let ends_tls = text.replace(
        "aws-load-balancer-type: nlb}",
        "aws-load-balancer-type: nlb, \
         service.beta.kubernetes.io/aws-load-balancer-ssl-cert: arn, \
         service.beta.kubernetes.io/aws-load-balancer-ssl-ports: https}",
    );
    let ends_tls = ends_tls.replace("targetPort: https", "targetPort: http");
    let asked = |to: &str| outcomes(&ends_tls, &["provider: aws"], to);
    assert_eq!(asked("https://a.example.com/"), ["1 404 at once"]);
    // The controller hears plain HTTP and asks for TLS again and again.
    assert_eq!(asked("https://a.example.com/shop"), ["1 308 at once"]);
    let cluster = cluster(&ends_tls, &["provider: aws"]);
    let engine = Engine::new(&cluster).unwrap();
    let flow = Flow {
        from: "pod/shop/client-2".parse().unwrap(),
        to: "https://a.example.com/shop".parse().unwrap(),
        protocol: uturn_model::Protocol::Tcp,
    };
    let verdict = engine.verdict(&flow).unwrap();
    let steps = verdict.routes[0].hops.iter().flat_map(|hop| &hop.steps);
    assert!(steps.map(|step| step.why.to_string()).any(|why| why.contains("a redirect loop")));
}

/// What only a listing of a whole cluster has.
const SYSTEM: &str = "---
apiVersion: v1
kind: Service
metadata: {name: kubernetes, namespace: default}
spec: {clusterIP: 172.16.0.1, ports: [{port: 443}]}
---
apiVersion: v1
kind: Service
metadata: {name: kube-dns, namespace: kube-system}
spec: {clusterIP: 172.16.0.2, ports: [{port: 53, protocol: UDP}]}
---
apiVersion: v1
kind: Endpoints
metadata: {name: kubernetes, namespace: default}
subsets: [{addresses: [{ip: 10.0.0.9}], ports: [{port: 6443}]}]
---
apiVersion: v1
kind: Endpoints
metadata: {name: kube-dns, namespace: kube-system}
subsets: [{addresses: [{ip: 10.1.1.9}], ports: [{port: 53, protocol: UDP}]}]
";

#[test]
fn a_service_without_endpoints_is_503_and_one_that_refuses_502() {
    let none = objects("") + &ingress("", "a.example.com", "/", "empty");
    assert_eq!(outcomes(&none, &[], "ingress/shop/front"), ["1 not known"], "a part of a cluster");
    let none = none + SYSTEM;
    assert_eq!(outcomes(&none, &[], "ingress/shop/front"), ["1 503 at once"]);
    let missing = objects("") + &ingress("", "a.example.com", "/", "gone");
    assert_eq!(outcomes(&missing, &[], "ingress/shop/front"), ["1 not known"]);
    let missing = missing + SYSTEM;
    assert_eq!(outcomes(&missing, &[], "ingress/shop/front"), ["1 503 at once"]);
    let refusing = (objects("") + &ingress("", "a.example.com", "/", "web"))
        .replace("targetPort: 8080", "targetPort: 9999");
    let declared = "declaredPortsOnly: true";
    assert_eq!(outcomes(&refusing, &[declared], "ingress/shop/front"), ["1 502 at once"]);
}

#[test]
fn an_endpoint_that_hangs_costs_the_time_out_and_another_is_tried() {
    let text = objects("") + &ingress("", "a.example.com", "/", "web");
    let cut = "nodes: {n2: {iptables: \"*filter\\n-A FORWARD -d 10.1.2.30/32 -s 10.1.1.0/24 -p tcp -j DROP\\nCOMMIT\\n\"}}";
    assert_eq!(
        outcomes(&text, &[cut], "ingress/shop/front"),
        ["0.5 answered at once", "0.5 answered after 5 s"]
    );
    let once =
        objects("proxy-next-upstream-tries: \"1\"") + &ingress("", "a.example.com", "/", "web");
    assert_eq!(
        outcomes(&once, &[cut], "ingress/shop/front"),
        ["0.5 answered at once", "0.5 504 after 5 s"]
    );
    let quick = objects("")
        + &ingress(
            "nginx.ingress.kubernetes.io/proxy-connect-timeout: \"2\"",
            "a.example.com",
            "/",
            "web",
        );
    assert_eq!(
        outcomes(&quick, &[cut], "ingress/shop/front"),
        ["0.5 answered at once", "0.5 answered after 2 s"]
    );
    let through = objects("")
        + &ingress(
            "nginx.ingress.kubernetes.io/service-upstream: \"true\"",
            "a.example.com",
            "/",
            "web",
        );
    assert_eq!(
        outcomes(&through, &[cut], "ingress/shop/front"),
        ["0.5 answered at once", "0.5 504 after 5 s"]
    );
}

#[test]
fn hosts_with_tls_are_redirected_and_others_have_the_default_certificate() {
    let text = objects("")
        + &ingress("", "a.example.com", "/", "web")
            .replace("rules:", "tls: [{hosts: [a.example.com]}], rules:");
    assert_eq!(outcomes(&text, &[], "http://a.example.com/"), ["1 answered at once"]);
    assert_eq!(outcomes(&text, &[], "https://a.example.com/"), ["1 answered at once"]);
    assert_eq!(outcomes(&text, &[], "http://a.example.com:443/"), ["1 400 at once"]);
    assert_eq!(outcomes(&text, &[], "https://a.example.com:80/"), ["1 TLS error"]);
}

#[test]
fn what_is_not_modelled_is_not_judged() {
    let auth = objects("")
        + &ingress(
            "nginx.ingress.kubernetes.io/auth-url: https://auth.example.com/",
            "a.example.com",
            "/",
            "web",
        );
    assert_eq!(outcomes(&auth, &[], "ingress/shop/front"), ["1 not known"]);
    let strange = objects("") + &ingress("", "a.example.com", "/", "web");
    let strange = strange.replace("spec: {ingressClassName: nginx, rules", "status: {loadBalancer: {ingress: [{ip: 10.0.0.222}]}}\nspec: {ingressClassName: nginx, rules");
    assert_eq!(outcomes(&strange, &[], "ingress/shop/front"), ["1 not known"]);
    let no_pods = ingress("", "a.example.com", "/", "web")
        + &node(1)
        + &node(2)
        + &pod("client", 2, 40, "{name: c, image: c}");
    assert_eq!(outcomes(&no_pods, &[], "ingress/shop/front"), ["1 not known"]);
}

#[test]
fn what_begins_a_connection_is_in_the_model() {
    let expected = |settings: &str| {
        let text = objects(settings) + &ingress("", "a.example.com", "/", "web");
        let cluster = cluster(&text, &[]);
        let pod = cluster.pods.values().find(|pod| pod.name.name.as_str() == "nginx-1").unwrap();
        cluster.proxy_expectation(pod, 80).cloned()
    };
    assert_eq!(
        expected("use-proxy-protocol: \"true\""),
        Some(ProxyExpectation::Required(Vec::new()))
    );
    assert_eq!(expected(""), Some(ProxyExpectation::NotExpected));
}

/// The controller takes requests at a port of the nodes, of which no Ingress tells.
fn at_node_ports() -> String {
    objects("")
        .replace("type: LoadBalancer", "type: NodePort")
        .replace("status: {loadBalancer: {ingress: [{ip: 10.0.0.100}]}}\n", "")
}

const NAMED: &str = "dns: {outside: {a.example.com: 10.0.0.11, b.example.com: 10.0.0.11}}";

/// Which controller serves an Ingress is a matter of its class. Its status tells where clients are
/// to ask.
#[test]
fn a_controller_serves_an_ingress_whatever_its_status_is() {
    let shown = |status: &str| {
        at_node_ports()
            + &ingress("", "a.example.com", "/", "web")
            + "status: {loadBalancer: {ingress: ["
            + status
            + "]}}\n"
    };
    for status in ["", "{ip: 198.51.100.7}", "{hostname: proxy.example.com}", "{ip: 10.0.0.12}"] {
        let asked = |to: &str| outcomes(&shown(status), &[NAMED], to);
        let known = "1 answered at once";
        assert_eq!(asked("http://a.example.com:30080/"), [known], "{status}");
        assert_eq!(asked("https://a.example.com:30443/"), [known], "{status}");
        assert_eq!(asked("http://b.example.com:30080/"), ["1 404 at once"], "{status}");
    }
    // Without another status, the Ingress is served where its controller's only Service is.
    for status in ["", "{ip: 10.0.0.12}"] {
        let found = outcomes(&shown(status), &[], "ingress/shop/front");
        assert_eq!(found, ["1 answered at once"], "{status}");
        let found = outcomes(&shown(status), &[], "http://a.example.com:30080/");
        assert_eq!(found, ["1 answered at once"], "{status}");
    }
    assert_eq!(outcomes(&shown("{ip: 198.51.100.7}"), &[], "ingress/shop/front"), ["1 not known"]);
    // Nothing says which of two node ports is called.
    let second = "---
apiVersion: v1
kind: Service
metadata: {name: second, namespace: shop}
spec:
  type: NodePort
  clusterIP: 172.16.0.13
  selector: {app: nginx}
  ports: [{name: http, port: 80, targetPort: http, nodePort: 31080}, \
          {name: https, port: 443, targetPort: https, nodePort: 31443}]
";
    assert_eq!(outcomes(&(shown("") + second), &[], "ingress/shop/front"), ["1 not known"]);
}

/// Some distributions write loopback into every status.
#[test]
fn a_status_of_loopback_stands_for_the_controllers_nodes() {
    let on_node = objects("")
        .replace("type: LoadBalancer", "type: ClusterIP")
        .replace(", nodePort: 30080", "")
        .replace(", nodePort: 30443", "")
        .replace("status: {loadBalancer: {ingress: [{ip: 10.0.0.100}]}}\n", "")
        .replace(
            "containers: [{name: controller",
            "hostNetwork: true, containers: [{name: controller",
        )
        .replace("10.1.1.20", "10.0.0.11");
    for status in ["{ip: 127.0.0.1}", "{hostname: localhost}"] {
        let shown = ingress("", "a.example.com", "/", "web")
            + &format!("status: {{loadBalancer: {{ingress: [{status}]}}}}\n");
        let asked = |text: &str, to: &str| outcomes(&(text.to_owned() + &shown), &[], to).join("");
        assert_eq!(asked(&on_node, "ingress/shop/front"), "1 answered at once", "{status}");
        assert_eq!(asked(&on_node, "http://a.example.com/"), "1 answered at once", "{status}");
        let elsewhere = objects("").replace("type: LoadBalancer", "type: ClusterIP");
        assert_ne!(asked(&elsewhere, "ingress/shop/front"), "1 answered at once", "{status}");
    }
}

const ALIAS: &str = "---
apiVersion: v1
kind: Service
metadata: {name: alias, namespace: shop}
spec: {type: ExternalName, externalName: shop.example.org}
";

/// A path without a service, or without its port, is left out of the configuration.
#[test]
fn haproxy_ingress_leaves_out_what_it_finds_no_port_for() {
    let asked = |release: &str, service: &str, port: u16, alias: &str| {
        let front = ingress("", "a.example.com", "/", service);
        let text = objects("")
            .replace("registry.example/ingress-nginx/controller:v1.12.0", release)
            .replace("args: [/nginx-ingress-controller, --configmap=$(POD_NAMESPACE)/nginx], ", "")
            .replace("k8s.io/ingress-nginx", "haproxy-ingress.github.io/controller")
            + alias
            + &front.replace("number: 80", &format!("number: {port}"));
        outcomes(&text, &[], "ingress/shop/front").join("")
    };
    let old = "quay.io/jcmoraisjr/haproxy-ingress:v0.13.8";
    assert_eq!(asked(old, "web", 80, ALIAS), "1 answered at once");
    assert_eq!(asked(old, "alias", 80, ALIAS), "1 404 at once");
    assert_eq!(asked(old, "web", 81, ALIAS), "1 404 at once");
    let with_port = ALIAS.replace("type:", "ports: [{port: 80}], type:");
    assert_eq!(asked(old, "alias", 80, &with_port), "1 not known");
    assert_eq!(
        asked("quay.io/jcmoraisjr/haproxy-ingress:v0.13.9", "alias", 80, ALIAS),
        "1 not known"
    );
}

#[test]
fn a_class_that_its_controller_is_told_of_is_served_by_it() {
    let of_class = |arguments: &str, class: &str| {
        at_node_ports().replace(
            "--configmap=$(POD_NAMESPACE)/nginx]",
            &format!("--configmap=$(POD_NAMESPACE)/nginx{arguments}]"),
        ) + class
            + &ingress("", "a.example.com", "/", "web")
                .replace("ingressClassName: nginx", "ingressClassName: inner")
    };
    let asked = |text: &str| outcomes(text, &[NAMED], "http://a.example.com:30080/").join(", ");
    let class = "---
apiVersion: networking.k8s.io/v1
kind: IngressClass
metadata: {name: inner}
spec: {controller: example.com/inner-nginx}
";
    let told = ", --controller-class=example.com/inner-nginx";
    let served = "1 answered at once";
    assert_eq!(asked(&of_class(told, class)), served);
    assert_eq!(asked(&of_class(", --ingress-class=inner", "")), served);
    // The pods that are there serve the class of their own.
    let other = ingress("", "b.example.com", "/", "web").replace("name: front", "name: other");
    assert_eq!(asked(&(of_class("", class) + &other)), "1 404 at once");
}

/// Each of two controllers may serve it: neither is known to have no rule.
#[test]
fn what_two_controllers_may_serve_is_no_404() {
    let second = pod("second", 2, 21, NGINX);
    let text = at_node_ports() + &second + &ingress("", "a.example.com", "/", "web");
    let asked = |to: &str| outcomes(&text, &[NAMED], to).join(", ");
    assert_eq!(asked("http://a.example.com:30080/"), "1 not known");
    assert_eq!(asked("http://b.example.com:30080/"), "1 404 at once");
}

/// A controller that takes Ingresses without a class takes them beside a cloud's.
#[test]
fn an_ingress_without_a_class_may_be_served_twice() {
    let text = |arguments: &str| {
        let both = ingress("", "b.example.com", "/", "web").replace("name: front", "name: other")
            + &ingress("", "a.example.com", "/", "web").replace("ingressClassName: nginx, ", "");
        at_node_ports().replace(
            "--configmap=$(POD_NAMESPACE)/nginx]",
            &format!("--configmap=$(POD_NAMESPACE)/nginx{arguments}]"),
        ) + &both
    };
    let asked = |text: &str| {
        outcomes(text, &["provider: tke", NAMED], "http://a.example.com:30080/").join(", ")
    };
    assert_eq!(asked(&text("")), "1 404 at once");
    assert_eq!(asked(&text(", --watch-ingress-without-class=true")), "1 not known");
}

/// The name of an Ingress leads to an address that is none of the cluster's: that of a proxy in
/// front, or of a router. What is there may lead back or not.
#[test]
fn the_name_of_an_ingress_at_an_address_outside_is_not_known() {
    let text = objects("") + &ingress("", "a.example.com", "/", "web");
    let stated = "dns: {outside: {a.example.com: 198.51.100.7, b.example.com: 198.51.100.7}}";
    let asked = |to: &str| outcomes(&text, &[stated], to).join(", ");
    assert_eq!(asked("http://a.example.com/"), "1 not known");
    assert_eq!(asked("a.example.com:443"), "1 not known");
    assert_eq!(asked("http://b.example.com/"), "1 answered at once", "no Ingress serves it");
    assert_eq!(asked("http://198.51.100.7/"), "1 answered at once");
    assert_eq!(asked("ingress/shop/front"), "1 answered at once");
}
